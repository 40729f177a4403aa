//! Content negotiation: checks whether a client accepts the format of the answer.

use axum::http::{HeaderMap, Uri, header};
use mediatype::{MediaType, MediaTypeList, ReadParams, names};

use super::query_string;
use crate::http::ApiError;

/// The format of answers.
pub(in crate::http) const JSON: MediaType<'static> =
    MediaType::new(names::APPLICATION, names::JSON);
/// The format of `openapi.yaml`.
pub(in crate::http) const YAML: MediaType<'static> =
    MediaType::new(names::APPLICATION, mediatype::Name::new_unchecked("yaml"));
/// The format of the start page.
pub(in crate::http) const TEXT: MediaType<'static> = MediaType::new(names::TEXT, names::PLAIN);

/// The format of pages.
pub(in crate::http) const HTML: MediaType<'static> = MediaType::new(names::TEXT, names::HTML);

/// Checks the `Accept` headers. Without any, the client accepts everything. If several ranges match, the most precise
/// one counts (RFC 9110, section 12.5.1). Invalid ranges are ignored.
pub(in crate::http) fn check(headers: &HeaderMap, offered: &MediaType<'_>) -> Result<(), ApiError> {
    let mut best: Option<(u8, bool)> = None;
    let mut any = false;
    for range in accepted(headers) {
        any = true;
        let precision = match (range.ty.as_str(), range.subty.as_str()) {
            ("*", "*") => 1,
            (ty, "*") if offered.ty == ty => 2,
            (ty, subty) if offered.ty == ty && offered.subty == subty => 3,
            _ => continue,
        };
        if best.is_none_or(|(before, _)| precision > before) {
            best = Some((precision, weight(&range) > 0.0));
        }
    }
    match best {
        Some((_, true)) => Ok(()),
        None if !any => Ok(()),
        _ => Err(ApiError::NotAcceptable {
            offered: match offered.subty.as_str() {
                "json" => "application/json",
                "yaml" => "application/yaml",
                "html" => "text/html",
                _ => "text/plain",
            },
        }),
    }
}

/// Whether the client prefers HTML to all other formats, as browsers do. `*/*` alone does not name HTML.
pub(in crate::http) fn names_html(headers: &HeaderMap) -> bool {
    let (mut html, mut text) = (0.0_f32, 0.0_f32);
    for range in accepted(headers) {
        if range.ty == names::TEXT && range.subty == names::HTML {
            html = html.max(weight(&range));
        } else if range.ty == names::TEXT && range.subty == names::PLAIN {
            text = text.max(weight(&range));
        }
    }
    html > 0.0 && html >= text
}

/// The ranges of all `Accept` headers. Invalid ranges are ignored.
fn accepted(headers: &HeaderMap) -> impl Iterator<Item = MediaType<'_>> {
    let lists = headers.get_all(header::ACCEPT).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| MediaTypeList::new(list).filter_map(Result::ok))
}

/// The weight of a range: its `q`, or 1 if it has no valid `q`.
fn weight(range: &MediaType<'_>) -> f32 {
    range.get_param(names::Q).and_then(|q| q.as_str().parse().ok()).unwrap_or(1.0)
}

/// For routes without parameters: checks that none was given, and that the client accepts the answer.
pub(in crate::http) fn check_plain_get(
    headers: &HeaderMap,
    uri: &Uri,
    offered: &MediaType<'_>,
) -> Result<(), ApiError> {
    query_string::nothing(uri.query().unwrap_or_default())?;
    check(headers, offered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes_json(accept: &[&str]) -> bool {
        let values = accept.iter().map(|value| (header::ACCEPT, value.parse().unwrap()));
        check(&values.collect(), &JSON).is_ok()
    }

    #[test]
    fn html_is_for_who_names_it() {
        let names = |accept: &[&str]| {
            let values = accept.iter().map(|value| (header::ACCEPT, value.parse().unwrap()));
            names_html(&values.collect())
        };
        for accept in [
            &["text/html"][..],
            &["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
            &["text/plain;q=0.5", "Text/HTML;q=0.6"],
        ] {
            assert!(names(accept), "{accept:?}");
        }
        for accept in [
            &[][..],
            &["*/*"],
            &["text/*"],
            &["text/html;q=0"],
            &["text/plain, text/html;q=0.9"],
            &["text/htmlx"],
            &["application/json"],
        ] {
            assert!(!names(accept), "{accept:?}");
        }
    }

    #[test]
    fn the_most_precise_range_counts() {
        for accept in [
            &[][..],
            &["*/*"],
            &["application/*"],
            &["application/json"],
            &["Application/JSON;charset=utf-8"],
            &["text/html", "application/json;q=0.1"],
            &["text/html,application/xhtml+xml,*/*;q=0.8"],
            &["*/*;q=0, application/json"],
            &["not a media type"],
        ] {
            assert!(takes_json(accept), "{accept:?}");
        }
        for accept in [
            &["text/html"][..],
            &["application/json;q=0"],
            &["*/*, application/json;q=0.0"],
            &["application/*;q=0"],
            &["image/png, text/*"],
        ] {
            assert!(!takes_json(accept), "{accept:?}");
        }
    }
}

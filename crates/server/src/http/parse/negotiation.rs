//! Content negotiation: the media types of bodies and answers, and which of them a client sends and
//! accepts.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue, Uri, header};
use mediatype::{MediaType, MediaTypeList, Name, ReadParams, names};

use super::query_string;
use crate::http::ApiError;

/// The format of answers.
pub(in crate::http) const JSON: MediaType<'static> =
    MediaType::new(names::APPLICATION, names::JSON);
/// The format of `openapi.yaml`.
pub(in crate::http) const YAML: MediaType<'static> =
    MediaType::new(names::APPLICATION, Name::new_unchecked("yaml"));
/// The format of the start page.
pub(in crate::http) const TEXT: MediaType<'static> = MediaType::new(names::TEXT, names::PLAIN);

/// The format of pages.
pub(in crate::http) const HTML: MediaType<'static> = MediaType::new(names::TEXT, names::HTML);

/// The format of metrics, for clients that name it.
pub(in crate::http) const OPEN_METRICS: MediaType<'static> =
    MediaType::new(names::APPLICATION, Name::new_unchecked("openmetrics-text"));

/// Arrays of numbers: NumPy's `.npy`.
pub(in crate::http) const NPY: MediaType<'static> =
    MediaType::new(names::APPLICATION, Name::new_unchecked("x-npy"));
/// [`NPY`] in headers.
pub(in crate::http) const NPY_NAME: &str = "application/x-npy";

/// The format of an answer that may be an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Format {
    Json,
    Npy,
}

/// JSON, if the client accepts it.
pub(in crate::http) fn json(headers: &HeaderMap) -> Result<Format, ApiError> {
    check(headers, &JSON).map(|()| Format::Json)
}

/// The format that the client accepts with the highest weight; of equal weights the one that it
/// names more precisely, and of those JSON.
pub(in crate::http) fn json_or_npy(headers: &HeaderMap) -> Result<Format, ApiError> {
    let index = choose(headers, &[&JSON, &NPY])?;
    Ok(if index == 0 { Format::Json } else { Format::Npy })
}

/// Checks that the client accepts this format.
pub(in crate::http) fn check(headers: &HeaderMap, offered: &MediaType<'_>) -> Result<(), ApiError> {
    choose(headers, &[offered]).map(|_| ())
}

/// The index of the format that suits the `Accept` headers best. Without any, the client accepts
/// everything. If several ranges match a format, the most precise one counts (RFC 9110, section
/// 12.5.1). Invalid ranges are ignored.
fn choose(headers: &HeaderMap, offered: &[&MediaType<'_>]) -> Result<usize, ApiError> {
    if !headers.contains_key(header::ACCEPT) {
        return Ok(0);
    }
    let mut best: Option<(f32, u8, usize)> = None;
    for (index, format) in offered.iter().enumerate() {
        let Some((weight, precision)) = weight_of(headers, format) else { continue };
        if best.is_none_or(|(most, precise, _)| (weight, precision) > (most, precise)) {
            best = Some((weight, precision, index));
        }
    }
    match best {
        Some((.., index)) => Ok(index),
        None if accepted(headers).next().is_none() => Ok(0),
        None => {
            let wants_npy = accepted(headers).any(|range| range.essence() == NPY);
            let elsewhere = match wants_npy && offered.iter().all(|format| **format != NPY) {
                true => " (POST /nearest and GET /words/WORD have application/x-npy)",
                false => "",
            };
            let offered: Vec<String> = offered.iter().map(ToString::to_string).collect();
            Err(ApiError::NotAcceptable { offered: offered.join(" or ") + elsewhere })
        }
    }
}

/// The weight of a format for the client, above zero, and how precisely a range names it. `None` if
/// it does not accept it.
fn weight_of(headers: &HeaderMap, format: &MediaType<'_>) -> Option<(f32, u8)> {
    let mut best: Option<(u8, f32)> = None;
    for range in accepted(headers) {
        let precision = match (range.ty.as_str(), range.subty.as_str()) {
            ("*", "*") => 1,
            (ty, "*") if format.ty == ty => 2,
            (ty, subty) if format.ty == ty && format.subty == subty => 3,
            _ => continue,
        };
        if best.is_none_or(|(before, _)| precision > before) {
            best = Some((precision, weight(&range)));
        }
    }
    best.filter(|&(_, weight)| weight > 0.0).map(|(precision, weight)| (weight, precision))
}

/// Whether the body is declared as [`NPY`].
pub(in crate::http) fn is_npy(headers: &HeaderMap) -> bool {
    declared(headers).is_some_and(|found| found.essence() == NPY)
}

/// Whether the body is declared as JSON lines, by one of the names that they have.
pub(in crate::http) fn is_json_lines(headers: &HeaderMap) -> bool {
    const NAMES: [&str; 5] = ["x-ndjson", "ndjson", "jsonl", "x-jsonlines", "json-lines"];
    declared(headers).is_some_and(|declared| {
        declared.ty == names::APPLICATION && NAMES.contains(&declared.subty.as_str())
    })
}

/// The coding of the body, such as gzip, by its `Content-Encoding`. `None` if it is not coded.
pub(in crate::http) fn coding(headers: &HeaderMap) -> Option<String> {
    let is_none = |coding: &str| {
        let coding = coding.trim();
        coding.is_empty() || coding.eq_ignore_ascii_case("identity")
    };
    let codings = headers.get_all(header::CONTENT_ENCODING).iter();
    let mut codings = codings.map(|coding| String::from_utf8_lossy(coding.as_bytes()));
    let coded = codings.find(|codings| !codings.split(',').all(is_none));
    coded.map(Cow::into_owned)
}

/// The media type of the body, if it is declared and is one.
pub(in crate::http) fn declared(headers: &HeaderMap) -> Option<MediaType<'_>> {
    let declared = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    MediaType::parse(declared).ok()
}

/// Whether the client names this format, and does not prefer plain text: `*/*` alone names nothing.
/// Browsers name HTML so, and Prometheus OpenMetrics.
pub(in crate::http) fn is_named(headers: &HeaderMap, format: &MediaType<'_>) -> bool {
    let (mut named, mut text) = (0.0_f32, 0.0_f32);
    for range in accepted(headers) {
        if range.ty == format.ty && range.subty == format.subty {
            named = named.max(weight(&range));
        } else if range.ty == TEXT.ty && range.subty == TEXT.subty {
            text = text.max(weight(&range));
        }
    }
    named > 0.0 && named >= text
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

/// Whether these `Accept-Encoding` headers take gzip, and not less gladly than no coding (RFC 9110,
/// section 12.5.3).
pub(in crate::http) fn takes_gzip<'a>(accepted: impl IntoIterator<Item = &'a HeaderValue>) -> bool {
    let (mut gzip, mut others, mut plain) = (None, None, None);
    let lists = accepted.into_iter().filter_map(|list| list.to_str().ok());
    for coding in lists.flat_map(|list| list.split(',')) {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix(['q', 'Q']).and_then(|q| q.strip_prefix('='));
        let weight = weight.and_then(|q| q.trim().parse::<f32>().ok());
        match name.trim().to_ascii_lowercase().as_str() {
            "*" => others = weight,
            "gzip" | "x-gzip" => gzip = weight,
            "identity" => plain = weight,
            _ => {}
        }
    }
    let gzip = gzip.or(others).unwrap_or(0.0);
    gzip > 0.0 && plain.is_none_or(|plain| gzip >= plain)
}

/// For routes without parameters: checks that none was given, and that the client accepts the
/// answer.
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
    fn gzip_is_taken_by_who_says_so() {
        let takes = |value| takes_gzip(&[HeaderValue::from_static(value)]);
        for taken in
            ["gzip", "br, GZIP", "x-gzip;Q=0.5", "gzip; q=1.0", "*", "identity;q=0.5, gzip"]
        {
            assert!(takes(taken), "{taken}");
        }
        for refused in [
            "",
            "br",
            "gzip;q=0",
            "gzip; q=0.000",
            "gzip;level=9",
            "identity",
            "gzip;q=0, *",
            "identity, gzip;q=0.5",
        ] {
            assert!(!takes(refused), "{refused}");
        }
        assert!(!takes_gzip(&[]));
    }

    #[test]
    fn identity_is_no_coding() {
        let of = |codings: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for &coding in codings {
                headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
            }
            coding(&headers)
        };
        for plain in [&[][..], &[""], &["identity"], &["Identity, "], &["identity", "identity"]] {
            assert_eq!(of(plain), None, "{plain:?}");
        }
        for coded in ["gzip", "identity, br", "utf-8", "x-gzip", "*"] {
            assert_eq!(of(&[coded]).as_deref(), Some(coded));
        }
        assert_eq!(of(&["identity", "zstd"]).as_deref(), Some("zstd"));
    }

    #[test]
    fn html_is_for_who_names_it() {
        let names = |accept: &[&str]| {
            let values = accept.iter().map(|value| (header::ACCEPT, value.parse().unwrap()));
            super::is_named(&values.collect(), &HTML)
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
    fn who_asks_for_open_metrics_gets_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, wanted) in [
            (&[][..], false),
            (&["*/*"], false),
            (&["text/plain"], false),
            (&[prometheus], true),
            (&["application/openmetrics-text"], true),
            (&["text/plain;q=0.5", "application/openmetrics-text"], true),
            (&["text/plain", "application/openmetrics-text;q=0.5"], false),
            (&["application/openmetrics-text;q=0"], false),
            (&["text/html, not a type"], false),
        ] {
            let headers = accept.iter().map(|value| (header::ACCEPT, value.parse().unwrap()));
            assert_eq!(super::is_named(&headers.collect(), &OPEN_METRICS), wanted, "{accept:?}");
        }
    }

    #[test]
    fn the_highest_weight_chooses_then_the_most_precise_range_then_json() {
        let chosen = |accept: &[&str]| {
            let values = accept.iter().map(|value| (header::ACCEPT, value.parse().unwrap()));
            json_or_npy(&values.collect()).ok()
        };
        for accept in [
            &[][..],
            &["*/*"],
            &["application/*"],
            &["application/json"],
            &["application/x-npy, application/json"],
            &["application/x-npy;q=0.5", "application/json;q=0.6"],
            &["application/x-npy;q=0.5, */*"],
            &["application/x-npy;q=0, */*;q=0.1"],
            &["text/html, application/json;q=0.1"],
            &["not a media type"],
        ] {
            assert_eq!(chosen(accept), Some(Format::Json), "{accept:?}");
        }
        for accept in [
            &["application/x-npy"][..],
            &["Application/X-NPY"],
            &["application/x-npy, */*"],
            &["application/*;q=0.5", "application/x-npy;q=0.5"],
            &["application/x-npy;q=0.6, application/json;q=0.5"],
            &["application/json;q=0, */*;q=0.1"],
        ] {
            assert_eq!(chosen(accept), Some(Format::Npy), "{accept:?}");
        }
        for accept in [&["text/html"][..], &["*/*;q=0"], &["application/x-npy;q=0"]] {
            assert_eq!(chosen(accept), None, "{accept:?}");
        }
        let npy = HeaderMap::from_iter([(header::ACCEPT, "application/x-npy".parse().unwrap())]);
        assert!(json(&npy).is_err());
    }

    #[test]
    fn the_names_of_arrays_are_one() {
        assert_eq!(NPY.to_string(), NPY_NAME);
        let of = |value: &str| {
            is_npy(&HeaderMap::from_iter([(header::CONTENT_TYPE, value.parse().unwrap())]))
        };
        assert!(of("application/x-npy") && of("Application/X-Npy; version=1"));
        assert!(!of("application/json") && !of("application/npy") && !of("application/x-npy+json"));
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

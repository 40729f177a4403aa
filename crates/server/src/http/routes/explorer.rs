//! `GET /`: the explorer, a page to explore the model with. Its files are in
//! `crates/server/explorer`.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::IntoResponse;

use super::search::Answered;
use super::{info, last_part, no_such_route};
use crate::http::parse::{negotiation, query_string};
use crate::http::render::caching;
use crate::models::{Call, weak_tag};

// `FILES`: names and contents of all files of the folder.
include!(concat!(env!("OUT_DIR"), "/explorer.rs"));

/// The file of this name as it is compiled into the program. A debug build reads it from disk each
/// time, so that a change shows when the page is reloaded.
fn content(name: &str) -> Option<Cow<'static, [u8]>> {
    let &(name, content) = FILES.iter().find(|(found, _)| *found == name)?;
    let path = || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("explorer").join(name);
    let on_disk = cfg!(debug_assertions).then(|| std::fs::read(path()).ok()).flatten();
    Some(on_disk.map_or(Cow::Borrowed(content), Cow::Owned))
}

/// The media type of a file of a page, by its extension.
pub(super) fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("css") => "text/css; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// `GET /`: the page for clients that ask for HTML, as browsers do, and text for all others.
pub(super) async fn start(_: Call, headers: HeaderMap, uri: Uri) -> Answered {
    if negotiation::is_named(&headers, &negotiation::HTML) {
        // Ignores query parameters, because other sites add theirs to links.
        let mut response = answer(&headers, &uri, "index.html")?;
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
        return Ok(response);
    }
    info::start_page(&headers, &uri)
}

/// `GET /explorer/{file}`: what the page loads.
pub(super) async fn file(_: Call, headers: HeaderMap, uri: Uri) -> Answered {
    query_string::nothing(uri.query().unwrap_or_default())?;
    answer(&headers, &uri, &last_part(&uri)?)
}

fn answer(headers: &HeaderMap, uri: &Uri, name: &str) -> Answered {
    let content = content(name).ok_or_else(|| no_such_route(uri))?;
    caching::file(headers, &weak_tag(&content), || {
        Ok(([(header::CONTENT_TYPE, media_type(name))], content).into_response())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_stay_small() {
        let bytes = FILES.iter().map(|(_, content)| content.len()).sum::<usize>();
        assert!(bytes < 205_000, "{bytes} bytes");
    }

    #[test]
    fn every_file_has_a_kind() {
        for (name, _) in FILES {
            assert!(content(name).is_some(), "{name}");
            assert_ne!(media_type(name), "application/octet-stream", "{name}");
        }
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        for (name, content) in FILES {
            let text = std::str::from_utf8(content).expect("all files are text");
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:"), "{name}");
        }
    }
}

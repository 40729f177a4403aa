//! `GET /`: the explorer, a page to explore the model with. Its files are in
//! `crates/server/explorer`.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::IntoResponse;

use super::search::Answered;
use super::{info, last_part, no_such_route};
use crate::http::parse::{negotiation, query_string};
use crate::http::render::caching;
use crate::models::Call;

// `FILES`: names and contents of all files of the folder.
include!(concat!(env!("OUT_DIR"), "/explorer.rs"));

/// The page, or a file that it loads.
struct File {
    name: &'static str,
    content: Cow<'static, [u8]>,
}

impl File {
    /// The file that is compiled into the program. A debug build reads it from disk each time, so
    /// that a change shows when the page is reloaded.
    fn get(name: &str) -> Option<Self> {
        let &(name, content) = FILES.iter().find(|(found, _)| *found == name)?;
        let path = || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("explorer").join(name);
        let on_disk = cfg!(debug_assertions).then(|| std::fs::read(path()).ok()).flatten();
        Some(Self { name, content: on_disk.map_or(Cow::Borrowed(content), Cow::Owned) })
    }

    fn kind(&self) -> &'static str {
        match self.name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("css") => "text/css; charset=utf-8",
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }
}

/// `GET /`: the page for clients that ask for HTML, as browsers do, and text for all others.
pub(super) async fn start(_: Call, headers: HeaderMap, uri: Uri) -> Answered {
    if negotiation::names_html(&headers) {
        // Ignores query parameters, because other sites add theirs to links.
        let page = File::get("index.html").expect("the explorer has a page");
        let mut response = answer(&headers, page)?;
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
        return Ok(response);
    }
    info::start_page(&headers, &uri)
}

/// `GET /explorer/{file}`: what the page loads.
pub(super) async fn file(_: Call, headers: HeaderMap, uri: Uri) -> Answered {
    query_string::nothing(uri.query().unwrap_or_default())?;
    let file = File::get(&last_part(&uri)?);
    answer(&headers, file.ok_or_else(|| no_such_route(&uri))?)
}

fn answer(headers: &HeaderMap, file: File) -> Answered {
    let hash = blake3::hash(&file.content).to_hex();
    caching::file(headers, &format!("W/\"{}\"", &hash[..16]), || {
        Ok(([(header::CONTENT_TYPE, file.kind())], file.content).into_response())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_stay_small() {
        let bytes = FILES.iter().map(|(_, content)| content.len()).sum::<usize>();
        assert!(bytes < 150_000, "{bytes} bytes");
    }

    #[test]
    fn every_file_has_a_kind() {
        for (name, _) in FILES {
            let file = File::get(name).expect("it is listed");
            assert_ne!(file.kind(), "application/octet-stream", "{name}");
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

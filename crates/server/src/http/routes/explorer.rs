//! `GET /`: the explorer, a page to look at the model with; its files lie in `crates/server/explorer`.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::info;
use crate::http::ApiError;
use crate::http::parse::{negotiation, query_string};
use crate::http::render::caching;

/// The page and what it loads: part of the program, but read from the disk each time while the program is
/// built for debugging, so that a change shows when the page is loaded again.
#[derive(RustEmbed)]
#[folder = "explorer"]
struct Files;

/// `GET /`: the page for who asks for HTML, as browsers do, and text for all others.
pub(in crate::http) async fn start(headers: HeaderMap, uri: Uri) -> Result<Response, ApiError> {
    if negotiation::names_html(&headers) {
        // Whatever parameters a link to the page was given on its way are not for us.
        let page = Files::get("index.html").expect("the explorer has a page");
        let mut response = answer(&headers, page)?;
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
        return Ok(response);
    }
    info::start_page(headers, uri).await
}

/// `GET /explorer/{file}`: what the page loads.
pub(in crate::http) async fn file(
    name: Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    query_string::nothing(uri.query().unwrap_or_default())?;
    let file = Files::get(&name);
    answer(&headers, file.ok_or_else(|| ApiError::NoSuchRoute { path: uri.path().to_owned() })?)
}

fn answer(headers: &HeaderMap, file: EmbeddedFile) -> Result<Response, ApiError> {
    let hash = file.metadata.sha256_hash();
    let hash = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    caching::file(headers, &format!("W/\"{hash}\""), || {
        let kind = file.metadata.mimetype().to_owned();
        let kind = if kind.starts_with("text/") { kind + "; charset=utf-8" } else { kind };
        Ok(([(header::CONTENT_TYPE, kind)], file.data).into_response())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_stay_small() {
        let sizes = Files::iter().map(|name| Files::get(&name).expect("it is listed").data.len());
        let bytes = sizes.sum::<usize>();
        assert!(bytes < 150_000, "{bytes} bytes");
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        for name in Files::iter() {
            let file = Files::get(&name).expect("it is listed");
            let text = String::from_utf8(file.data.into_owned()).expect("all files are text");
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:"), "{name}");
        }
    }
}

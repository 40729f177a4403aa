//! `/docs`: `openapi.yaml` as a page to read and to try, by the built-in Swagger UI.
//!
//! The page calls only this service, by relative addresses, so it works offline and behind a
//! proxy's prefix. It contains no data, so by default it needs no API key. Its button "Authorize"
//! accepts one.

use std::io::Read;
use std::sync::{LazyLock, OnceLock};

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::IntoResponse;
use flate2::read::GzDecoder;

use super::explorer::media_type;
use super::search::Answered;
use super::{last_part, no_such_route};
use crate::http::parse::negotiation::{self, takes_gzip};
use crate::http::parse::query_string;
use crate::http::render::caching;
use crate::models::{Call, weak_tag};

/// What the page may do: run the service's scripts, call the service, and show the images in
/// Swagger UI's style sheet.
const SECURITY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// A file that is sent to browsers.
enum Content {
    Plain(&'static str),
    /// Compressed with gzip: `build.rs` packs the files of Swagger UI.
    Packed(&'static [u8]),
}

macro_rules! packed {
    ($name:literal) => {
        Content::Packed(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz")))
    };
}

/// The page, and the files that it loads.
static FILES: [(&str, Content); 7] = [
    ("page.html", Content::Plain(include_str!("page.html"))),
    ("start.js", Content::Plain(include_str!("start.js"))),
    ("page.css", Content::Plain(include_str!("page.css"))),
    ("swagger-ui-bundle.js", packed!("swagger-ui-bundle.js")),
    ("swagger-ui.css", packed!("swagger-ui.css")),
    ("favicon.png", packed!("favicon.png")),
    ("license.txt", packed!("license.txt")),
];

/// For each file, a hash of its content.
static TAGS: LazyLock<[String; FILES.len()]> = LazyLock::new(|| {
    std::array::from_fn(|index| {
        let bytes = match FILES[index].1 {
            Content::Plain(text) => text.as_bytes(),
            Content::Packed(bytes) => bytes,
        };
        // Weak, because it is the same for the packed and the plain form.
        weak_tag(bytes)
    })
});

/// `GET /docs`: the page.
pub(super) async fn page(_: Call, headers: HeaderMap, uri: Uri) -> Answered {
    negotiation::check_plain_get(&headers, &uri, &negotiation::HTML)?;
    let mut response = send(0, &headers)?;
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, SECURITY);
    Ok(response)
}

/// `GET /docs/`: redirects to the page. Its addresses are relative, so it can have only one path.
pub(super) async fn redirect_to_page(_: Call, _: HeaderMap, uri: Uri) -> Answered {
    query_string::nothing(uri.query().unwrap_or_default())?;
    // Relative as well, because the service does not know which prefix a proxy has removed.
    Ok((StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "../docs")]).into_response())
}

/// `GET /docs/{file}`: a file of the page, whatever `Accept` says.
pub(super) async fn file(_: Call, headers: HeaderMap, uri: Uri) -> Answered {
    query_string::nothing(uri.query().unwrap_or_default())?;
    let name = last_part(&uri)?;
    // The page itself is at `/docs`.
    let index = (1..FILES.len()).find(|&index| FILES[index].0 == name);
    send(index.ok_or_else(|| no_such_route(&uri))?, &headers)
}

/// The file with this index, in a form that the request accepts, or 304 if the client has it
/// already.
fn send(index: usize, headers: &HeaderMap) -> Answered {
    let (name, content) = &FILES[index];
    let kind = [(header::CONTENT_TYPE, media_type(name))];
    let mut response = caching::file(headers, &TAGS[index], || {
        Ok(match *content {
            Content::Plain(text) => (kind, text).into_response(),
            Content::Packed(bytes) if takes_gzip(headers.get_all(header::ACCEPT_ENCODING)) => {
                (kind, [(header::CONTENT_ENCODING, "gzip")], bytes).into_response()
            }
            Content::Packed(bytes) => (kind, unpacked(index, bytes)).into_response(),
        })
    })?;
    let varies = HeaderValue::from_static("accept-encoding");
    response.headers_mut().insert(header::VARY, varies);
    Ok(response)
}

/// The content of the packed file with this index. Unpacked once for all requests: the file is
/// large, and unpacking it takes longer than other requests should wait.
fn unpacked(index: usize, packed: &[u8]) -> &'static [u8] {
    static ALL: [OnceLock<Vec<u8>>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];
    ALL[index].get_or_init(|| {
        let mut plain = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut plain).expect("build.rs has packed it");
        plain
    })
}

#[cfg(test)]
mod tests {
    use axum::response::Response;

    use super::*;

    fn asking(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    async fn body(response: Response) -> Vec<u8> {
        axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()
    }

    #[tokio::test]
    async fn both_forms_of_a_file_are_the_same_file_and_who_has_it_is_told_so() {
        for (index, (name, _)) in FILES.iter().enumerate() {
            let plain = send(index, &HeaderMap::new()).unwrap();
            let tag = plain.headers()[header::ETAG].clone();
            assert!(!plain.headers().contains_key(header::CONTENT_ENCODING), "{name}");
            let plain = body(plain).await;
            assert!(plain.len() > 50, "{name}");

            let packed = send(index, &asking(header::ACCEPT_ENCODING, "gzip, br")).unwrap();
            assert_eq!(packed.headers()[header::ETAG], tag);
            assert_eq!(packed.headers()[header::CONTENT_TYPE], media_type(name));
            assert_ne!(media_type(name), "application/octet-stream", "{name}");
            if packed.headers().contains_key(header::CONTENT_ENCODING) {
                let packed = body(packed).await;
                let mut unpacked = Vec::new();
                GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
                assert_eq!(unpacked, plain, "{name}");
            }

            let known = HeaderMap::from_iter([(header::IF_NONE_MATCH, tag)]);
            let known = send(index, &known).unwrap();
            assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
            assert!(body(known).await.is_empty());
        }
        let tags: std::collections::BTreeSet<_> = TAGS.iter().collect();
        assert_eq!(tags.len(), FILES.len(), "each has its own");
    }

    #[test]
    fn the_page_names_nothing_but_files_beside_it() {
        let page = include_str!("page.html");
        let addresses = page.split("=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let addresses = addresses.filter(|value| value.contains('/') || value.ends_with(".yaml"));
        for address in addresses.filter(|value| !value.starts_with("image/")) {
            let name = address.strip_prefix("docs/");
            let is_file = name.is_some_and(|name| FILES.iter().any(|(file, _)| *file == name));
            assert!(is_file || address == "openapi.yaml", "{address}");
        }
    }
}

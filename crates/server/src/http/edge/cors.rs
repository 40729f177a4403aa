//! CORS: which pages of other origins may call the API from a browser.

use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Method, Uri};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::config::{ConfigError, invalid};
use crate::http::render::server_timing;

/// How long a browser may cache the answer to its preflight request.
const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(3600);

/// The layer for these origins. `None` if there are none: then answers have no CORS headers.
pub(super) fn layer(origins: &[String]) -> Result<Option<CorsLayer>, ConfigError> {
    let allowed = match origins {
        [] => return Ok(None),
        [all] if all == "*" => AllowOrigin::any(),
        some => AllowOrigin::list(
            some.iter().map(|origin| check(origin)).collect::<Result<Vec<_>, _>>()?,
        ),
    };
    let ours = HeaderName::from_static;
    let request_id = ours("x-request-id");
    Ok(Some(
        CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::DELETE])
            .allow_headers([
                CONTENT_TYPE,
                AUTHORIZATION,
                IF_NONE_MATCH,
                ours("request-timeout-ms"),
                ours("idempotency-key"),
                ours("min-position"),
                ours("if-position"),
                ours("source-position"),
                request_id.clone(),
            ])
            .expose_headers([server_timing::NAME, ETAG, request_id, RETRY_AFTER])
            .max_age(PREFLIGHT_MAX_AGE),
    ))
}

/// Checks that an origin is written exactly as browsers send it. Any other form would never match.
fn check(origin: &str) -> Result<HeaderValue, ConfigError> {
    let wrong = |reason: &str| invalid("cors_origins", format!("`{origin}`: {reason}"));
    if origin == "*" {
        return Err(wrong("it allows every origin, so it must be the only value"));
    }
    let as_sent = origin.parse::<Uri>().ok().and_then(|uri| {
        let scheme = uri.scheme_str()?;
        Some(format!("{scheme}://{}", uri.authority()?).to_lowercase())
    });
    if as_sent.is_none_or(|as_sent| as_sent != origin || origin.contains(['@', '*'])) {
        return Err(wrong(
            "an origin has a scheme, a host in lower case and optionally a port, such as \
             https://example.org:8443; it is no pattern, but * alone allows every origin",
        ));
    }
    HeaderValue::from_str(origin).map_err(|_| wrong("it must be ASCII"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(origins: &[&str]) -> Result<bool, String> {
        let origins: Vec<String> = origins.iter().map(|&origin| origin.to_owned()).collect();
        layer(&origins).map(|layer| layer.is_some()).map_err(|e| e.to_string())
    }

    #[test]
    fn origins_are_as_browsers_send_them() {
        assert_eq!(of(&[]), Ok(false));
        for right in [&["*"][..], &["https://a.org"], &["http://localhost:3000", "https://a.org"]] {
            assert_eq!(of(right), Ok(true), "{right:?}");
        }
        for wrong in [
            "a.org",
            "https://a.org/",
            "https://a.org/x",
            "https://A.org",
            "https://u@a.org",
            "",
            "null",
            "a b",
            "https://*.a.org",
        ] {
            let said = of(&["https://b.org", wrong]).unwrap_err();
            assert!(
                said.contains("cors_origins") && said.contains(&format!("`{wrong}`")),
                "{said}"
            );
        }
        assert!(of(&["*", "https://a.org"]).unwrap_err().contains("only value"));
    }
}

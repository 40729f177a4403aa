//! Security headers, which stop browsers from misusing an answer.

use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue};

/// Pages load nothing from other origins, run no inline scripts, and can't be shown in a frame.
const CONTENT_SECURITY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'; object-src 'none'";

/// Sets the headers that the answer's type needs, except those that a handler has already set.
pub(super) fn secure(headers: &mut HeaderMap) {
    // JSON with a word such as `<script>` must not be taken for a page.
    headers.entry(X_CONTENT_TYPE_OPTIONS).or_insert(const { HeaderValue::from_static("nosniff") });
    let Some(kind) = headers.get(CONTENT_TYPE) else { return };
    let is_html =
        kind.as_bytes().get(..9).is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/html"));
    if is_html {
        for (name, value) in [
            (CONTENT_SECURITY_POLICY, CONTENT_SECURITY),
            (REFERRER_POLICY, "no-referrer"),
            (X_FRAME_OPTIONS, "DENY"),
        ] {
            headers.entry(name).or_insert(HeaderValue::from_static(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secured(kind: Option<&str>) -> HeaderMap {
        let mut headers: HeaderMap =
            kind.map(|kind| (CONTENT_TYPE, kind.parse().unwrap())).into_iter().collect();
        secure(&mut headers);
        headers
    }

    #[test]
    fn pages_get_all_of_them_and_other_answers_one() {
        for kind in ["text/html", "text/html; charset=utf-8", "Text/HTML"] {
            let headers = secured(Some(kind));
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff", "{kind}");
            assert_eq!(headers[X_FRAME_OPTIONS], "DENY", "{kind}");
            assert_eq!(headers[REFERRER_POLICY], "no-referrer", "{kind}");
            let policy = headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.starts_with("default-src 'self';"), "{policy}");
            assert!(!policy.contains("unsafe"), "{policy}");
        }
        for kind in [None, Some("application/json"), Some("text/plain"), Some("text")] {
            let headers = secured(kind);
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff", "{kind:?}");
            assert!(!headers.contains_key(CONTENT_SECURITY_POLICY), "{kind:?}");
        }
    }

    #[test]
    fn what_a_handler_sets_stays() {
        let mut headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("text/html")),
            (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        ]);
        secure(&mut headers);
        assert_eq!(headers[REFERRER_POLICY], "same-origin");
        assert_eq!(headers.get_all(REFERRER_POLICY).iter().count(), 1);
    }
}

//! What HTTP demands of a request's head that the HTTP library lets pass.

use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};

use crate::http::ApiError;

/// Refuses a request in HTTP/1.1 without exactly one Host (RFC 9112, section 3.2), and a body in a form that is not
/// understood (section 6.1). HTTP/2 has other means for both, and the HTTP library checks them.
pub(super) fn check(request: &Request) -> Result<(), ApiError> {
    if request.version() != Version::HTTP_11 {
        return Ok(());
    }
    let headers = request.headers();
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_host(host) => {}
        (None, _) => return Err(ApiError::BadHost { reason: "there is no Host header" }),
        (_, Some(_)) => {
            return Err(ApiError::BadHost { reason: "there is more than one Host header" });
        }
        _ => return Err(ApiError::BadHost { reason: "the Host header contains no valid host" }),
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(only), None) if only.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") => {
            Ok(())
        }
        _ => Err(ApiError::UnknownTransferCoding),
    }
}

/// Whether it has only characters of a host and a port (RFC 3986, section 3.2). It may be empty.
fn is_host(value: &HeaderValue) -> bool {
    let of_host = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(byte);
    value.as_bytes().iter().all(of_host)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn checked(version: Version, headers: &[(&str, &str)]) -> Option<u16> {
        let mut request = Request::builder().version(version);
        for &(name, value) in headers {
            request = request.header(name, value);
        }
        check(&request.body(Body::empty()).unwrap()).err().map(|error| error.status().as_u16())
    }

    #[test]
    fn http_1_1_has_one_host() {
        for host in ["a", "a.org:80", "[::1]:8080", "", "xn--a", "under_score"] {
            assert_eq!(checked(Version::HTTP_11, &[("host", host)]), None, "{host}");
        }
        for host in ["a b", "a/b", "user@a", "a, b", "a?b", "a\\b"] {
            assert_eq!(checked(Version::HTTP_11, &[("host", host)]), Some(400), "{host}");
        }
        assert_eq!(checked(Version::HTTP_11, &[]), Some(400));
        assert_eq!(checked(Version::HTTP_11, &[("host", "a"), ("host", "a")]), Some(400));
        for version in [Version::HTTP_10, Version::HTTP_2] {
            assert_eq!(checked(version, &[]), None, "{version:?}");
        }
    }

    #[test]
    fn chunked_is_the_only_coding() {
        let coded = |codings: &[&str]| {
            let codings = codings.iter().map(|&coding| ("transfer-encoding", coding));
            let headers: Vec<_> = [("host", "a")].into_iter().chain(codings).collect();
            checked(Version::HTTP_11, &headers)
        };
        for codings in [&[][..], &["chunked"], &["Chunked "]] {
            assert_eq!(coded(codings), None, "{codings:?}");
        }
        for codings in [&["gzip, chunked"][..], &["gzip", "chunked"], &["chunked, chunked"], &["x"]]
        {
            assert_eq!(coded(codings), Some(501), "{codings:?}");
        }
    }
}

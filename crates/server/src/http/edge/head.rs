//! Checks the head of a request: its size, and the framing that HTTP demands.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, Version, header};

use crate::http::ApiError;

/// Maximum number of header fields of a request.
const MAX_FIELDS: usize = 100;

/// Size limits of a request's head, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The limit of path and query string.
    pub(super) max_uri_bytes: usize,
    /// The limit of all header fields: names, values, and four bytes for what separates them in
    /// HTTP/1.1.
    pub(super) max_header_bytes: usize,
}

impl Limits {
    /// Refuses a head that is too large, or that HTTP does not allow although the HTTP library lets
    /// it pass.
    pub(super) fn check(&self, request: &Request) -> Result<(), ApiError> {
        self.check_size(request.uri(), request.headers())?;
        check_framing(request)
    }

    fn check_size(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        if uri.path_and_query().is_some_and(|target| target.as_str().len() > self.max_uri_bytes) {
            return Err(ApiError::UriTooLong { limit: self.max_uri_bytes });
        }
        // The HTTP library has the same limit for HTTP/1.1. Each field costs more memory than its
        // bytes.
        if headers.len() > MAX_FIELDS {
            return Err(ApiError::HeadersTooLarge { limit: self.max_header_bytes });
        }
        let field =
            |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
        if headers.iter().map(field).sum::<usize>() > self.max_header_bytes {
            return Err(ApiError::HeadersTooLarge { limit: self.max_header_bytes });
        }
        Ok(())
    }
}

/// Refuses an HTTP/1.1 request without exactly one Host (RFC 9112, section 3.2), or with a body in
/// an unknown transfer coding (section 6.1). HTTP/2 does both differently, and the HTTP library
/// checks it.
fn check_framing(request: &Request) -> Result<(), ApiError> {
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

/// Whether a value has only characters that are allowed in a host and a port (RFC 3986, section
/// 3.2). It may be empty.
fn is_host(value: &HeaderValue) -> bool {
    let of_host = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(byte);
    value.as_bytes().iter().all(of_host)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_head_may_be_as_large_as_the_limits_and_no_larger() {
        let limits = Limits { max_uri_bytes: 10, max_header_bytes: 20 };
        let check = |target: &str, value: &'static str| {
            let headers =
                HeaderMap::from_iter([("x-name".parse().unwrap(), value.parse().unwrap())]);
            limits.check_size(&target.parse().unwrap(), &headers)
        };
        assert_eq!(check("/234?67890", "1234567890"), Ok(()));
        let too_long = ApiError::UriTooLong { limit: 10 };
        assert_eq!(check("/234?678901", "1234567890"), Err(too_long));
        let too_large = ApiError::HeadersTooLarge { limit: 20 };
        assert_eq!(check("/234?67890", "12345678901"), Err(too_large));
    }

    fn checked(version: Version, headers: &[(&str, &str)]) -> Option<u16> {
        let mut request = Request::builder().version(version);
        for &(name, value) in headers {
            request = request.header(name, value);
        }
        check_framing(&request.body(Body::empty()).unwrap())
            .err()
            .map(|error| error.kind().0.as_u16())
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

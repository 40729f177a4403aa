//! How large the head of a request may be.

use axum::http::{HeaderMap, Uri};

use crate::http::ApiError;

/// Header fields of a request.
const MAX_FIELDS: usize = 100;

/// Bounds of a request's head, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Of path and query string.
    pub(super) max_uri_bytes: usize,
    /// Of all header fields: names, values, and four bytes for what is between them in HTTP/1.1.
    pub(super) max_header_bytes: usize,
}

impl Limits {
    /// Refuses what is too large.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        if uri.path_and_query().is_some_and(|target| target.as_str().len() > self.max_uri_bytes) {
            return Err(ApiError::UriTooLong { limit: self.max_uri_bytes });
        }
        // HTTP/1.1 takes no more either. Each costs more memory than its bytes.
        if headers.len() > MAX_FIELDS {
            return Err(ApiError::HeadersTooLarge { limit: self.max_header_bytes });
        }
        let field = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
            name.as_str().len() + value.len() + 4
        };
        if headers.iter().map(field).sum::<usize>() > self.max_header_bytes {
            return Err(ApiError::HeadersTooLarge { limit: self.max_header_bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_may_be_as_large_as_the_limits_and_no_larger() {
        let limits = Limits { max_uri_bytes: 10, max_header_bytes: 20 };
        let check = |target: &str, value: &'static str| {
            let headers =
                HeaderMap::from_iter([("x-name".parse().unwrap(), value.parse().unwrap())]);
            limits.check(&target.parse().unwrap(), &headers)
        };
        assert_eq!(check("/234?67890", "1234567890"), Ok(()));
        let too_long = ApiError::UriTooLong { limit: 10 };
        assert_eq!(check("/234?678901", "1234567890"), Err(too_long));
        let too_large = ApiError::HeadersTooLarge { limit: 20 };
        assert_eq!(check("/234?67890", "12345678901"), Err(too_large));
    }
}

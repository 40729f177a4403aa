//! The labels of requests in metrics: routes, methods and statuses, from fixed lists, so that
//! clients can't make up new ones. Threads count by an index into each list.

use axum::http::Method;

/// Maximum number of routes. The code that makes an [`Observer`](super::Observer) gives their
/// labels.
pub(crate) const MAX_ROUTES: usize = 40;

/// The label of any method or status that is not in its list.
const OTHER: &str = "other";

/// Number of methods that are counted separately, including `other`.
pub(crate) const METHOD_COUNT: usize = METHODS.len() + 1;

const METHODS: [&str; 7] = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"];

/// Statuses that are counted separately, the most frequent first: they are searched in this order.
const STATUSES: [u16; 32] = [
    200, 404, 429, 422, 400, 503, 504, 204, 206, 301, 302, 304, 307, 308, 401, 403, 405, 406, 408,
    409, 410, 411, 412, 413, 414, 415, 417, 421, 431, 500, 501, 507,
];

/// Number of statuses that are counted separately, including `other`.
pub(crate) const STATUS_COUNT: usize = STATUSES.len() + 1;

#[inline]
pub(crate) fn method_index(method: &Method) -> usize {
    let name = method.as_str();
    METHODS.iter().position(|known| *known == name).unwrap_or(METHODS.len())
}

pub(crate) fn method_name(index: usize) -> &'static str {
    METHODS.get(index).copied().unwrap_or(OTHER)
}

#[inline]
pub(crate) fn status_index(status: u16) -> usize {
    STATUSES.iter().position(|&known| known == status).unwrap_or(STATUSES.len())
}

pub(crate) fn status_name(index: usize) -> String {
    STATUSES.get(index).map_or_else(|| OTHER.to_owned(), u16::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_statuses_that_clients_make_up_are_one() {
        assert_eq!(method_name(method_index(&Method::HEAD)), "HEAD");
        let invented = Method::from_bytes(b"BREW").unwrap();
        assert_eq!(method_name(method_index(&invented)), "other");
        assert_eq!(status_name(status_index(429)), "429");
        assert_eq!(status_name(status_index(418)), "other");
    }
}

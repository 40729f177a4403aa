//! Which route a request is for: by template, so that clients can't make up new ones.

use std::sync::LazyLock;

use axum::http::Method;

use crate::models::split_named_path;

/// All routes, as the router has them, and last what stands for every other path.
pub(crate) const ROUTES: [&str; 20] = [
    "/nearest",
    "/analogy",
    "/rank",
    "/similarity",
    "/odd-one-out",
    "/evaluate",
    "/",
    "/explorer/{file}",
    "/words",
    "/words/{word}",
    "/model",
    "/models",
    "/admin/reload",
    "/metrics",
    "/openapi.yaml",
    "/docs",
    "/docs/",
    "/docs/{file}",
    "/health/live",
    "/health/ready",
];

/// How many routes are told apart: those, and all other paths together.
pub(crate) const ROUTE_COUNT: usize = ROUTES.len() + 1;

/// What is said of the others.
const OTHER: &str = "other";

/// How many methods are told apart.
pub(crate) const METHOD_COUNT: usize = METHODS.len() + 1;

const METHODS: [&str; 7] = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"];

/// Statuses that are told apart; they are looked for from the first.
const STATUSES: [u16; 29] = [
    200, 404, 429, 422, 400, 503, 504, 204, 206, 301, 302, 304, 307, 308, 401, 403, 405, 406, 408,
    411, 412, 413, 414, 415, 417, 421, 431, 500, 501,
];

/// How many statuses are told apart.
pub(crate) const STATUS_COUNT: usize = STATUSES.len() + 1;

/// The place of a path's route in [`ROUTES`], which is the same behind `/models/NAME`; what is behind its end
/// stands for all others.
#[inline]
pub(crate) fn place_of_route(path: &str) -> usize {
    static ROUTER: LazyLock<matchit::Router<usize>> = LazyLock::new(|| {
        let mut router = matchit::Router::new();
        for (place, route) in ROUTES.iter().enumerate() {
            router.insert(*route, place).expect("the router has them, too");
        }
        router
    });
    match path {
        // These come by the hundred thousand.
        "/nearest" => 0,
        "/analogy" => 1,
        _ => {
            let path = match split_named_path(path) {
                None => path,
                Some((_, "" | "/")) => "/model",
                Some((_, rest)) => rest,
            };
            ROUTER.at(path).map_or(ROUTES.len(), |found| *found.value)
        }
    }
}

/// What the route in this place is called.
pub(crate) fn route_name(place: usize) -> &'static str {
    ROUTES.get(place).copied().unwrap_or(OTHER)
}

/// The place of a method.
#[inline]
pub(crate) fn place_of_method(method: &Method) -> usize {
    let name = method.as_str();
    METHODS.iter().position(|known| *known == name).unwrap_or(METHODS.len())
}

/// What the method in this place is called.
pub(crate) fn method_name(place: usize) -> &'static str {
    METHODS.get(place).copied().unwrap_or(OTHER)
}

/// The place of a status.
#[inline]
pub(crate) fn place_of_status(status: u16) -> usize {
    STATUSES.iter().position(|&known| known == status).unwrap_or(STATUSES.len())
}

/// What the status in this place is called.
pub(crate) fn status_name(place: usize) -> String {
    STATUSES.get(place).map_or_else(|| OTHER.to_owned(), u16::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_of_the_router_is_known_and_no_other() {
        let router = include_str!("../http/routes/mod.rs").split(".route(\"").skip(1);
        let mut router: Vec<&str> = router.map(|rest| rest.split('"').next().unwrap()).collect();
        let mut known = ROUTES.to_vec();
        router.sort_unstable();
        router.dedup();
        known.sort_unstable();
        assert_eq!(known, router);
    }

    #[test]
    fn paths_are_told_apart_by_their_template_alone() {
        for (path, route) in [
            ("/nearest", "/nearest"),
            ("/analogy", "/analogy"),
            ("/words", "/words"),
            ("/words/king", "/words/{word}"),
            ("/words/%ff", "/words/{word}"),
            ("/", "/"),
            ("/models", "/models"),
            ("/docs", "/docs"),
            ("/docs/", "/docs/"),
            ("/docs/start.js", "/docs/{file}"),
            ("/docs/a/b", "other"),
            ("/models/en", "/model"),
            ("/models/en/", "/model"),
            ("/models/en/nearest", "/nearest"),
            ("/models/a%2Fb/words/king", "/words/{word}"),
            ("/models/en/made-up", "other"),
            ("/words/a/b", "other"),
            ("/nearest/", "other"),
            ("/made-up", "other"),
            ("*", "other"),
            ("", "other"),
        ] {
            assert_eq!(route_name(place_of_route(path)), route, "{path}");
        }
    }

    #[test]
    fn methods_and_statuses_that_clients_make_up_are_one() {
        assert_eq!(method_name(place_of_method(&Method::HEAD)), "HEAD");
        let invented = Method::from_bytes(b"BREW").unwrap();
        assert_eq!(method_name(place_of_method(&invented)), "other");
        assert_eq!(status_name(place_of_status(429)), "429");
        assert_eq!(status_name(place_of_status(418)), "other");
    }
}

//! The routes: what is derived from their table ([`table`]), and their handlers.

mod compare;
mod count;
mod docs;
mod embed;
mod explorer;
mod heads;
mod info;
mod operations;
mod other_names;
mod plan;
mod public;
mod rank;
mod rows;
pub(super) mod search;
mod set_room;
mod sources;
mod suggestions;
mod table;
mod tables;
mod words;

use std::borrow::Cow;
use std::sync::LazyLock;

use axum::http::{Extensions, Method, Uri};
use percent_encoding::percent_decode_str;

use self::table::{ROUTES, Route};
use crate::http::ApiError;
use crate::http::edge::keys;
use crate::http::render::problem::ErrorForm;
use crate::models::Call;
use crate::observe::MAX_ROUTES;

pub(crate) use self::public::check_public_routes;
pub(super) use self::table::{Kind, Way};
pub use self::words::MAX_LISTED;

/// The route with this [`index`], and its way for this method. `is_named` says whether a model's
/// name is before its path.
///
/// # Errors
/// `no_such_route`, or `method_not_allowed`.
#[inline]
pub(super) fn find(
    index: usize,
    is_named: bool,
    method: &Method,
    uri: &Uri,
) -> Result<(&'static Route, Way), ApiError> {
    let route = ROUTES.get(index).filter(|route| route.is_of_a_model() || !is_named);
    let route = route.ok_or_else(|| no_such_route(uri))?;
    let other = || route.or.and_then(|path| ROUTES.iter().find(|other| other.path == path));
    let way = route.way(method).or_else(|| other()?.way(method)).ok_or_else(|| {
        let allowed = route.allowed();
        ApiError::MethodNotAllowed { method: method.to_string(), allowed }
    })?;
    Ok((route, way))
}

fn no_such_route(uri: &Uri) -> ApiError {
    // A request target without a slash has no path.
    let path = if uri.path().is_empty() { uri.to_string() } else { uri.path().to_owned() };
    let meant = other_names::meant(&path);
    ApiError::NoSuchRoute { path, meant }
}

/// Whether the answers of the route with this [`index`] to this method have `Server-Timing`.
#[inline]
pub(super) fn searches(index: usize, method: &Method) -> bool {
    ROUTES.get(index).is_some_and(|route| match route.kind {
        Kind::Search => true,
        // `POST /`, which is one of texts.
        Kind::Public => *method == Method::POST && route.post.is_some(),
        _ => false,
    })
}

/// The form of the errors of the route with this [`index`].
#[inline]
pub(super) fn error_form(index: usize) -> ErrorForm {
    ROUTES.get(index).map_or(ErrorForm::Problem, |route| route.errors)
}

/// Checks that this caller may change rows.
fn require_write(call: &Call, extensions: &Extensions) -> Result<(), ApiError> {
    if call.service().has_keys { keys::require_write(extensions) } else { Ok(()) }
}

/// Checks that this caller has a key, where the path alone is public.
fn require_key(call: &Call, extensions: &Extensions) -> Result<(), ApiError> {
    if call.service().has_keys { keys::require_any(extensions) } else { Ok(()) }
}

/// The last part of a path, decoded.
fn last_part(uri: &Uri) -> Result<Cow<'_, str>, ApiError> {
    decode(uri.path().rsplit('/').next().unwrap_or_default())
}

/// Decodes a part of a path. It is not form-encoded as parameters are, so a plus is a plus.
fn decode(part: &str) -> Result<Cow<'_, str>, ApiError> {
    let not_utf8 = |_| ApiError::NotUtf8 { what: "the path".to_owned() };
    percent_decode_str(part).decode_utf8().map_err(not_utf8)
}

/// Method and path of every route.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROUTES.iter().flat_map(|route| {
        let methods =
            [route.get.map(|_| "GET"), route.post.map(|_| "POST"), route.delete.map(|_| "DELETE")];
        methods.into_iter().flatten().map(move |method| (method, route.path))
    })
}

/// The model's name in a path `/models/NAME/ROUTE`, decoded. `None` for a path without one.
pub(super) fn model_name(path: &str) -> Option<Result<Cow<'_, str>, ApiError>> {
    split_model_name(path).map(|(name, _)| decode(name))
}

/// Splits a path `/models/NAME/ROUTE` into the name, not decoded, and the route's path.
fn split_model_name(path: &str) -> Option<(&str, &str)> {
    let named = path.strip_prefix("/models/")?;
    let (name, path) = named.split_at(named.find('/').unwrap_or(named.len()));
    // `/models/NAME` itself describes that model.
    Some((name, if matches!(path, "" | "/") { "/model" } else { path }))
}

/// The routes' labels in metrics and logs: their paths, and last `other`, for every other path. A
/// request is counted by the index of its route ([`index`]).
pub(crate) const LABELS: [&str; ROUTES.len() + 1] = {
    let mut labels = ["other"; ROUTES.len() + 1];
    let mut index = 0;
    while index < ROUTES.len() {
        labels[index] = ROUTES[index].path;
        index += 1;
    }
    labels
};

const _: () = assert!(LABELS.len() <= MAX_ROUTES, "observe::MAX_ROUTES is too small");

/// The index of a path's route, or that of `other`. It is the same behind `/models/NAME`. `front`
/// finds it once for each request.
#[inline]
pub(super) fn index(path: &str) -> usize {
    static ROUTER: LazyLock<matchit::Router<usize>> = LazyLock::new(|| {
        let mut router = matchit::Router::new();
        for (index, route) in ROUTES.iter().enumerate() {
            router.insert(route.path, index).expect("no two paths match the same");
        }
        router
    });
    // Most paths have neither a parameter nor a model's name.
    if let Some(index) = ROUTES.iter().position(|route| route.path == path) {
        return index;
    }
    let path = split_model_name(path).map_or(path, |(_, path)| path);
    ROUTER.at(path).map_or(ROUTES.len(), |found| *found.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::http::edge::keys::covers;

    fn label(path: &str) -> &'static str {
        LABELS[index(path)]
    }

    #[test]
    fn every_route_is_found_by_its_path_and_method() {
        let uri = Uri::from_static("/x");
        for route in ROUTES {
            let path = route
                .path
                .replace("{word}", "king")
                .replace("{key}", "k")
                .replace("{file}", "x.js");
            assert_eq!(label(&path), route.path);
            let is_search = searches(index(&path), &Method::GET);
            assert_eq!(is_search, route.kind == Kind::Search, "{path}");
            let is_found = |is_named, method| find(index(&path), is_named, &method, &uri).is_ok();
            for method in [Method::GET, Method::POST, Method::DELETE, Method::PUT] {
                let other = ROUTES.iter().find(|other| Some(other.path) == route.or);
                let has = |route: &Route| route.way(&method).is_some();
                let has_way = has(route) || other.is_some_and(has);
                assert_eq!(is_found(false, method.clone()), has_way, "{path}");
                let is_of_a_model = has_way && route.is_of_a_model();
                assert_eq!(is_found(true, method), is_of_a_model, "{path}");
            }
            assert_eq!(is_found(false, Method::HEAD), is_found(false, Method::GET), "{path}");
        }
        assert_eq!(LABELS.last(), Some(&"other"));
        let error = |path, method| find(index(path), false, &method, &uri).unwrap_err();
        let nowhere = ApiError::NoSuchRoute { path: "/x".to_owned(), meant: None };
        assert_eq!(error("/nowhere", Method::GET), nowhere);
        for (path, methods) in
            [("/nearest", "GET,HEAD,POST"), ("/words", "GET,HEAD"), ("/rank", "POST")]
        {
            let method = "DELETE".to_owned();
            let expected = ApiError::MethodNotAllowed { method, allowed: methods };
            assert_eq!(error(path, Method::DELETE), expected);
        }
    }

    #[test]
    fn names_of_models_are_taken_out_of_paths() {
        let of = |path: &'static str| {
            let (_, rest) = split_model_name(path)?;
            Some((model_name(path)?.ok()?.into_owned(), rest.to_owned()))
        };
        let expected = |name: &str, rest: &str| Some((name.to_owned(), rest.to_owned()));
        assert_eq!(of("/models/en/nearest"), expected("en", "/nearest"));
        assert_eq!(of("/models/a%2Fb+c/words/x"), expected("a/b+c", "/words/x"));
        assert_eq!(of("/models/en"), expected("en", "/model"));
        assert_eq!(
            (of("/models/en/"), of("/models//x")),
            (expected("en", "/model"), expected("", "/x"))
        );
        assert_eq!((of("/models"), of("/modelsen/x"), of("/models/%ff/x")), (None, None, None));
    }

    #[test]
    fn paths_are_told_apart_by_their_template_alone() {
        for (path, route) in [
            ("/words/king", "/words/{word}"),
            ("/words/%ff", "/words/{word}"),
            ("/rows", "/rows"),
            ("/rows/delete", "/rows/delete"),
            ("/models/t/rows/delete", "/rows/delete"),
            ("/rows/a%2Fb", "/rows/{key}"),
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
            assert_eq!(label(path), route, "{path}");
        }
    }

    #[test]
    fn the_routes_that_are_public_by_default_are_those_of_the_settings() {
        let public = Config::defaults().public_routes;
        for route in ROUTES {
            let is_public = public.iter().any(|setting| covers(setting, route.path));
            assert_eq!(is_public, route.kind == Kind::Public, "{}", route.path);
        }
    }

    #[test]
    fn the_text_lists_what_people_ask() {
        let elsewhere = [
            "/words/{word}",
            "/docs/",
            "/docs/{file}",
            "/",
            "/explorer/{file}",
            "/admin/reload",
            "/rows/{key}",
        ];
        for route in ROUTES {
            let lists = |line: &&str| line.split([' ', ',', '?']).any(|part| part == route.path);
            let lines: Vec<_> = info::START.lines().filter(lists).collect();
            assert_eq!(lines.is_empty(), elsewhere.contains(&route.path), "{}", route.path);
            for line in lines {
                let way = if line.starts_with("  GET  /") { route.get } else { route.post };
                assert!(way.is_some(), "{line}");
            }
        }
    }
}

//! The routes: what is derived from their table ([`table`]), and their handlers.

mod compare;
mod docs;
mod explorer;
mod heads;
mod info;
mod operations;
mod plan;
mod public;
mod rank;
pub(super) mod search;
mod suggestions;
mod table;
mod words;

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use axum::http::{Method, Uri};
use percent_encoding::percent_decode_str;

use self::table::{Mention, ROUTES, Route};
use crate::http::ApiError;
use crate::observe::MAX_ROUTES;

pub(crate) use self::public::check_public_routes;
pub(super) use self::table::{Access, Way};
pub use self::words::MAX_LISTED;

/// The route for this method of the path with this [`index`]. `is_named` says whether a model's
/// name is before the path.
///
/// # Errors
/// `no_such_route`, or `method_not_allowed`.
#[inline]
pub(super) fn find(
    index: usize,
    is_named: bool,
    method: &Method,
    uri: &Uri,
) -> Result<&'static Route, ApiError> {
    let Methods { get, post } = METHODS[index];
    let found = match *method {
        Method::GET | Method::HEAD => get,
        Method::POST => post,
        _ => None,
    };
    let is_here = |route: &&Route| route.is_of_a_model || !is_named;
    found.filter(is_here).ok_or_else(|| {
        let allowed = match (get.filter(is_here), post.filter(is_here)) {
            (Some(_), Some(_)) => "GET,HEAD,POST",
            (Some(_), None) => "GET,HEAD",
            (None, Some(_)) => "POST",
            (None, None) => return no_such_route(uri),
        };
        ApiError::MethodNotAllowed { method: method.to_string(), allowed }
    })
}

fn no_such_route(uri: &Uri) -> ApiError {
    // A request target without a slash has no path.
    let path = if uri.path().is_empty() { uri.to_string() } else { uri.path().to_owned() };
    ApiError::NoSuchRoute { path }
}

/// Whether the answers of the path with this [`index`] have `Server-Timing`.
#[inline]
pub(super) fn searches(index: usize) -> bool {
    let Methods { get, post } = METHODS[index];
    get.or(post).is_some_and(|route| route.searches)
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
    ROUTES.iter().map(|route| (route.method.name(), route.path))
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
/// request is counted by the index of its route's label ([`index`]).
pub(crate) const LABELS: [&str; count_paths(ROUTES.len()) + 1] = {
    let mut labels = ["other"; count_paths(ROUTES.len()) + 1];
    let mut row = 0;
    while row < ROUTES.len() {
        if is_first(row) {
            labels[count_paths(row)] = ROUTES[row].path;
        }
        row += 1;
    }
    labels
};

const _: () = assert!(LABELS.len() <= MAX_ROUTES, "observe::MAX_ROUTES is too small");

/// The routes of a path.
#[derive(Clone, Copy)]
struct Methods {
    get: Option<&'static Route>,
    post: Option<&'static Route>,
}

/// For each label, the routes of its path; `other` has none.
static METHODS: [Methods; LABELS.len()] = {
    let mut methods = [Methods { get: None, post: None }; LABELS.len()];
    let mut row = 0;
    while row < ROUTES.len() {
        let of_path = &mut methods[count_paths(first_of_path(row))];
        match ROUTES[row].method {
            table::Method::Get => of_path.get = Some(&ROUTES[row]),
            table::Method::Post => of_path.post = Some(&ROUTES[row]),
        }
        row += 1;
    }
    methods
};

/// The index of the label of a path's route. It is the same behind `/models/NAME`. `front` finds it
/// once for each request.
#[inline]
pub(super) fn index(path: &str) -> usize {
    static ROUTER: LazyLock<matchit::Router<usize>> = LazyLock::new(|| {
        let mut router = matchit::Router::new();
        for (index, path) in LABELS[..LABELS.len() - 1].iter().enumerate() {
            router.insert(*path, index).expect("no two paths match the same");
        }
        router
    });
    // Most paths have neither a parameter nor a model's name, and the first of all is the most
    // frequent.
    if let Some(index) = LABELS.iter().position(|label| *label == path) {
        return index;
    }
    let path = split_model_name(path).map_or(path, |(_, path)| path);
    ROUTER.at(path).map_or(LABELS.len() - 1, |found| *found.value)
}

/// How many different paths the table has before this row.
const fn count_paths(rows: usize) -> usize {
    let (mut row, mut count) = (0, 0);
    while row < rows {
        count += is_first(row) as usize;
        row += 1;
    }
    count
}

const fn is_first(row: usize) -> bool {
    first_of_path(row) == row
}

/// The first row with the same path as this one.
const fn first_of_path(row: usize) -> usize {
    let mut first = 0;
    // No path has a capital letter, and constants have no `==` for strings.
    while !ROUTES[first].path.eq_ignore_ascii_case(ROUTES[row].path) {
        first += 1;
    }
    first
}

/// The text at `/`: where to begin, for people with curl.
fn start_text() -> String {
    let mut text =
        "Kindred finds the exact nearest neighbours of words in a table of word vectors.\n\n"
            .to_owned();
    let mut paths = Vec::new();
    for route in ROUTES {
        match route.mention {
            Mention::None => {}
            Mention::OnNextLine => paths.push(route.path),
            Mention::Line(example, about) => {
                paths.push(example);
                let (method, paths) = (route.method.name(), std::mem::take(&mut paths).join(", "));
                let line = format!("  {method:<4} {paths:<20} {about}");
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
    }
    text
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
    fn every_route_is_found_by_its_label_and_method() {
        let uri = Uri::from_static("/x");
        for route in ROUTES {
            let path = route.path.replace("{word}", "king").replace("{file}", "x.js");
            assert_eq!(label(&path), route.path);
            let found = |is_named, method: &Method| find(index(&path), is_named, method, &uri);
            let method = route.method.name().parse().unwrap();
            let itself = found(false, &method).unwrap();
            assert_eq!((itself.path, itself.method), (route.path, route.method));
            assert_eq!(found(true, &method).is_ok(), route.is_of_a_model, "{path}");
            assert_eq!(found(false, &Method::HEAD).is_ok(), found(false, &Method::GET).is_ok());
            assert_eq!(found(false, &Method::DELETE).unwrap_err().kind().0, 405);
            assert_eq!(searches(index(&path)), route.searches, "{path}");
        }
        assert_eq!(LABELS.iter().filter(|label| **label == "/nearest").count(), 1);
        assert_eq!(LABELS.last(), Some(&"other"));
        let nowhere = find(LABELS.len() - 1, false, &Method::GET, &uri);
        assert_eq!(nowhere.err(), Some(ApiError::NoSuchRoute { path: "/x".to_owned() }));
        let allowed = |path| match find(index(path), false, &Method::PUT, &uri) {
            Err(ApiError::MethodNotAllowed { allowed, .. }) => allowed,
            _ => "",
        };
        let of = ["/nearest", "/words", "/rank"].map(allowed);
        assert_eq!(of, ["GET,HEAD,POST", "GET,HEAD", "POST"]);
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
            assert_eq!(is_public, route.access == Access::Public, "{}", route.path);
        }
    }

    #[test]
    fn the_text_lists_what_people_ask() {
        let lines = "\
Kindred finds the exact nearest neighbours of words in a table of word vectors.

  GET  /nearest?word=frog&k=5
  GET  /analogy?expression=king+-+man+%2B+woman
  POST /nearest, /analogy   the same as JSON, one query or a batch
  POST /rank, /similarity, /odd-one-out
  POST /classify            labels of texts, by a trained head
  POST /expand              terms that texts imply, with weights
  GET  /words?prefix=fro    words of the model
  GET  /models, /model      models served; each has its own routes, such as /models/NAME/nearest
  GET  /heads               heads of the model, which classify and expand texts
  GET  /health/live, /health/ready
  GET  /metrics             metrics for Prometheus
  GET  /docs, /openapi.yaml the whole API, as interactive documentation and as an OpenAPI file
";
        assert_eq!(start_text(), lines);
    }
}

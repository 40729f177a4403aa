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

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, Uri};
use axum::middleware::{self, from_fn};
use axum::response::{IntoResponse, Response};
use tower::Service;

use self::table::{Access, Mention, ROUTES, Route, State};
use crate::http::ApiError;
use crate::http::edge::keys::require_admin;
use crate::http::render::server_timing;
use crate::models::Reloader;
use crate::observe::MAX_ROUTES;

pub(crate) use self::public::check_public_routes;
pub(super) use self::table::HotRoute;
pub use self::words::MAX_LISTED;

/// The routers. Handlers find their request's [`Call`](crate::models::Call) in its extensions.
#[derive(Clone)]
pub(super) struct Routes {
    /// All routes by their own paths. Those of a model use the default model.
    plain: Router,
    /// Behind `/models/NAME`: the routes of that model.
    of_model: Router,
}

impl Routes {
    /// Makes the routers; `reloader` is the state of their handlers.
    pub(super) fn new(reloader: &Arc<Reloader>) -> Self {
        let of_model = |route: &&Route| route.is_of_a_model;
        Self {
            plain: router(ROUTES.iter(), reloader.clone()),
            of_model: router(ROUTES.iter().filter(of_model), reloader.clone()),
        }
    }

    /// Answers a request. Its path is already without a model's name; `has_name` says whether there
    /// was one.
    pub(super) async fn answer(&self, has_name: bool, request: Request) -> Response {
        let router = if has_name { &self.of_model } else { &self.plain };
        router.clone().call(request).await.unwrap_or_else(|never| match never {})
    }
}

fn router<'a>(routes: impl Iterator<Item = &'a Route>, state: State) -> Router {
    let (mut searching, mut others) = (Router::new(), Router::new());
    for route in routes {
        let mut handler = (route.handler)();
        if route.access == Access::Admin {
            handler = handler.route_layer(from_fn(admins_only));
        }
        let part = if route.searches { &mut searching } else { &mut others };
        *part = std::mem::take(part).route(route.path, handler);
    }
    searching
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn(server_timing::layer))
        .merge(others)
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(no_such_route)
        .with_state(state)
}

async fn admins_only(request: Request, next: middleware::Next) -> Response {
    match require_admin(request.extensions()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

async fn no_such_route(uri: Uri) -> ApiError {
    // A request target without a slash has no path.
    let path = if uri.path().is_empty() { uri.to_string() } else { uri.path().to_owned() };
    ApiError::NoSuchRoute { path }
}

async fn method_not_allowed(method: Method) -> ApiError {
    ApiError::MethodNotAllowed { method: method.to_string() }
}

/// Method and path of every route.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROUTES.iter().map(|route| (route.method.name(), route.path))
}

/// Splits a path `/models/NAME/ROUTE` into the name, not decoded, and the route's path. `None` for
/// a path without a model's name.
pub(super) fn split_model_name(path: &str) -> Option<(&str, &str)> {
    let named = path.strip_prefix("/models/")?;
    let (name, path) = named.split_at(named.find('/').unwrap_or(named.len()));
    // `/models/NAME` itself describes that model.
    Some((name, if matches!(path, "" | "/") { "/model" } else { path }))
}

/// The way of this method of the route with this [`index`], if it bypasses the router.
#[inline]
pub(super) fn hot_route(route: usize, method: &Method) -> Option<HotRoute> {
    let way = HOT[route]?;
    let known = match way {
        HotRoute::Nearest | HotRoute::Analogy => Method::GET,
        HotRoute::Post(_) => Method::POST,
    };
    (*method == known).then_some(way)
}

/// Whether the route with this [`index`] is for admins.
pub(super) fn is_for_admins(route: usize) -> bool {
    let mut routes = ROUTES.iter().filter(|one| one.access == Access::Admin);
    routes.any(|one| one.path == LABELS[route])
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

/// For each label, the way of its route, if that bypasses the router.
static HOT: [Option<HotRoute>; LABELS.len()] = {
    let mut hot = [None; LABELS.len()];
    let mut row = 0;
    while row < ROUTES.len() {
        if ROUTES[row].hot_route.is_some() {
            assert!(is_first(row), "its method that goes past the router comes first");
            hot[count_paths(row)] = ROUTES[row].hot_route;
        }
        row += 1;
    }
    hot
};

/// The index of the label of a path's route. It is the same behind `/models/NAME`. `front` finds it
/// once for each request.
#[inline]
pub(super) fn index(path: &str) -> usize {
    static ROUTER: LazyLock<matchit::Router<usize>> = LazyLock::new(|| {
        let mut router = matchit::Router::new();
        for (index, path) in LABELS[..LABELS.len() - 1].iter().enumerate() {
            router.insert(*path, index).expect("the router has them, too");
        }
        router
    });
    let is_hot = |(way, known): (&Option<HotRoute>, &&str)| way.is_some() && *known == path;
    if let Some(index) = HOT.iter().zip(&LABELS).position(is_hot) {
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

/// Whether no row before this one has the same path.
const fn is_first(row: usize) -> bool {
    let mut before = 0;
    while before < row {
        // No path has a capital letter, and constants have no `==` for strings.
        if ROUTES[before].path.eq_ignore_ascii_case(ROUTES[row].path) {
            return false;
        }
        before += 1;
    }
    true
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
    fn every_route_has_its_label_and_its_way() {
        for route in ROUTES {
            let path = route.path.replace("{word}", "king").replace("{file}", "x.js");
            assert_eq!(label(&path), route.path);
            if route.hot_route.is_some() {
                for path in [path.clone(), format!("/models/en{path}")] {
                    let is_hot = |method| hot_route(index(&path), &method).is_some();
                    assert!(is_hot(route.method.name().parse().unwrap()));
                    assert!(!is_hot(Method::DELETE));
                }
            }
        }
        assert_eq!(LABELS.iter().filter(|label| **label == "/nearest").count(), 1);
        assert_eq!(LABELS.last(), Some(&"other"));
        let is_hot = |path| hot_route(index(path), &Method::POST).is_some();
        assert!(!is_hot("/rank") && !is_hot("/nearest"), "of the latter its GET is meant");
        assert!(is_for_admins(index("/admin/reload")) && !is_for_admins(index("/nearest")));
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

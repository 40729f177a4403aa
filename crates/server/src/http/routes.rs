mod compare;
mod evaluate;
mod plan;
mod rank;
pub(super) mod search;
mod suggestions;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, Uri};
use axum::middleware;
use axum::response::Response;
use axum::routing::{get, post};
use tower::Service;

use super::{ApiError, admin, docs, explorer, health, info, metrics, server_timing};
use crate::models::Reloader;
pub use words::MAX_LISTED;

/// All routes. Handlers find their request's [`Call`](crate::models::Call) in its extensions.
#[derive(Clone)]
pub(super) struct Routes {
    /// By their own paths: what speaks to the default model, and what speaks to none.
    plain: Router,
    /// Behind `/models/NAME`: what speaks to that model.
    of_model: Router,
}

impl Routes {
    /// With this behind the route that loads models again.
    pub(super) fn new(reloader: Arc<Reloader>) -> Self {
        let plain = of_model()
            .route("/", get(explorer::start))
            .route("/explorer/{file}", get(explorer::file))
            .route("/models", get(info::models))
            .route("/metrics", get(metrics::get_metrics))
            .route("/openapi.yaml", get(info::openapi))
            .route("/docs", get(docs::page))
            .route("/docs/", get(docs::elsewhere))
            .route("/docs/{file}", get(docs::file))
            .route("/health/live", get(health::live))
            .route("/health/ready", get(health::ready))
            .route("/admin/reload", post(admin::post_reload))
            .method_not_allowed_fallback(method_not_allowed)
            .fallback(no_such_route)
            .with_state(reloader);
        let of_model = of_model()
            .route("/", get(info::model))
            .method_not_allowed_fallback(method_not_allowed)
            .fallback(no_such_route)
            .with_state(());
        Self { plain, of_model }
    }

    /// Answers a request, whose path is without its model's name if it has one.
    pub(super) async fn answer(&self, has_name: bool, request: Request) -> Response {
        let router = if has_name { &self.of_model } else { &self.plain };
        router.clone().call(request).await.unwrap_or_else(|never| match never {})
    }
}

/// The routes that speak to one model.
fn of_model<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let searching = Router::new()
        .route("/nearest", get(search::get_nearest).post(search::post_nearest))
        .route("/analogy", get(search::get_analogy).post(search::post_analogy))
        .route("/rank", post(rank::post_rank))
        .route("/similarity", post(compare::post_similarity))
        .route("/odd-one-out", post(compare::post_odd_one_out))
        .route("/evaluate", post(evaluate::post_evaluate))
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn(server_timing::layer));
    Router::new()
        .merge(searching)
        .route("/words", get(words::get_words))
        .route("/words/{word}", get(words::get_word))
        .route("/model", get(info::model))
}

async fn no_such_route(uri: Uri) -> ApiError {
    // A target without a slash has no path.
    let path = if uri.path().is_empty() { uri.to_string() } else { uri.path().to_owned() };
    ApiError::NoSuchRoute { path }
}

async fn method_not_allowed(method: Method) -> ApiError {
    ApiError::MethodNotAllowed { method: method.to_string() }
}

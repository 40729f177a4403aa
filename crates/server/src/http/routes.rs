use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::middleware;
use axum::routing::{get, post};

use super::state::AppState;
use super::{
    ApiError, ask, body, evaluate, health, info, metrics, odd_one_out, rank, server_timing,
    similarity, words,
};

/// All routes over this state.
pub(super) fn router(state: Arc<AppState>) -> Router {
    let searching = Router::new()
        .route("/nearest", get(ask::get_nearest).post(ask::post_nearest))
        .route("/analogy", get(ask::get_analogy).post(ask::post_analogy))
        .route("/rank", post(rank::post_rank))
        .route("/similarity", post(similarity::post_similarity))
        .route("/odd-one-out", post(odd_one_out::post_odd_one_out))
        .route("/evaluate", post(evaluate::post_evaluate))
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(state.body_limit))
        .layer(middleware::from_fn_with_state(state.body_limit, body::refuse_large))
        .layer(middleware::from_fn_with_state(state.clone(), server_timing::layer));
    Router::new()
        .merge(searching)
        .route("/", get(info::start_page))
        .route("/words", get(words::get_words))
        .route("/words/{word}", get(words::get_word))
        .route("/model", get(info::model))
        .route("/metrics", get(metrics::get_metrics))
        .route("/openapi.yaml", get(info::openapi))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(no_such_route)
        .with_state(state)
}

async fn no_such_route(uri: Uri) -> ApiError {
    // A target without a slash has no path.
    let path = if uri.path().is_empty() { uri.to_string() } else { uri.path().to_owned() };
    ApiError::NoSuchRoute { path }
}

async fn method_not_allowed(method: Method) -> ApiError {
    ApiError::MethodNotAllowed { method: method.to_string() }
}

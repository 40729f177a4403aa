use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::trace::TraceLayer;
use tracing::error;

use super::state::AppState;
use super::{ApiError, ask, body, health, info, server_timing};

/// All routes over this state.
pub fn router(state: Arc<AppState>) -> Router {
    let searching = Router::new()
        .route("/nearest", get(ask::get_nearest).post(ask::post_nearest))
        .route("/analogy", get(ask::get_analogy).post(ask::post_analogy))
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(state.body_limit))
        .layer(middleware::from_fn_with_state(state.body_limit, body::refuse_large))
        .layer(middleware::from_fn(server_timing::layer));
    Router::new()
        .merge(searching)
        .route("/", get(info::start_page))
        .route("/model", get(info::model))
        .route("/openapi.yaml", get(info::openapi))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(no_such_route)
        .layer(CatchPanicLayer::custom(panicked))
        // Statuses from 500 up are documented answers; what is our fault is logged where it happens.
        .layer(TraceLayer::new_for_http().on_failure(()))
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

/// A fault of ours must not take the connection, let alone the process.
fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    error!("a handler panicked: {}", said.unwrap_or("without a word"));
    ApiError::Internal.into_response()
}

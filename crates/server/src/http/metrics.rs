//! `GET /metrics`: what the service does, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};

use super::state::AppState;
use super::{ApiError, health, negotiation, query_string};
use crate::observe::{Format, Known};

/// How long the figures wait to hear that the engine answers: much less than Prometheus waits for them.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// `GET /metrics`: all figures, in the form that is asked for.
pub(super) async fn get_metrics(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    query_string::nothing(uri.query().unwrap_or_default())?;
    let format = Format::wanted(&headers);
    if format == Format::Text {
        negotiation::check(&headers, &negotiation::TEXT)?;
    }
    let ready = tokio::time::timeout(READY_WITHIN, health::check(&state)).await;
    let is_ready = matches!(ready, Ok(Ok(())));
    // Sums over all threads, and files of the system: not between two requests of a connection.
    let text = tokio::task::spawn_blocking(move || {
        let known = Known { engine: state.engine.name, is_ready };
        state.observer.write(known, &state.engine_figures(), format)
    });
    let text = text.await.map_err(|_| ApiError::Internal)?;
    Ok(([(header::CONTENT_TYPE, format.content_type())], text).into_response())
}

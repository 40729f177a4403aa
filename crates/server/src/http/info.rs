//! What is served: the model, the contract, and where to begin.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::state::AppState;
use super::{ApiError, answer, negotiation};

const OPENAPI: &str = include_str!("../../../../openapi.yaml");

const START_PAGE: &str = "\
Kindred finds kindred words: exact nearest neighbours in a table of word vectors.

  GET  /nearest?word=frog&k=5
  GET  /analogy?expression=king+-+man+%2B+woman
  POST /nearest, /analogy   the same as JSON, single or many at once
  POST /rank, /similarity, /odd-one-out, /evaluate
  GET  /words?prefix=fro    which words there are
  GET  /model               what is served
  GET  /health/live, /health/ready
  GET  /metrics             what it does, for Prometheus
  GET  /openapi.yaml        all of it in detail
";

/// `GET /`: where to begin, as text.
pub(super) async fn start_page(headers: HeaderMap, uri: Uri) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::TEXT)?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], START_PAGE).into_response())
}

/// `GET /openapi.yaml`: the contract for clients.
pub(super) async fn openapi(headers: HeaderMap, uri: Uri) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::YAML)?;
    Ok(([(header::CONTENT_TYPE, "application/yaml")], OPENAPI).into_response())
}

/// `GET /model`: name, shape, engine and provenance of the model.
pub(super) async fn model(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::JSON)?;
    let from = &state.model.header().provenance;
    Ok(answer::json(&json!({
        "name": state.model.name(),
        "rows": state.model.rows(),
        "dim": state.model.dim(),
        "engine": {"name": state.engine.name, "detail": state.engine.detail},
        "provenance": {
            "source": from.source,
            "source_format": from.source_format,
            "source_bytes": from.source_bytes,
            "source_checksum": from.source_checksum.to_string(),
            "prepared_by": from.prepared_by,
            "prepared_at": from.prepared_at,
            "bad_rows_skipped": from.bad_rows_skipped,
            "duplicate_words_dropped": from.duplicate_words_dropped,
        },
    })))
}

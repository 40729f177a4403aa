//! Whether the process answers, and whether it answers right.

use std::sync::Arc;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::json;

use super::error::whole_seconds;
use super::{ApiError, negotiation, render};
use crate::models::{Call, NotReady, ServedModel, Service};

/// `GET /health/live`: the process answers.
pub(super) async fn live(headers: HeaderMap, uri: Uri) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::JSON)?;
    Ok(render::json(&json!({"status": "live"})))
}

/// `GET /health/ready`: of every model, a query went through its queue and came back right, within the last
/// second or now.
pub(super) async fn ready(call: Call, headers: HeaderMap, uri: Uri) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::JSON)?;
    check(call.service(), call.all_models()).await?;
    Ok(render::json(&json!({"status": "ready"})))
}

/// Whether the service is ready, or why not.
pub(super) async fn check(service: &Service, models: &[Arc<ServedModel>]) -> Result<(), ApiError> {
    if service.is_draining() {
        return Err(ApiError::Draining);
    }
    for served in models {
        served.readiness.check(&served.queue).await.map_err(|why| match why {
            NotReady::EngineGone => ApiError::EngineGone,
            NotReady::EngineFailed => ApiError::EngineFailed,
            NotReady::EngineRestarting { retry_after } => {
                ApiError::EngineRestarting { retry_after_seconds: whole_seconds(retry_after) }
            }
            NotReady::TooSlow(_) | NotReady::WrongAnswer => {
                ApiError::NotReady { reason: format!("the model `{}`: {why}", served.name()) }
            }
        })?;
    }
    Ok(())
}

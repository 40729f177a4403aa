//! Whether the process answers, and whether it answers right.

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::json;

use super::{ApiError, answer, negotiation};
use crate::models::{Call, NotReady};

/// `GET /health/live`: the process answers.
pub(super) async fn live(headers: HeaderMap, uri: Uri) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::JSON)?;
    Ok(answer::json(&json!({"status": "live"})))
}

/// `GET /health/ready`: of every model, a query went through its queue and came back right, within the last
/// second or now.
pub(super) async fn ready(call: Call, headers: HeaderMap, uri: Uri) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::JSON)?;
    if call.service().is_draining() {
        return Err(ApiError::Draining);
    }
    for served in call.all_models() {
        served.readiness.check(&served.queue).await.map_err(|why| match why {
            NotReady::EngineGone => ApiError::EngineGone,
            NotReady::EngineFailed => ApiError::EngineFailed,
            NotReady::TooSlow(_) | NotReady::WrongAnswer => {
                ApiError::NotReady { reason: format!("the model `{}`: {why}", served.name()) }
            }
        })?;
    }
    Ok(answer::json(&json!({"status": "ready"})))
}

//! What operators ask for.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{Extensions, HeaderMap, Uri};
use axum::response::Response;

use super::edge::keys::require_admin;
use super::{ApiError, negotiation, render};
use crate::models::{ReloadError, Reloader};

/// `POST /admin/reload`: reads keys, certificates and the settings' models again, as SIGHUP does, and says what became of it. It goes
/// on if the caller hangs up.
pub(super) async fn post_reload(
    State(reloader): State<Arc<Reloader>>,
    headers: HeaderMap,
    uri: Uri,
    extensions: Extensions,
) -> Result<Response, ApiError> {
    require_admin(&extensions)?;
    negotiation::check_plain_get(&headers, &uri, &negotiation::JSON)?;
    let reloaded = reloader.reload().await.map_err(|e| match e {
        ReloadError::InProgress => ApiError::ReloadInProgress,
        e => ApiError::ReloadFailed { reason: e.to_string() },
    })?;
    Ok(render::json(&reloaded))
}

//! `POST /models`, `DELETE /models/NAME` and `POST /models/NAME/fold`: tables are made, deleted and
//! folded while the service runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::{Extensions, HeaderValue, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::info::description;
use super::model_name;
use super::search::Answering;
use crate::http::ApiError;
use crate::http::edge::keys;
use crate::http::parse::body::Received;
use crate::http::parse::negotiation::{self, JSON, check_plain_get};
use crate::http::parse::tables::TableBody;
use crate::http::render;
use crate::http::render::server_timing::Timing;
use crate::models::{Call, Reloader};

/// Checks that this caller may make and delete tables.
fn require_tables(call: &Call, extensions: &Extensions) -> Result<(), ApiError> {
    if call.service().has_keys { keys::require_admin(extensions) } else { Ok(()) }
}

/// `POST /models`
pub(super) fn post(call: Call, request: Request, reloader: &Arc<Reloader>) -> Answering {
    let reloader = reloader.clone();
    Box::pin(async move {
        require_tables(&call, request.extensions())?;
        let received = Received::receive(&call, request).await?.whole()?;
        let (name, schema) = received.parse::<TableBody>()?.check()?;
        negotiation::check(&received.headers, &JSON)?;
        if call.deadline(None)? <= Instant::now() {
            return Err(ApiError::DeadlinePassed);
        }
        let served = reloader.create_table(name, schema).await?;
        let mut response = render::json(&description(&served), None);
        *response.status_mut() = StatusCode::CREATED;
        let name = utf8_percent_encode(served.name(), NON_ALPHANUMERIC);
        let place = HeaderValue::from_str(&format!("/models/{name}"));
        response.headers_mut().insert(header::LOCATION, place.expect("it is ASCII"));
        Ok((response, Timing::default()))
    })
}

/// A request is told this long before its deadline that its fold goes on.
const BEFORE: Duration = Duration::from_millis(100);

/// `POST /fold`, of the default model, and `POST /models/NAME/fold`
pub(super) fn fold(call: Call, request: Request, reloader: &Arc<Reloader>) -> Answering {
    let reloader = reloader.clone();
    Box::pin(async move {
        require_tables(&call, request.extensions())?;
        let (head, _) = request.into_parts();
        check_plain_get(&head.headers, &head.uri, &JSON)?;
        let (name, until) = (call.name().to_owned(), call.deadline(None)? - BEFORE);
        let folding = {
            let name = name.clone();
            tokio::spawn(async move { reloader.fold_table(&name).await })
        };
        let (status, outcome, rows) = match tokio::time::timeout_at(until.into(), folding).await {
            Err(_) => (StatusCode::ACCEPTED, "running", None),
            Ok(folded) => match folded.map_err(|_| ApiError::Internal)?? {
                Some(rows) => (StatusCode::OK, "folded", Some(rows)),
                None => (StatusCode::OK, "unchanged", None),
            },
        };
        let mut answer = json!({"name": name, "outcome": outcome});
        if let Some(rows) = rows {
            answer["rows"] = json!(rows);
        }
        let mut response = render::json(&answer, None);
        *response.status_mut() = status;
        Ok((response, Timing::default()))
    })
}

/// `DELETE /models/NAME`
pub(super) fn delete(call: Call, request: Request, reloader: &Arc<Reloader>) -> Answering {
    let reloader = reloader.clone();
    Box::pin(async move {
        require_tables(&call, request.extensions())?;
        let (head, _) = request.into_parts();
        check_plain_get(&head.headers, &head.uri, &JSON)?;
        // Nobody deletes the default model without its name.
        let Some(name) = model_name(head.uri.path()).transpose()? else {
            let (method, allowed) = (head.method.to_string(), "GET,HEAD");
            return Err(ApiError::MethodNotAllowed { method, allowed });
        };
        reloader.delete_table(name.to_string()).await?;
        let answer = json!({"name": name, "outcome": "deleted"});
        Ok((render::json(&answer, None), Timing::default()))
    })
}

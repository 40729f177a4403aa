//! `POST /models` and `DELETE /models/NAME`: tables are made and deleted while the service runs.

use std::sync::Arc;

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
        let served = reloader.create_table(name, schema).await?;
        let mut response = render::json(&description(&served), None);
        *response.status_mut() = StatusCode::CREATED;
        let name = utf8_percent_encode(served.name(), NON_ALPHANUMERIC);
        let place = HeaderValue::from_str(&format!("/models/{name}"));
        response.headers_mut().insert(header::LOCATION, place.expect("it is ASCII"));
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

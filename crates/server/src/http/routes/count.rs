//! `/count`: how many rows meet a filter.

use std::time::Instant;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use kindred::question::meeting;
use serde::Serialize;

use super::search::{Timed, of_filter};
use crate::http::ApiError;
use crate::http::offload::{check_deadline, stage};
use crate::http::parse::body::Received;
use crate::http::parse::comparisons::CountBody;
use crate::http::parse::negotiation::{self, Format};
use crate::http::parse::query_string;
use crate::http::render::server_timing::Timing;
use crate::http::render::{self, caching};
use crate::models::{Call, Pinned};
use crate::workers::Cancellation;

#[derive(Serialize)]
struct CountAnswer<'a> {
    model: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    count: usize,
    rows: usize,
}

/// `GET /count`
pub(in crate::http) async fn get_count(call: Call, headers: HeaderMap, uri: Uri) -> Timed {
    let (filter, timeout_ms) = query_string::count(uri.query().unwrap_or_default())?;
    let count = counted(&call, filter, call.deadline(timeout_ms)?).await?;
    negotiation::check(&headers, &negotiation::JSON)?;
    let known = caching::not_modified(&headers, call.pinned(), Format::Json);
    Ok((known.unwrap_or_else(|| write(call.pinned(), count)), Timing::default()))
}

async fn counted(call: &Call, filter: String, deadline: Instant) -> Result<usize, ApiError> {
    call.log_queries(1);
    let (cost, same) = (of_filter(call, &filter), call.clone());
    let count = move |cancellation: &Cancellation| count_of(&same, &filter, cancellation);
    stage(call, cost, deadline, count).await
}

fn count_of(call: &Call, filter: &str, cancellation: &Cancellation) -> Result<usize, ApiError> {
    let is_wanted = || !cancellation.is_cancelled();
    Ok(meeting(call.rows(), call.sets.wanted_while(&is_wanted), filter)?.len())
}

/// `POST /count`
pub(in crate::http) async fn post_count(call: Call, received: Received) -> Timed {
    call.log_queries(1);
    let (cost, latest, same) = (received.cost(), received.latest(&call), call.clone());
    let count = move |cancellation: &Cancellation| {
        let received = received.whole()?;
        let (filter, timeout_ms) = received.parse::<CountBody>()?.check()?;
        let cancellation = cancellation.at_most(same.deadline(timeout_ms)?);
        check_deadline(&cancellation)?;
        let count = count_of(&same, &filter, &cancellation)?;
        negotiation::check(&received.headers, &negotiation::JSON)?;
        Ok(count)
    };
    let count = stage(&call, cost, latest, count).await?;
    Ok((write(call.pinned(), count), Timing::default()))
}

fn write(asked: Pinned<'_>, count: usize) -> Response {
    let (model, version, position) = (asked.name(), asked.model.version(), asked.position());
    let rows = asked.live_rows();
    let answer = CountAnswer { model, version, position, count, rows };
    caching::tagged(asked, Format::Json, render::bytes(&answer), None)
}

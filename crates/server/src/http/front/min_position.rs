//! The header `Min-Position`: whoever changed rows reads them as they are after the change, or not at
//! all. It has `VERSION/POSITION` of a change of this table, or the positions of systems that the
//! table follows: `postgres:0/16B3748`.

use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use kindred::live::changes::Sources;

use crate::http::ApiError;
use crate::http::parse::invalid;
use crate::http::parse::sources::version_and_position;
use crate::models::Call;

/// Maximum time that a request waits for a position.
const LONGEST: Duration = Duration::from_secs(2);

/// The same request, about rows at this position or at a later one, once they are there.
///
/// # Errors
/// If they are not soon, or the model has another version.
pub(super) async fn reached(call: Call, wanted: &HeaderValue) -> Result<Call, ApiError> {
    let text = String::from_utf8_lossy(wanted.as_bytes());
    let invalid = || invalid("Min-Position").with_found(Some(kindred::cut(text.to_string())));
    if text.contains(':') {
        let wanted: Sources = text.parse().map_err(|_| invalid())?;
        if wanted.forgotten().next().is_some() {
            return Err(invalid());
        }
        return reached_of_sources(call, &wanted).await;
    }
    let (version, position) = version_and_position(&text).ok_or_else(invalid)?;
    let found = call.pinned().position().unwrap_or(0);
    let is_version = version == call.model.version();
    if is_version && position <= found {
        return Ok(call);
    }
    if is_version && let Some((live, writer)) = call.live.as_ref().zip(call.writer.as_ref()) {
        let has_come = || live.now().position() >= position;
        if writer.reaches(has_come, until(&call)).await {
            let now = live.now();
            return Ok(call.at(now));
        }
    }
    let found = format!("{}/{found}", call.model.version());
    Err(ApiError::PositionNotReached { found, wanted: text.into_owned() })
}

/// The same request, about rows with everything that was in these sources at these positions.
async fn reached_of_sources(call: Call, wanted: &Sources) -> Result<Call, ApiError> {
    if let Some((live, writer)) = call.live.as_ref().zip(call.writer.as_ref()) {
        let has_come = || writer.reports.have_reached(live.now().sources(), wanted);
        if writer.reaches(has_come, until(&call)).await {
            let now = live.now();
            return Ok(call.at(now));
        }
    }
    let (stored, mut found) = (call.position().map(|at| at.sources()), Vec::new());
    for (name, _) in wanted.iter() {
        let reached = match (stored, &call.writer) {
            (Some(stored), Some(writer)) => writer.reports.reached(stored, name),
            (stored, _) => stored.and_then(|stored| stored.get(name)),
        };
        found.push(match reached {
            Some(position) => format!("{name}:{position}"),
            None => format!("no position of {name}"),
        });
    }
    let (found, wanted) = (found.join(","), wanted.to_string());
    Err(ApiError::PositionNotReached { found, wanted })
}

/// The time until which a request waits.
fn until(call: &Call) -> Instant {
    call.latest().min(Instant::now() + LONGEST)
}

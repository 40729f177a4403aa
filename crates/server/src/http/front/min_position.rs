//! The header `Min-Position: VERSION/POSITION`: whoever changed rows reads them as they are after
//! the change, or not at all.

use std::time::{Duration, Instant};

use axum::http::HeaderValue;

use crate::http::ApiError;
use crate::http::parse::invalid;
use crate::models::Call;

/// Maximum time that a request waits for a position.
const LONGEST: Duration = Duration::from_secs(2);

/// The same request, about rows at this position or at a later one, once they are there.
///
/// # Errors
/// If they are not soon, or the model has another version.
pub(super) async fn reached(call: Call, wanted: &HeaderValue) -> Result<Call, ApiError> {
    let text = String::from_utf8_lossy(wanted.as_bytes());
    let (version, position) = parse(&text).ok_or_else(|| {
        invalid("Min-Position").with_found(Some(kindred::text::cut(text.to_string())))
    })?;
    let found = call.pinned().position().unwrap_or(0);
    let is_version = version == call.model.version();
    if is_version && position <= found {
        return Ok(call);
    }
    let until = call.latest().min(Instant::now() + LONGEST);
    if is_version
        && let Some((live, writer)) = call.live.as_ref().zip(call.writer.as_ref())
        && writer.reaches(position, until).await
    {
        let now = live.now();
        return Ok(call.at(now));
    }
    let found = format!("{}/{found}", call.model.version());
    Err(ApiError::PositionNotReached { found, wanted: text.into_owned() })
}

fn parse(text: &str) -> Option<(&str, u64)> {
    let (version, position) = text.trim().split_once('/')?;
    Some((version, position.parse().ok()?))
}

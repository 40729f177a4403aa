//! `GET /sources` and `POST /sources`: how far a table has followed other systems, and what their
//! followers report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::{HeaderMap, Uri};
use kindred::live::Live;
use serde_json::{Map, Value, json};

use super::rows::write::writable;
use super::search::{Answered, Answering};
use crate::http::ApiError;
use crate::http::offload::stage;
use crate::http::parse::body::Received;
use crate::http::parse::negotiation;
use crate::http::parse::negotiation::check_plain_get;
use crate::http::parse::sources::{SourceReport, SourcesBody};
use crate::http::render;
use crate::http::render::server_timing::Timing;
use crate::http::render::size::Size;
use crate::models::{Call, Reloader, Report, Writer};
use crate::workers::Cancellation;

/// `GET /sources`: the sources of a table, with the positions that its rows have reached.
pub(super) async fn get(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    check_plain_get(&headers, &uri, &negotiation::JSON)?;
    described(&call)
}

fn described(call: &Call) -> Answered {
    let position = call.position();
    let names = position.map(|at| at.sources().iter()).into_iter().flatten();
    let size: Size = names.map(|(name, _)| Size::of_text(name.len())).sum();
    let room = size.room(call)?;
    let mut sources = Vec::new();
    for (name, stored) in position.map(|at| at.sources().iter()).into_iter().flatten() {
        let mut source = Map::new();
        source.insert("name".into(), name.into());
        source.insert("position".into(), stored.to_string().into());
        if let Some(report) = call.writer.as_ref().and_then(|one| one.reports.of(name)) {
            let Report { behind, retained, .. } = report;
            let reached = report.ahead_of(Some(stored)).unwrap_or(stored);
            source.insert("reached".into(), reached.to_string().into());
            source.insert("behind".into(), behind.into());
            source.insert("retained".into(), retained.into());
            let seconds = report.behind_now().as_secs_f64();
            source.insert("behind_seconds".into(), ((seconds * 1e3).round() / 1e3).into());
        }
        sources.push(Value::Object(source));
    }
    let position = position.map_or(0, |at| at.position());
    let described = json!({
        "model": call.name(),
        "version": call.model.version(),
        "position": position,
        "sources": sources,
    });
    Ok(render::json(&described, room))
}

/// `POST /sources`: a follower reports how far it is.
pub(super) fn post(call: Call, request: Request, _: &Arc<Reloader>) -> Answering {
    Box::pin(async move {
        let (live, writer) = writable(&call, &request)?;
        let received = Received::receive(&call, request).await?;
        let (cost, latest, same) = (received.cost(), received.latest(&call), call.clone());
        let take = move |_: &Cancellation| {
            let received = received.whole()?;
            let reports = received.parse::<SourcesBody>()?.check()?;
            negotiation::check(&received.headers, &negotiation::JSON)?;
            same.log_queries(reports.len());
            put(&live, &writer, &reports)
        };
        stage(&call, cost, latest, take).await?;
        Ok((described(&call)?, Timing::default()))
    })
}

/// Takes all reports, or none.
fn put(live: &Live, writer: &Writer, reports: &[SourceReport]) -> Result<(), ApiError> {
    let now = live.now();
    let mut taken = Vec::with_capacity(reports.len());
    for report in reports {
        // Only these, so that reports take no more memory than batches have paid for.
        if now.sources().get(&*report.name).is_none() {
            return Err(ApiError::NoSuchSource { name: report.name.clone() });
        }
        let behind_by = Duration::from_secs_f64(report.behind_seconds);
        let (reached, behind, at) = (report.position()?, report.behind, Instant::now());
        let retained = report.retained;
        taken.push((&report.name, Report { reached, behind, behind_by, retained, at }));
    }
    taken.into_iter().for_each(|(name, report)| writer.reports.put(name, report));
    Ok(())
}

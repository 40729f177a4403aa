//! `GET /metrics`: what the service does, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};

use super::aside::{Work, elsewhere};
use super::parse::query_string;
use super::render::counted;
use super::render::size::room_for;
use super::{ApiError, health, negotiation};
use crate::models::{Call, Reloader};
use crate::observe::{Format, Known};
use crate::workers::Patience;

/// How long the figures wait to hear that the engine answers: much less than Prometheus waits for them.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// `GET /metrics`: all figures, in the form that is asked for.
pub(super) async fn get_metrics(
    State(reloader): State<Arc<Reloader>>,
    call: Call,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    query_string::nothing(uri.query().unwrap_or_default())?;
    let format = Format::wanted(&headers);
    if format == Format::Text {
        negotiation::check(&headers, &negotiation::TEXT)?;
    }
    let (service, models) = (reloader.models().service(), reloader.models().current());
    let ready = health::check(service, models.models());
    let ready = tokio::time::timeout(READY_WITHIN, ready).await;
    let is_ready = matches!(ready, Ok(Ok(())));
    // Sums over all threads, and files of the system: not between two requests of a connection.
    const NUMBERS: usize = 5000;
    let write = move |_: &Patience| {
        let memory = &reloader.models().service().memory;
        let known = Known { engine: models.models()[0].engine.name, is_ready, memory };
        let figures: Vec<_> = models.models().iter().map(|model| model.figures()).collect();
        Ok(reloader.models().service().observer.write(known, &figures, format))
    };
    let text = elsewhere(&call, Work::of_writing(NUMBERS), call.latest(), write).await?;
    let body = match room_for(&call, text.len() as u64)? {
        Some(room) => counted(text.into(), room).into(),
        None => Body::from(text),
    };
    Ok(([(header::CONTENT_TYPE, format.content_type())], body).into_response())
}

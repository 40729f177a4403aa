//! The `Server-Timing` header: where a request's time went, in milliseconds.

use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

/// What a handler knows of its request's time, left on the response for [`layer`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timing {
    /// In the queue, before the first pass.
    pub(super) queue: Duration,
    /// In passes of the engine.
    pub(super) engine: Duration,
}

/// Writes the header on every answer of a route, errors too.
pub(super) async fn layer(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let mut response = next.run(request).await;
    let timing = response.extensions().get::<Timing>().copied().unwrap_or_default();
    let value = format!(
        "queue;dur={:.3}, engine;dur={:.3}, total;dur={:.3}",
        milliseconds(timing.queue),
        milliseconds(timing.engine),
        milliseconds(started.elapsed()),
    );
    let value = HeaderValue::try_from(value).expect("digits and names");
    response.headers_mut().insert(HeaderName::from_static("server-timing"), value);
    response
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

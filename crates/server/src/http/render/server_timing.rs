//! The `Server-Timing` header: where a request's time went, in milliseconds, and which engine
//! searched.

use std::time::{Duration, Instant};

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use kindred::contract::EngineDescription;

use crate::observe::Stages;

pub(in crate::http) const NAME: HeaderName = HeaderName::from_static("server-timing");

/// What a handler knows about the time of its request.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::http) struct Timing {
    /// Time in the queue, before the first pass.
    pub(in crate::http) queue: Duration,
    /// Time in passes of the engine.
    pub(in crate::http) engine: Duration,
    /// When writing the answer began.
    pub(in crate::http) encoding_since: Option<Instant>,
}

impl Timing {
    /// The stages of a request whose answer was ready at `ended`; `None` if nothing was searched.
    pub(in crate::http) fn stages(&self, ended: Instant) -> Option<Stages> {
        let Self { queue, engine, encoding_since } = *self;
        let encode = encoding_since.map(|since| ended.saturating_duration_since(since));
        (!engine.is_zero()).then_some(Stages { queue, engine, encode })
    }
}

/// Writes the header on an answer.
pub(in crate::http) fn write(
    response: &mut Response,
    engine: &EngineDescription,
    timing: Timing,
    total: Duration,
) {
    response.headers_mut().insert(NAME, value(engine, timing, total));
}

/// The header's value, written by hand, because formatting three floats takes longer than looking
/// up a word.
fn value(engine: &EngineDescription, timing: Timing, total: Duration) -> HeaderValue {
    let mut text = Vec::with_capacity(128);
    text.extend_from_slice(b"queue;dur=");
    milliseconds(&mut text, timing.queue);
    text.extend_from_slice(b", engine;desc=\"");
    text.extend_from_slice(engine.name.as_bytes());
    text.extend_from_slice(b"\";dur=");
    milliseconds(&mut text, timing.engine);
    text.extend_from_slice(b", total;dur=");
    milliseconds(&mut text, total);
    HeaderValue::from_bytes(&text).expect("digits and names")
}

/// Appends a duration in milliseconds, to the nearest microsecond.
fn milliseconds(text: &mut Vec<u8>, duration: Duration) {
    let microseconds = (duration.as_nanos() + 500) / 1000;
    let (whole, rest) = (microseconds / 1000, (microseconds % 1000) as u16);
    let whole = u64::try_from(whole).unwrap_or(u64::MAX);
    text.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    text.push(b'.');
    text.extend([rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_milliseconds_with_three_digits() {
        let engine = EngineDescription { name: "cuda", detail: String::new() };
        let timing = Timing {
            queue: Duration::from_nanos(9_600),
            engine: Duration::from_micros(123),
            ..Timing::default()
        };
        assert_eq!(
            value(&engine, timing, Duration::from_micros(12_001_050)),
            r#"queue;dur=0.010, engine;desc="cuda";dur=0.123, total;dur=12001.050"#
        );
    }
}

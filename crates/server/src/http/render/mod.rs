//! Writes results as JSON or arrays, straight into the body, and counts the memory of answers.

pub(super) mod caching;
pub(super) mod neighbors;
pub(super) mod problem;
pub(super) mod server_timing;
pub(super) mod size;
pub(super) mod table;

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::ApiError;
use super::parse::negotiation::{Format, NPY_NAME};
use scheduler::account::Reservation;

/// JSON as an answer, in memory that was counted for it. A small one needs none.
pub(super) fn json(answer: &impl Serialize, room: Option<Reservation>) -> Response {
    response(Format::Json, bytes(answer), room)
}

/// A value as JSON.
pub(super) fn bytes(answer: &impl Serialize) -> Vec<u8> {
    bytes_of_about(0, answer)
}

/// The same of a long answer, whose size is known: a body that grows while it is written would take
/// twice the memory it needs.
pub(super) fn bytes_of_about(size: usize, answer: &impl Serialize) -> Vec<u8> {
    let mut body = Vec::with_capacity(size);
    write(&mut body, answer);
    body
}

/// The answer to one of the items of a request, or its error.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ItemAnswer<'a, T> {
    Found(T),
    Failed { error: Cow<'a, ApiError> },
}

/// The request's deadline with its body's `timeout_ms` taken into account. Later stages read it.
#[derive(Clone)]
pub(super) struct Until(pub(super) Instant);

/// An answer whose memory is counted until its last byte is sent.
struct Counted<B> {
    body: B,
    _room: Reservation,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Counted<B> {
    fn as_ref(&self) -> &[u8] {
        self.body.as_ref()
    }
}

/// In the extensions of an answer: its memory is counted.
#[derive(Clone)]
pub(super) struct IsCounted;

/// Bytes whose memory `room` counts until the last of them is dropped.
pub(super) fn counted(mut body: Vec<u8>, mut room: Reservation) -> Bytes {
    shrink(&mut body);
    room.set(body.capacity() as u64);
    Bytes::from_owner(Counted { body, _room: room })
}

/// The same for an answer that has been written, in one piece.
pub(super) fn count(response: &mut Response, room: Reservation) {
    let mut context = Context::from_waker(Waker::noop());
    let frame = match Pin::new(response.body_mut()).poll_frame(&mut context) {
        Poll::Ready(Some(Ok(frame))) => frame,
        _ => return,
    };
    if let Ok(body) = frame.into_data() {
        *response.body_mut() = Bytes::from_owner(Counted { body, _room: room }).into();
    }
}

fn shrink(body: &mut Vec<u8>) {
    if body.capacity() - body.len() > body.len() / 4 {
        body.shrink_to_fit();
    }
}

/// Appends a value as JSON.
fn write(body: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(body, value).expect("texts and finite numbers become JSON");
}

/// An answer in this format, in memory that was counted for it. One that is larger than was
/// estimated, and for which there is no room, becomes an error.
pub(super) fn response(format: Format, mut body: Vec<u8>, room: Option<Reservation>) -> Response {
    let is_counted = room.is_some();
    let body = match room {
        None => Body::from(body),
        Some(mut room) => {
            shrink(&mut body);
            if let Err(full) = room.settle(body.capacity() as u64) {
                return ApiError::from(full).into_response();
            }
            Bytes::from_owner(Counted { body, _room: room }).into()
        }
    };
    let mut response = Response::new(body);
    let media_type = HeaderValue::from_static(match format {
        Format::Json => "application/json",
        Format::Npy => NPY_NAME,
    });
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    if is_counted {
        response.extensions_mut().insert(IsCounted);
    }
    response
}

//! Entity tags, which let clients cache answers. The same question to the same version of a model
//! has the same answer. So answers of searches and words are tagged with the model's name,
//! version and position, and the tag is known without a search; those of heads with the head as well. All others
//! are tagged with a hash of their content.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::size::room_for;
use crate::http::ApiError;
use crate::http::parse::negotiation::Format;
use crate::http::render;
use crate::models::{Call, Pinned, ServedHead, tag_with, weak_tag};
use scheduler::account::Reservation;

/// Answers may be cached but must be revalidated, because the model may have been replaced.
pub(in crate::http) const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// An answer in this format, tagged with the version of its model, in memory that was counted for
/// it.
pub(in crate::http) fn tagged(
    asked: Pinned<'_>,
    format: Format,
    body: Vec<u8>,
    room: Option<Reservation>,
) -> Response {
    let mut response = render::response(format, body, room);
    insert(&mut response, &tag(asked, format));
    response
}

/// 304, if the client of a GET already has the answer of this version in this format (RFC 9110,
/// section 13.1.2). Clients send only tags that they received here, so comparing the tag is enough.
/// `*` matches nothing.
pub(in crate::http) fn not_modified(
    headers: &HeaderMap,
    asked: Pinned<'_>,
    format: Format,
) -> Option<Response> {
    not_modified_by(headers, &tag(asked, format))
}

/// 304, if the client already has the answer with this tag.
pub(in crate::http) fn not_modified_by(headers: &HeaderMap, tag: &str) -> Option<Response> {
    has(headers, tag).then(|| {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        insert(&mut response, tag);
        response
    })
}

/// The tag of the answers of a head to one text: they depend on the model and on the head.
pub(in crate::http) fn tag_of_head(asked: Pinned<'_>, head: &ServedHead) -> String {
    tag_with(&asked.etag(), format_args!("{:016x}", head.digest))
}

/// An array has another tag than the same answer as JSON, so that no cache takes one for the other.
fn tag(asked: Pinned<'_>, format: Format) -> Cow<'_, str> {
    match format {
        Format::Json => asked.etag(),
        Format::Npy => Cow::Owned(tag_with(&asked.etag(), format_args!("npy"))),
    }
}

/// JSON as the answer to a GET, tagged with a hash of its content, or 304 if the client already has
/// it.
pub(in crate::http) fn content(
    call: &Call,
    headers: &HeaderMap,
    body: Vec<u8>,
) -> Result<Response, ApiError> {
    file(headers, &weak_tag(&body), || {
        let room = room_for(call, body.len() as u64)?;
        Ok(render::response(Format::Json, body, room))
    })
}

/// A file of a page, with its entity tag, or 304 if the client already has it.
pub(in crate::http) fn file(
    headers: &HeaderMap,
    tag: &str,
    content: impl FnOnce() -> Result<Response, ApiError>,
) -> Result<Response, ApiError> {
    let mut response =
        if has(headers, tag) { StatusCode::NOT_MODIFIED.into_response() } else { content()? };
    insert(&mut response, tag);
    Ok(response)
}

/// Adds the tag to an answer.
pub(in crate::http) fn insert(response: &mut Response, tag: &str) {
    // Made each time: all threads would contend for the reference count of a shared value.
    let tag = HeaderValue::from_str(tag).expect("hexadecimal digits in quotes");
    response.headers_mut().insert(header::ETAG, tag);
}

fn has(headers: &HeaderMap, tag: &str) -> bool {
    let version = tag.trim_start_matches("W/");
    let lists = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|tag| {
        let tag = tag.trim();
        tag.strip_prefix("W/").unwrap_or(tag) == version
    })
}

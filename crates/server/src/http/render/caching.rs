//! Entity tags, which let clients cache answers. The same question to the same version of a model
//! has the same answer. So answers of searches and words are tagged with the model's name and
//! version, and the tag is known without a search. All others are tagged with a hash of their
//! content.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::ApiError;
use crate::http::render;
use crate::models::{ServedModel, weak_tag};

/// Answers may be cached but must be revalidated, because the model may have been replaced.
pub(in crate::http) const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// An answer, tagged with the version of its model.
pub(in crate::http) fn tagged(mut response: Response, served: &ServedModel) -> Response {
    response.headers_mut().insert(header::ETAG, tag(served));
    response
}

/// An array as an answer, tagged with the version of its model. The same answer as JSON has another
/// tag, so that no cache takes one for the other.
pub(in crate::http) fn tagged_array(mut response: Response, served: &ServedModel) -> Response {
    let tag = HeaderValue::try_from(tag_of_array(served)).expect("hexadecimal digits in quotes");
    response.headers_mut().insert(header::ETAG, tag);
    response
}

fn tag_of_array(served: &ServedModel) -> String {
    format!("{}-npy\"", served.etag.trim_end_matches('"'))
}

/// Made each time: all threads would contend for the reference count of a shared value.
fn tag(served: &ServedModel) -> HeaderValue {
    HeaderValue::from_bytes(served.etag.as_bytes()).expect("hexadecimal digits in quotes")
}

/// Whether the client of a GET already has the answer of this version (RFC 9110, section 13.1.2).
/// Clients send only tags that they received here, so comparing the tag is enough. `*` matches
/// nothing.
pub(in crate::http) fn is_known(headers: &HeaderMap, served: &ServedModel) -> bool {
    has(headers, &served.etag)
}

/// As [`is_known`], for an answer that is an array.
pub(in crate::http) fn is_array_known(headers: &HeaderMap, served: &ServedModel) -> bool {
    has(headers, &tag_of_array(served))
}

/// An answer to a GET, tagged with a hash of its content, or 304 if the client already has it.
pub(in crate::http) fn content(headers: &HeaderMap, body: Vec<u8>) -> Result<Response, ApiError> {
    file(headers, &weak_tag(&body), || Ok(render::response(body, None)))
}

/// A file of a page, with its entity tag, or 304 if the client already has it.
pub(in crate::http) fn file(
    headers: &HeaderMap,
    tag: &str,
    content: impl FnOnce() -> Result<Response, ApiError>,
) -> Result<Response, ApiError> {
    let mut response =
        if has(headers, tag) { StatusCode::NOT_MODIFIED.into_response() } else { content()? };
    let tag = HeaderValue::try_from(tag).expect("hexadecimal digits in quotes");
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

fn has(headers: &HeaderMap, tag: &str) -> bool {
    let version = tag.trim_start_matches("W/");
    let lists = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|tag| {
        let tag = tag.trim();
        tag.strip_prefix("W/").unwrap_or(tag) == version
    })
}

/// 304, for a client that already has the array.
pub(in crate::http) fn array_not_modified(served: &ServedModel) -> Response {
    tagged_array(StatusCode::NOT_MODIFIED.into_response(), served)
}

/// 304, for a client that already has the answer.
pub(in crate::http) fn not_modified(served: &ServedModel) -> Response {
    tagged(StatusCode::NOT_MODIFIED.into_response(), served)
}

//! Compresses large answers with gzip for clients that accept it. Small answers fit into one packet
//! anyway.

use std::convert::Infallible;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use tower::{Service as _, ServiceExt, service_fn};
use tower_http::compression::predicate::SizeAbove;
use tower_http::compression::{Compression, CompressionLevel};

use crate::http::ApiError;
use crate::http::offload::{Cost, check_deadline};
use crate::http::parse::negotiation::NPY_NAME;
use crate::http::render::counted;
use crate::models::Service;
use crate::workers::Cancellation;
use scheduler::account::{Account, Pool};

/// Memory of a gzip encoder while it works: its window, its tables and what it has not given out.
const BYTES_OF_ENCODER: u64 = 512 << 10;

/// Whether an answer is large enough to compress. One of unknown size is not, and no array: its
/// bits hardly repeat. The answer to a HEAD has no body, but has the length of the GET's answer in
/// a header.
pub(super) fn is_large(response: &Response, from_bytes: u64, is_head: bool) -> bool {
    let length = || response.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    let bytes = if is_head { length() } else { Some(response.body().size_hint().lower()) };
    let is_array = || response.headers().get(header::CONTENT_TYPE).is_some_and(|of| of == NPY_NAME);
    bytes.is_some_and(|bytes: u64| bytes >= from_bytes) && !is_array()
}

/// Gives a 304 the `Vary` header that the 200 may have had (RFC 9110, section 15.4.5). The size of
/// the 200 is not known here; the header does no harm if it was small.
pub(super) fn vary(response: &mut Response) {
    if response.status() != StatusCode::NOT_MODIFIED {
        return;
    }
    let headers = response.headers_mut();
    let known = |vary: &HeaderValue| vary.as_bytes().eq_ignore_ascii_case(b"accept-encoding");
    if !headers.get_all(header::VARY).iter().any(known) {
        headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
}

/// Compresses a large answer, for this caller, if its request accepts that.
/// tower-http's layer does it, but wraps only this answer: around the whole service, it would box
/// every answer's body.
pub(in crate::http) async fn compress(
    response: Response,
    accepted: Option<HeaderValue>,
    service: &Service,
    account: &Arc<Account>,
    deadline: Instant,
    is_head: bool,
) -> Result<Response, ApiError> {
    let bytes = response.body().size_hint().lower();
    let (mut head, body) = compressing(response, accepted).await.into_parts();
    let cost = Cost::of_compressing(bytes);
    if is_head {
        // There is no body, so the length of its compressed form is not known.
        return Ok(Response::from_parts(head, Body::empty()));
    }
    if !head.headers.contains_key(header::CONTENT_ENCODING) {
        return Ok(Response::from_parts(head, body));
    }
    cost.count(service);
    let (memory, of_caller) = (service.memory.clone(), account.clone());
    let read = move |cancellation: &Cancellation| {
        let _room = memory.charge(&of_caller, Pool::Answers, BYTES_OF_ENCODER);
        let compressed = in_memory(body, cancellation)?;
        // The plain answer, whose memory was counted, is freed by now.
        let room = memory.charge(&of_caller, Pool::Answers, compressed.capacity() as u64);
        Ok::<_, ApiError>(counted(compressed, room))
    };
    // The layer compresses while its body is read, so a large body is read on another thread.
    let body = if cost.is_long() {
        service.workers.run(account, deadline, read).await??
    } else {
        read(&Cancellation::until(deadline))?
    };
    head.headers.insert(header::CONTENT_LENGTH, body.len().into());
    Ok(Response::from_parts(head, body.into()))
}

/// Reads a whole body that never waits.
fn in_memory(mut body: Body, cancellation: &Cancellation) -> Result<Vec<u8>, ApiError> {
    let mut context = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    loop {
        check_deadline(cancellation)?;
        match Pin::new(&mut body).poll_frame(&mut context) {
            Poll::Ready(None) => return Ok(all),
            Poll::Ready(Some(Ok(frame))) => {
                all.extend_from_slice(&frame.into_data().unwrap_or_default());
            }
            Poll::Ready(Some(Err(_))) | Poll::Pending => return Err(ApiError::Internal),
        }
    }
}

/// An answer that is compressed while it is read, if its client accepts that.
async fn compressing(response: Response, accepted: Option<HeaderValue>) -> Response {
    let status = response.status();
    let mut response = Some(response);
    let answer = service_fn(move |_: Request<()>| {
        ready(Ok::<_, Infallible>(response.take().expect("it is called once")))
    });
    let mut request = Request::new(());
    if let Some(accepted) = accepted {
        request.headers_mut().insert(header::ACCEPT_ENCODING, accepted);
    }
    let layer = Compression::new(answer).quality(CompressionLevel::Fastest);
    let mut layer = layer.compress_when(SizeAbove::new(0));
    let layer = layer.ready().await.unwrap_or_else(|never| match never {});
    let compressed = layer.call(request).await.unwrap_or_else(|never| match never {});
    let mut response = compressed.map(Body::new);
    // A client that accepts no coding at all gets the plain answer: better than nothing (RFC 9110,
    // section 12.5.3).
    *response.status_mut() = status;
    if response.headers().contains_key(header::CONTENT_ENCODING) {
        weaken(response.headers_mut());
    }
    response
}

/// Makes the entity tag weak: after compression, a tag for the exact bytes would be wrong, but a
/// tag for the same content is still right.
fn weaken(headers: &mut HeaderMap) {
    let weak = match headers.get(header::ETAG) {
        Some(tag) if !tag.as_bytes().starts_with(b"W/") => {
            HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok()
        }
        _ => None,
    };
    if let Some(weak) = weak {
        headers.insert(header::ETAG, weak);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(bytes: usize) -> Response {
        let mut response = Response::new(Body::from(vec![b'a'; bytes]));
        response.headers_mut().insert(header::ETAG, HeaderValue::from_static("\"v1\""));
        response
    }

    #[test]
    fn large_is_what_the_setting_says() {
        assert!(is_large(&answer(100), 100, false) && !is_large(&answer(99), 100, false));
        let mut array = answer(1 << 20);
        array.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(NPY_NAME));
        assert!(!is_large(&array, 100, false));
    }

    #[tokio::test]
    async fn the_client_chooses_and_the_status_stays() {
        for (accepted, coding) in [
            (Some("gzip"), Some("gzip")),
            (Some("gzip;q=0.5, br"), Some("gzip")),
            (Some("br, zstd, deflate"), None),
            (Some("gzip;q=0"), None),
            (Some("*;q=0"), None),
            (None, None),
        ] {
            let accepted_value = accepted.map(HeaderValue::from_static);
            let response = compressing(answer(5000), accepted_value).await;
            assert_eq!(response.status(), 200, "{accepted:?}");
            let headers = response.headers();
            assert_eq!(headers[header::VARY], "accept-encoding", "{accepted:?}");
            let found =
                headers.get(header::CONTENT_ENCODING).map(|coding| coding.to_str().unwrap());
            assert_eq!(found, coding, "{accepted:?}");
            let tag = if coding.is_some() { "W/\"v1\"" } else { "\"v1\"" };
            assert_eq!(headers[header::ETAG], tag, "{accepted:?}");
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            assert_eq!(body.len() == 5000, coding.is_none(), "{accepted:?}");
        }
    }
}

//! Compresses large answers with gzip for clients that accept it. Small answers fit into one packet
//! anyway.

use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::http::ApiError;
use crate::http::offload::{Cost, check_deadline};
use crate::http::parse::negotiation::{NPY_NAME, takes_gzip};
use crate::http::render::counted;
use crate::models::Service;
use crate::workers::Cancellation;
use scheduler::account::{Account, Pool};

/// Memory of a gzip encoder while it works: its window, its tables and what it has not given out.
const BYTES_OF_ENCODER: u64 = 512 << 10;

/// Bytes that are compressed before the deadline is checked.
const PIECE: usize = 64 << 10;

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
    if response.status() == StatusCode::NOT_MODIFIED {
        add_vary(response.headers_mut());
    }
}

fn add_vary(headers: &mut HeaderMap) {
    let known = |vary: &HeaderValue| vary.as_bytes().eq_ignore_ascii_case(b"accept-encoding");
    if !headers.get_all(header::VARY).iter().any(known) {
        headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
}

/// Compresses a large answer, for this caller, if its request accepts that. `accepted` is the
/// `Accept-Encoding` header.
pub(in crate::http) async fn compress(
    mut response: Response,
    accepted: Option<HeaderValue>,
    service: &Service,
    account: &Arc<Account>,
    deadline: Instant,
    is_head: bool,
) -> Result<Response, ApiError> {
    if !set_headers(response.headers_mut(), accepted.as_ref()) || is_head {
        return Ok(response);
    }
    let (head, body) = response.into_parts();
    let cost = Cost::of_compressing(body.size_hint().lower());
    cost.count(service);
    let (memory, of_caller) = (service.memory.clone(), account.clone());
    let pack = move |cancellation: &Cancellation| {
        let _room = memory.charge(&of_caller, Pool::Answers, BYTES_OF_ENCODER);
        let packed = gzip(body, cancellation)?;
        // The plain answer, whose memory was counted, is freed by now.
        let room = memory.charge(&of_caller, Pool::Answers, packed.capacity() as u64);
        Ok::<_, ApiError>(counted(packed, room))
    };
    let body = if cost.is_long() {
        service.workers.run(account, deadline, pack).await??
    } else {
        pack(&Cancellation::until(deadline))?
    };
    Ok(Response::from_parts(head, body.into()))
}

/// Sets the headers of a large answer. Returns whether its body is to be compressed. A client that
/// accepts no coding at all gets the plain answer: better than nothing (RFC 9110, section 12.5.3).
fn set_headers(headers: &mut HeaderMap, accepted: Option<&HeaderValue>) -> bool {
    // Some files are stored compressed.
    if headers.contains_key(header::CONTENT_ENCODING) {
        return false;
    }
    add_vary(headers);
    if !takes_gzip(accepted) {
        return false;
    }
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    // Of the plain answer. That of the compressed one is not known for a HEAD.
    headers.remove(header::CONTENT_LENGTH);
    weaken(headers);
    true
}

/// Compresses a whole body that never waits.
fn gzip(mut body: Body, cancellation: &Cancellation) -> Result<Vec<u8>, ApiError> {
    let mut context = Context::from_waker(Waker::noop());
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    loop {
        let frame = match Pin::new(&mut body).poll_frame(&mut context) {
            Poll::Ready(None) => return encoder.finish().map_err(|_| ApiError::Internal),
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(_))) | Poll::Pending => return Err(ApiError::Internal),
        };
        for piece in frame.into_data().unwrap_or_default().chunks(PIECE) {
            check_deadline(cancellation)?;
            encoder.write_all(piece).map_err(|_| ApiError::Internal)?;
        }
    }
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
    use std::io::Read;
    use std::time::Duration;

    use flate2::read::GzDecoder;

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

    #[test]
    fn the_client_chooses() {
        for (accepted, is_packed) in [
            (Some("gzip"), true),
            (Some("gzip;q=0.5, br"), true),
            (Some("br, zstd, deflate"), false),
            (Some("gzip;q=0"), false),
            (Some("*;q=0"), false),
            (None, false),
        ] {
            let accepted_value = accepted.map(HeaderValue::from_static);
            let mut response = answer(5000);
            let headers = response.headers_mut();
            assert_eq!(set_headers(headers, accepted_value.as_ref()), is_packed, "{accepted:?}");
            assert_eq!(headers[header::VARY], "accept-encoding", "{accepted:?}");
            let coding = headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
            assert_eq!(coding, is_packed.then_some(&b"gzip"[..]), "{accepted:?}");
            let tag = if is_packed { "W/\"v1\"" } else { "\"v1\"" };
            assert_eq!(headers[header::ETAG], tag, "{accepted:?}");
        }
    }

    #[test]
    fn a_body_is_packed_whole_and_in_time() {
        let plain = vec![b'a'; 3 * PIECE + 1];
        let until = |deadline| gzip(Body::from(plain.clone()), &Cancellation::until(deadline));
        let packed = until(Instant::now() + Duration::from_secs(60)).unwrap();
        assert!(packed.len() < plain.len() / 20, "{}", packed.len());
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain);
        assert_eq!(until(Instant::now()), Err(ApiError::DeadlinePassed));
    }
}

//! Large answers in gzip or brotli, for whoever takes them. Small ones never: they go out in one packet anyway.

use std::convert::Infallible;
use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use tower::{Service, ServiceExt, service_fn};
use tower_http::compression::predicate::SizeAbove;
use tower_http::compression::{Compression, CompressionLevel};

use super::OnBehalf;
use crate::http::ApiError;
use crate::http::aside::{Work, goes_on};
use crate::http::render::counted;
use crate::workers::Patience;
use scheduler::account::Pool;

/// What an encoder of brotli takes, as long as it works; that of gzip takes less.
const BYTES_OF_ENCODER: u64 = 3 << 20;

/// Compresses from so many bytes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compressor {
    /// 0: never.
    pub(super) from_bytes: u64,
}

impl Compressor {
    /// What a request says about its answer's coding. To be taken before the request is.
    pub(super) fn accepted(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        headers.get(header::ACCEPT_ENCODING).cloned()
    }

    /// Whether an answer is worth it: one of unknown size is not. The answer to a HEAD has no body, but the length that
    /// a GET's would have.
    pub(super) fn is_large(&self, response: &Response, is_head: bool) -> bool {
        let length = || response.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
        let bytes = if is_head { length() } else { Some(response.body().size_hint().lower()) };
        self.from_bytes > 0 && bytes.is_some_and(|bytes| bytes >= self.from_bytes)
    }

    /// Gives a 304 the `Vary` header that the 200 may have had (RFC 9110, section 15.4.5). The size of the 200 is not
    /// known here; the header does no harm if it was small.
    pub(super) fn vary(&self, response: &mut Response) {
        if self.from_bytes == 0 || response.status() != StatusCode::NOT_MODIFIED {
            return;
        }
        let headers = response.headers_mut();
        let known = |vary: &HeaderValue| vary.as_bytes().eq_ignore_ascii_case(b"accept-encoding");
        if !headers.get_all(header::VARY).iter().any(known) {
            headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
    }

    /// A large answer in the best form that is accepted. tower-http's layer does it, but around this answer
    /// alone: around the service it would box every answer's body.
    pub(super) async fn compress(
        &self,
        response: Response,
        accepted: Option<HeaderValue>,
        OnBehalf { service, account, deadline }: OnBehalf<'_>,
        is_head: bool,
    ) -> Result<Response, ApiError> {
        let bytes = response.body().size_hint().lower();
        let (mut head, body) = compressing(response, accepted).await.into_parts();
        let work = Work::of_compressing(bytes);
        if is_head {
            // What was made of the body that is not there says nothing of its length.
            return Ok(Response::from_parts(head, Body::empty()));
        }
        if !head.headers.contains_key(header::CONTENT_ENCODING) {
            return Ok(Response::from_parts(head, body));
        }
        work.count(service);
        let (memory, of_caller) = (service.memory.clone(), account.clone());
        let read = move |patience: &Patience| {
            let _room = memory.charge(&of_caller, Pool::Answers, BYTES_OF_ENCODER);
            let compressed = in_memory(body, patience)?;
            // The plain answer, which was counted, is gone by now.
            let room = memory.charge(&of_caller, Pool::Answers, compressed.capacity() as u64);
            Ok::<_, ApiError>(counted(compressed, room))
        };
        // The layer compresses as it is read, which would be on this thread.
        let body = if work.is_long() {
            service.workers.run(account, deadline, read).await??
        } else {
            read(&Patience::until(deadline))?
        };
        head.headers.insert(header::CONTENT_LENGTH, body.len().into());
        Ok(Response::from_parts(head, body.into()))
    }
}

/// All of a body that does not wait for anything.
fn in_memory(mut body: Body, patience: &Patience) -> Result<Vec<u8>, ApiError> {
    let mut context = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    loop {
        goes_on(patience)?;
        match Pin::new(&mut body).poll_frame(&mut context) {
            Poll::Ready(None) => return Ok(all),
            Poll::Ready(Some(Ok(frame))) => {
                all.extend_from_slice(&frame.into_data().unwrap_or_default());
            }
            Poll::Ready(Some(Err(_))) | Poll::Pending => return Err(ApiError::Internal),
        }
    }
}

/// An answer that is compressed as it is read, if its client takes that.
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
    // Whoever takes no form at all gets the plain one: better than nothing (RFC 9110, section 12.5.3).
    *response.status_mut() = status;
    if response.headers().contains_key(header::CONTENT_ENCODING) {
        weaken(response.headers_mut());
    }
    response
}

/// An entity tag for these very bytes would now be wrong; for the same content it is still right.
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
        let compressor = Compressor { from_bytes: 100 };
        assert!(
            compressor.is_large(&answer(100), false) && !compressor.is_large(&answer(99), false)
        );
        assert!(!Compressor { from_bytes: 0 }.is_large(&answer(1 << 20), false));
    }

    #[tokio::test]
    async fn the_client_chooses_and_the_status_stays() {
        for (accepted, coding) in [
            (Some("gzip"), Some("gzip")),
            (Some("br"), Some("br")),
            (Some("gzip;q=0.5, br"), Some("br")),
            (Some("zstd, deflate"), None),
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

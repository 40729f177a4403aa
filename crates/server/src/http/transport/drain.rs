//! Reads the rest of a request's body that nobody needs, because the answer is known without it
//! (401, 413).
//!
//! If the rest were dropped unread, that would end an HTTP/1.1 connection or reset an HTTP/2 stream
//! while the client is still sending, and many clients then report an error instead of the status.
//! So the rest is read and discarded while the answer is sent, for a bounded time and number of
//! bytes.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, Version, header};
use hyper::body::{Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::activity::Activity;

/// Maximum time for reading the rest of a body: in total, and while nothing arrives.
const MAX_TIME: Duration = Duration::from_secs(5);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of bytes to read.
const MAX_BYTES: u64 = 64 << 20;

/// The body of a request with this head. Its rest is read when it is dropped.
pub(super) fn drained<B>(
    version: Version,
    headers: &HeaderMap,
    body: B,
    activity: &Arc<Activity>,
) -> Body
where
    B: HttpBody<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + Unpin + 'static,
{
    if body.is_end_stream() {
        return Body::empty();
    }
    // A client that expects 100 Continue sends its body only after that message, and reading would
    // send the message. HTTP/2 clients send their bodies either way.
    let waits = version != Version::HTTP_2 && headers.contains_key(header::EXPECT);
    Body::new(Drained { body: Some(body), is_coming: !waits, activity: activity.clone() })
}

struct Drained<B>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
{
    /// `None` after its end.
    body: Option<B>,
    /// Whether the client sends the body in any case, without waiting for 100 Continue.
    is_coming: bool,
    activity: Arc<Activity>,
}

impl<B> HttpBody for Drained<B>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.is_coming = true;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl<B> Drop for Drained<B>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
{
    fn drop(&mut self) {
        let rest = self.body.take().filter(|body| self.is_coming && !body.is_end_stream());
        // Without a runtime, the whole process is ending.
        if let (Some(rest), Ok(runtime)) = (rest, Handle::try_current()) {
            let in_work = self.activity.hold();
            runtime.spawn(async move {
                // If it is too slow, the client still has had time to read its answer.
                let _ = timeout(MAX_TIME, read(rest)).await;
                drop(in_work);
            });
        }
    }
}

/// Reads until the end, a long pause or the maximum number of bytes.
async fn read(mut body: impl HttpBody<Data = Bytes> + Unpin) {
    let mut bytes = 0;
    while bytes < MAX_BYTES {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let Ok(Some(Ok(frame))) = timeout(MAX_PAUSE, frame).await else { return };
        bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use tokio::time::{Instant, Interval, interval};

    use super::super::activity::Waiting;
    use super::*;

    /// An endless body, with a chunk at each tick of the clock.
    struct Endless {
        chunk: usize,
        clock: Interval,
        sent: Arc<AtomicU64>,
    }

    impl HttpBody for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            ready!(self.clock.poll_tick(context));
            self.sent.fetch_add(self.chunk as u64, Relaxed);
            Poll::Ready(Some(Ok(Frame::data(vec![0; self.chunk].into()))))
        }
    }

    /// How long the rest of such a body is read, and how much of it.
    async fn read_on(chunk: usize, headers: HeaderMap, pause_ms: u64) -> (Duration, u64) {
        let (activity, sent) = (Activity::new(), Arc::new(AtomicU64::new(0)));
        let request = activity.begin(Version::HTTP_11);
        let clock = interval(Duration::from_millis(pause_ms));
        let body = Endless { chunk, clock, sent: sent.clone() };
        drop(drained(Version::HTTP_11, &headers, body, &activity));
        drop(request);
        let begun = Instant::now();
        while activity.look().0 == Waiting::Handler {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        (begun.elapsed(), sent.load(Relaxed))
    }

    #[tokio::test(start_paused = true)]
    async fn time_and_bytes_are_bounded() {
        let (took, bytes) = read_on(1, HeaderMap::new(), 10).await;
        assert!(took.abs_diff(MAX_TIME) < Duration::from_millis(50), "{took:?}");
        assert!((400..=510).contains(&bytes), "{bytes}");
        let (took, bytes) = read_on(1 << 20, HeaderMap::new(), 10).await;
        assert!(took < MAX_TIME && bytes == MAX_BYTES, "{took:?}, {bytes}");
        let (took, bytes) = read_on(1, HeaderMap::new(), 1500).await;
        assert!(took.abs_diff(MAX_PAUSE) < Duration::from_millis(50), "{took:?}");
        assert_eq!(bytes, 1, "the first comes at once");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_told_to_send_what_is_not_wanted() {
        let expects = HeaderMap::from_iter([(header::EXPECT, "100-continue".parse().unwrap())]);
        assert_eq!(read_on(1, expects, 10).await, (Duration::ZERO, 0));
    }
}

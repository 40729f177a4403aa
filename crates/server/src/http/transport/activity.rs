//! Records what a connection does, on its socket and in its requests, so that [`super::timeouts`]
//! can distinguish a busy connection from one that only takes up room.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use axum::http::Version;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Bytes of an answer that a client must take to count as reading. A client that takes a few bytes
/// now and then would keep all the rest in memory.
const PROGRESS_BYTES: u64 = 16 << 10;

/// The activity of one connection. Only one thread uses it. The atomics are there because hyper
/// requires `Send`, and cost no more than plain numbers.
pub(super) struct Activity {
    /// Requests that have been received and are not answered yet.
    in_work: AtomicU32,
    /// Requests received plus requests answered.
    turns: AtomicU32,
    /// Whether bytes have arrived since the last request.
    has_received: AtomicBool,
    /// Bytes that the system has accepted for sending.
    written: AtomicU64,
    /// Whether the system accepts no more bytes, because the client does not read.
    is_blocked: AtomicBool,
    is_http2: AtomicBool,
    /// Answers that are not completely sent: a number for each, and when the client last took some
    /// of it.
    unsent: Mutex<Vec<(u64, Instant)>>,
    next_unsent: AtomicU64,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// For the rest of a handshake or of a request's head.
    Head,
    /// For a handler, which has its own time limits.
    Handler,
    /// For the client to take what was written.
    Reader,
    /// For the next request.
    Request,
}

impl Activity {
    /// A connection that was just accepted: its first request should arrive now.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            in_work: AtomicU32::new(0),
            turns: AtomicU32::new(0),
            has_received: AtomicBool::new(true),
            written: AtomicU64::new(0),
            is_blocked: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            unsent: Mutex::default(),
            next_unsent: AtomicU64::new(0),
        })
    }

    /// Records that a request has arrived. It is in progress until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>, version: Version) -> RequestGuard {
        self.has_received.store(false, Relaxed);
        self.is_http2.store(version == Version::HTTP_2, Relaxed);
        self.in_work.fetch_add(1, Relaxed);
        self.turns.fetch_add(1, Relaxed);
        RequestGuard(self.clone())
    }

    /// Treats the connection as if a request were in progress, until the returned value is dropped.
    pub(super) fn hold(self: &Arc<Self>) -> RequestGuard {
        self.in_work.fetch_add(1, Relaxed);
        RequestGuard(self.clone())
    }

    /// What the connection waits for, and a mark that changes whenever it makes progress.
    pub(super) fn look(&self) -> (Waiting, (u32, u64)) {
        let turns = self.turns.load(Relaxed);
        let written = self.written.load(Relaxed);
        if self.is_blocked.load(Relaxed) {
            // Requests that arrive meanwhile are not progress either.
            return (Waiting::Reader, (0, written / PROGRESS_BYTES));
        }
        if self.in_work.load(Relaxed) > 0 {
            return (Waiting::Handler, (turns, 0));
        }
        // In HTTP/2, bytes may also be pings and window updates, which do not begin a request.
        let in_head = self.has_received.load(Relaxed) && !self.is_http2.load(Relaxed);
        // An answer may still be on its way. Fewer bytes may be pings, or a client that reads very
        // slowly.
        let mark = (turns, written / PROGRESS_BYTES);
        (if in_head { Waiting::Head } else { Waiting::Request }, mark)
    }

    /// Records that an answer begins. It is unsent until the returned value is dropped.
    pub(super) fn unsent(self: &Arc<Self>) -> UnsentAnswer {
        let number = self.next_unsent.fetch_add(1, Relaxed);
        self.unsent_answers().push((number, Instant::now()));
        UnsentAnswer { activity: self.clone(), number }
    }

    /// Since when the client has taken nothing of the answer that has waited longest for it.
    pub(super) fn unsent_since(&self) -> Option<Instant> {
        self.unsent_answers().iter().map(|(_, since)| *since).min()
    }

    fn unsent_answers(&self) -> MutexGuard<'_, Vec<(u64, Instant)>> {
        self.unsent.lock().expect("nothing panics while it holds this lock")
    }

    fn received(&self, bytes: usize) {
        if bytes > 0 && self.in_work.load(Relaxed) == 0 {
            self.has_received.store(true, Relaxed);
        }
    }

    fn wrote(&self, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.is_blocked.store(outcome.is_pending(), Relaxed);
        if let Poll::Ready(Ok(bytes)) = &outcome {
            self.written.fetch_add(*bytes as u64, Relaxed);
        }
        outcome
    }
}

/// A request in progress, until this is dropped.
pub(super) struct RequestGuard(Arc<Activity>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.in_work.fetch_sub(1, Relaxed);
        self.0.turns.fetch_add(1, Relaxed);
    }
}

/// An answer that is not completely sent.
pub(super) struct UnsentAnswer {
    activity: Arc<Activity>,
    number: u64,
}

impl UnsentAnswer {
    /// Records that the client has taken some of it.
    pub(super) fn progress(&self) {
        let mut unsent = self.activity.unsent_answers();
        if let Some((_, since)) = unsent.iter_mut().find(|(number, _)| *number == self.number) {
            *since = Instant::now();
        }
    }
}

impl Drop for UnsentAnswer {
    fn drop(&mut self) {
        self.activity.unsent_answers().retain(|(number, _)| *number != self.number);
    }
}

/// A socket that records what is read and written.
pub(super) struct RecordingIo<I> {
    io: I,
    activity: Arc<Activity>,
}

impl<I> RecordingIo<I> {
    pub(super) fn new(io: I, activity: Arc<Activity>) -> Self {
        Self { io, activity }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for RecordingIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.io).poll_read(context, buffer);
        self.activity.received(buffer.filled().len() - before);
        outcome
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for RecordingIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write(context, bytes);
        self.activity.wrote(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.activity.wrote(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_connection_waits_for_follows_from_what_it_did() {
        let activity = Activity::new();
        let waiting = || activity.look().0;
        assert_eq!(waiting(), Waiting::Head, "the first request should come now");
        let first = activity.begin(Version::HTTP_11);
        assert_eq!(waiting(), Waiting::Handler);
        activity.received(100);
        drop(first);
        assert_eq!(waiting(), Waiting::Request, "the bytes were the request's body");
        activity.received(1);
        assert_eq!(waiting(), Waiting::Head);
        let _ = activity.wrote(Poll::Pending);
        assert_eq!(waiting(), Waiting::Reader);
        let _ = activity.wrote(Poll::Ready(Ok(1)));
        drop(activity.begin(Version::HTTP_2));
        activity.received(17);
        assert_eq!(waiting(), Waiting::Request, "a ping is no request");
    }

    #[test]
    fn only_progress_changes_the_mark() {
        let activity = Activity::new();
        let wrote = |bytes| drop(activity.wrote(Poll::Ready(Ok(bytes))));
        let mark = || activity.look().1;
        let at_first = mark();
        activity.received(1);
        wrote(17);
        assert_eq!(mark(), at_first, "neither one more byte of a head nor a pong is progress");
        wrote(PROGRESS_BYTES as usize);
        let later = mark();
        assert_ne!(later, at_first, "an answer is taken");
        drop(activity.begin(Version::HTTP_11));
        assert_ne!(mark(), later, "a request was answered");
        let _ = activity.wrote(Poll::Pending);
        let blocked = mark();
        wrote(1);
        let _ = activity.wrote(Poll::Pending);
        drop(activity.begin(Version::HTTP_2));
        assert_eq!(mark(), blocked, "neither one byte nor another request is progress");
        wrote(PROGRESS_BYTES as usize);
        let _ = activity.wrote(Poll::Pending);
        assert_ne!(mark(), blocked, "a client that reads slowly is not one that does not");
    }
}

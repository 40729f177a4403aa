//! HTTP/1.1 and HTTP/2 of a connection, with every bound named.

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::time::Duration;

use super::limits::Limits;

/// Requests of one HTTP/2 connection that may be in work at the same time. The client is told.
const MAX_CONCURRENT_STREAMS: u32 = 200;
/// Streams that a client opened and reset before they were looked at; more end the connection ("rapid
/// reset", CVE-2023-44487).
const MAX_PENDING_RESET_STREAMS: usize = 20;
/// Streams that were reset because of the client's own faults; more end the connection (CVE-2025-8671).
const MAX_FAULTY_STREAMS: usize = 1024;
/// How often an HTTP/2 client is asked whether it is still there, and how long it may take to say so.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes that an HTTP/2 client may send ahead, of one body and of all of them.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// The least that hyper takes.
const LEAST_BUFFER_BYTES: usize = 8192;

/// What serves a connection in either version: in HTTP/2 if the client begins with its preface.
///
/// A head over the limits gets its problem document from [`super::limits`]. What is more than twice as large is
/// not read at all; hyper answers that itself, with 431 or 414 and without a body, and so it does more
/// than 100 fields in HTTP/1.1. (Another number would cost an allocation a request.)
pub(super) fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let head = (2 * (limits.max_uri_bytes + limits.max_header_bytes)).max(LEAST_BUFFER_BYTES);
    let mut builder = Builder::new(TokioExecutor::new());
    // `timeouts.rs` has the time-outs.
    builder.http1().max_buf_size(head).keep_alive(true).header_read_timeout(None);
    builder
        .http2()
        .max_header_list_size(u32::try_from(head).unwrap_or(u32::MAX))
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .max_pending_accept_reset_streams(MAX_PENDING_RESET_STREAMS)
        .max_local_error_reset_streams(MAX_FAULTY_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

//! Connections: sockets, threads, TLS, both versions of HTTP and their limits, and the timeouts of
//! a connection.
//!
//! A connection is accepted (`serve`) and put on a thread for its whole life ([`HttpThreads`]).
//! It has a time limit for everything (`timeouts`, from what `activity` records), may have TLS
//! (`tls`), and speaks HTTP/1.1 or HTTP/2 within named limits. The rest of a request's body is read
//! (`drain`), and the sending of HTTP/2 answers is watched (`sending`). Nothing here knows about
//! routes, keys or models.

mod activity;
mod connections;
mod drain;
mod listen;
mod sending;
mod threads;
mod timeouts;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;

use self::timeouts::Timeouts;
use self::tls::Tls;
use crate::config::{Config, ConfigError};

pub(crate) use self::connections::serve;
pub use self::listen::{bind, start_listening, without_delay};
pub use self::threads::HttpThreads;
pub use crate::system::raise_file_limit;

/// Maximum number of concurrent requests on one HTTP/2 connection. It is sent to the client.
const MAX_CONCURRENT_STREAMS: u32 = 200;
/// Maximum number of streams that a client opened and reset before they were handled. More end the
/// connection ("rapid reset", CVE-2023-44487).
const MAX_PENDING_RESET_STREAMS: usize = 20;
/// Maximum number of streams that were reset because of the client's own faults. More end the
/// connection (CVE-2025-8671).
const MAX_FAULTY_STREAMS: usize = 1024;
/// How often an HTTP/2 client is sent a ping, and how long it may take to answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes that an HTTP/2 client may send before they are read: of one body, and of all bodies
/// together.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// The smallest buffer that hyper accepts.
const LEAST_BUFFER_BYTES: usize = 8192;

/// How connections are served, as the settings say.
pub struct Transport {
    max_connections: usize,
    timeouts: Timeouts,
    protocols: Builder<TokioExecutor>,
    tls: Option<Tls>,
}

impl Transport {
    /// Reads the certificate, if there is one.
    ///
    /// # Errors
    /// If it can't be used.
    pub fn new(config: &Config) -> Result<Arc<Self>, ConfigError> {
        Ok(Arc::new(Self {
            max_connections: config.max_connections,
            timeouts: Timeouts {
                header_read: Duration::from_millis(config.header_read_timeout_ms),
                idle: Duration::from_millis(config.idle_timeout_ms),
                write: Duration::from_millis(config.write_timeout_ms),
            },
            protocols: protocols(config.max_uri_bytes + config.max_header_bytes),
            tls: Tls::open(&config.tls_certificate, &config.tls_private_key)?,
        }))
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Until when the certificate in force is valid, in seconds since 1970. `None` without TLS.
    pub(super) fn certificate_expiry(&self) -> Option<i64> {
        self.tls.as_ref().and_then(Tls::expiry)
    }

    /// Reads the certificate again. The returned closure puts it in force and returns what changed.
    /// If the closure is dropped, the old certificate stays. `None` without TLS.
    pub(super) fn reload(&self) -> Result<Option<impl FnOnce() -> String + '_>, ConfigError> {
        self.tls.as_ref().map(Tls::reload).transpose()
    }

    /// The configuration of TLS for a new connection.
    #[cfg(test)]
    pub(super) fn tls(&self) -> Option<Arc<tokio_rustls::rustls::ServerConfig>> {
        self.tls.as_ref().map(Tls::config)
    }
}

/// Serves a connection in either version of HTTP: in HTTP/2 if the client begins with the preface
/// of HTTP/2.
///
/// The edge answers a head that is larger than `head_bytes` with a problem document. hyper does not
/// read a head of more than twice that size: it answers 431 or 414 itself, without a body. It does
/// the same for more than 100 fields in HTTP/1.1. (Another number of fields would cost an
/// allocation for each request.)
fn protocols(head_bytes: usize) -> Builder<TokioExecutor> {
    let head = (2 * head_bytes).max(LEAST_BUFFER_BYTES);
    let mut builder = Builder::new(TokioExecutor::new());
    // `timeouts.rs` implements the timeouts.
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

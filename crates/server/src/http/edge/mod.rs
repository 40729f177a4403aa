//! The edge: what stands between the network and the routes, and says no politely.
//!
//! A connection is counted ([`connections`](super::connections)), has a bounded time for everything (`timeouts`,
//! from what `activity` notes), maybe TLS (`tls`), and a version of HTTP with bounds (`protocols`). A request
//! meets CORS (`cors`), limits (`limits`), what HTTP demands of a head (`framing`) and API keys ([`keys`]); its
//! answer, compression and headers; and what is left of its body is read (`drain`).
//! Settings name it all; keys and certificates can be read again while the service goes on.

pub(super) mod activity;
mod compression;
mod cors;
pub(super) mod drain;
mod framing;
mod headers;
pub mod keys;
mod limits;
pub mod open_files;
mod protocols;
pub(super) mod sending;
#[cfg(test)]
mod tests;
pub(super) mod timeouts;
mod tls;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{HeaderMap, ORIGIN};
use axum::response::Response;
use hyper_util::rt::TokioExecutor;
use hyper_util::server::conn::auto::Builder;
use tokio_rustls::rustls::ServerConfig;
use tower_http::cors::CorsLayer;

use self::activity::Activity;
use self::compression::Compressor;
use self::keys::Keys;
use self::limits::Limits;
use self::timeouts::{Timeouts, Watch};
use self::tls::Tls;
use super::ApiError;
use crate::config::Config;
use crate::models::Service;
use scheduler::account::Account;

/// Why the edge can't be as the settings say. Names the setting or the file, and the cure.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// A value that makes no sense.
    #[error("setting `{key}`: `{value}`: {reason}")]
    Setting {
        /// The key.
        key: &'static str,
        /// The value, or the one of several that is wrong.
        value: String,
        /// What it must be.
        reason: &'static str,
    },
    /// A file that can't be read.
    #[error("can't read {}, which the setting `{setting}` names: {source}", path.display())]
    Unreadable {
        /// The key.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line of the file of keys.
    #[error("{}, line {line}: {reason}", path.display())]
    BadKey {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it, and what would be right.
        reason: &'static str,
    },
    /// A certificate without its key, or the other way round.
    #[error("setting `{has}` is given without `{lacks}`: TLS takes both, plain HTTP neither")]
    HalfOfTls {
        /// The key that is there.
        has: &'static str,
        /// The key that is not.
        lacks: &'static str,
    },
    /// A certificate or key that can't be used.
    #[error("{}, which the setting `{setting}` names: {reason}", path.display())]
    BadPem {
        /// The key.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// On whose behalf an answer is worked on, and until when.
pub(super) struct OnBehalf<'a> {
    pub(super) service: &'a Service,
    pub(super) account: &'a Arc<Account>,
    pub(super) deadline: Instant,
}

/// The edge as the settings want it.
pub struct Edge {
    pub(super) max_connections: usize,
    timeouts: Timeouts,
    limits: Limits,
    protocols: Builder<TokioExecutor>,
    tls: Option<Tls>,
    keys: Keys,
    cors: Option<CorsLayer>,
    compressor: Compressor,
}

impl Edge {
    /// Reads keys and certificates.
    ///
    /// # Errors
    /// If a file or a setting can't be used.
    pub fn new(config: &Config) -> Result<Arc<Self>, EdgeError> {
        let limits = Limits {
            max_uri_bytes: config.max_uri_bytes,
            max_header_bytes: config.max_header_bytes,
        };
        Ok(Arc::new(Self {
            max_connections: config.max_connections,
            timeouts: Timeouts {
                header_read: Duration::from_millis(config.header_read_timeout_ms),
                idle: Duration::from_millis(config.idle_timeout_ms),
                write: Duration::from_millis(config.write_timeout_ms),
            },
            protocols: protocols::builder(&limits),
            limits,
            tls: Tls::open(&config.tls_certificate, &config.tls_private_key)?,
            keys: Keys::open(&config.api_keys_file, &config.public_routes)?,
            cors: cors::layer(&config.cors_origins)?,
            compressor: Compressor { from_bytes: config.compress_from_bytes },
        }))
    }

    /// Reads keys and certificates again, and puts them in force if all of them can be used. Says what changed, a
    /// line for each file.
    ///
    /// # Errors
    /// If a file can't be used: then everything stays as it was.
    pub fn reload(&self) -> Result<Vec<String>, EdgeError> {
        let keys = self.keys.reload()?;
        let tls = self.tls.as_ref().map(Tls::reload).transpose()?;
        Ok([keys(), tls.map(|exchange| exchange())].into_iter().flatten().collect())
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// TLS for a new connection.
    pub(super) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.as_ref().map(Tls::config)
    }

    /// HTTP for a new connection.
    pub(super) fn protocols(&self) -> &Builder<TokioExecutor> {
        &self.protocols
    }

    /// Begins to watch a new connection.
    pub(super) fn watch(&self, activity: Arc<Activity>) -> Watch {
        Watch::new(activity, self.timeouts)
    }

    /// CORS for this request, where there is any. What is no preflight goes on to the routes, OPTIONS too.
    pub(super) fn cors(&self, request: &Request) -> Option<&CorsLayer> {
        let is_theirs = request.method() != axum::http::Method::OPTIONS
            || request.headers().contains_key(ORIGIN);
        self.cors.as_ref().filter(|_| is_theirs)
    }

    /// Lets a request in, or says why not. The account of its API key, if it came with one.
    pub(super) fn admit(&self, request: &mut Request) -> Result<Option<Arc<Account>>, ApiError> {
        self.limits.check(request.uri(), request.headers())?;
        framing::check(request)?;
        self.keys.check(request)
    }

    /// Of a request, what [`compress`](Self::compress) needs for its answer.
    pub(super) fn accepted(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        self.compressor.accepted(headers)
    }

    /// What all answers have in common. Returns whether this one is to be compressed.
    pub(super) fn finish(&self, response: &mut Response, is_head: bool) -> bool {
        headers::secure(response.headers_mut());
        self.compressor.vary(response);
        self.compressor.is_large(response, is_head)
    }

    /// A large answer in the best form that its request accepted.
    pub(super) async fn compress(
        &self,
        response: Response,
        accepted: Option<HeaderValue>,
        on_behalf: OnBehalf<'_>,
        is_head: bool,
    ) -> Result<Response, ApiError> {
        self.compressor.compress(response, accepted, on_behalf, is_head).await
    }
}

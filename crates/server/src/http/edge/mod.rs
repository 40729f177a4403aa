//! The edge: what is decided before and after a route.
//!
//! A request gets an id (`request_id`), and meets CORS (`cors`), the bounds of a head and what HTTP demands of it
//! (`head`), and API keys ([`keys`]); its answer gets compression and headers. Settings name it all; keys and
//! certificates can be read again while the service runs.

mod compression;
mod cors;
mod head;
mod headers;
pub mod keys;
pub(super) mod request_id;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{HeaderMap, ORIGIN};
use axum::response::Response;
use tower_http::cors::CorsLayer;

use self::compression::Compressor;
use self::head::Limits;
use self::keys::Keys;
use super::ApiError;
use super::transport::{TlsError, Transport};
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
    /// The certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// On whose behalf an answer is worked on, and until when.
pub(super) struct OnBehalf<'a> {
    pub(super) service: &'a Service,
    pub(super) account: &'a Arc<Account>,
    pub(super) deadline: Instant,
}

/// The edge as the settings want it.
pub struct Edge {
    transport: Arc<Transport>,
    limits: Limits,
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
        Ok(Arc::new(Self {
            transport: Transport::new(config)?,
            limits: Limits {
                max_uri_bytes: config.max_uri_bytes,
                max_header_bytes: config.max_header_bytes,
            },
            keys: Keys::open(&config.api_keys_file, &config.public_routes)?,
            cors: cors::layer(&config.cors_origins)?,
            compressor: Compressor { from_bytes: config.compress_from_bytes },
        }))
    }

    /// The connections on the other side of the edge.
    pub fn transport(&self) -> &Arc<Transport> {
        &self.transport
    }

    /// Reads keys and certificates again, and puts them in force if all of them can be used. Says what changed, a
    /// line for each file.
    ///
    /// # Errors
    /// If a file can't be used: then everything stays as it was.
    pub fn reload(&self) -> Result<Vec<String>, EdgeError> {
        let keys = self.keys.reload()?;
        let tls = self.transport.reload()?;
        Ok([keys(), tls.map(|exchange| exchange())].into_iter().flatten().collect())
    }

    /// CORS for this request, where there is any. An OPTIONS request that is no preflight goes to the routes.
    pub(super) fn cors(&self, request: &Request) -> Option<&CorsLayer> {
        let is_theirs = request.method() != axum::http::Method::OPTIONS
            || request.headers().contains_key(ORIGIN);
        self.cors.as_ref().filter(|_| is_theirs)
    }

    /// Lets a request in, or says why not. The account of its API key, if it came with one.
    pub(super) fn admit(&self, request: &mut Request) -> Result<Option<Arc<Account>>, ApiError> {
        self.limits.check(request)?;
        self.keys.check(request)
    }

    /// What [`compress`](Self::compress) will need from the request.
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

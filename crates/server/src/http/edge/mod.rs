//! The edge: what happens before and after a route.
//!
//! A request gets an id (`request_id`), and passes CORS (`cors`), the checks of its head (`head`)
//! and of its API key ([`keys`]). Its answer gets compression and headers. Settings control all of
//! this. Keys and certificates can be reloaded while the service runs.

pub(super) mod compression;
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

use axum::extract::Request;
use axum::http::header::ORIGIN;
use axum::response::Response;
use tower_http::cors::CorsLayer;

use self::head::Limits;
use self::keys::Keys;
use super::ApiError;
use super::transport::{TlsError, Transport};
use crate::config::Config;
use scheduler::account::Account;

/// Why the edge can't be set up. Names the setting or the file, and the cure.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// An invalid value.
    #[error("setting `{key}`: `{value}`: {reason}")]
    Setting {
        /// The key.
        key: &'static str,
        /// The value, or the invalid one of several.
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
        /// The system's error.
        source: io::Error,
    },
    /// An invalid line of the keys file.
    #[error("{}, line {line}: {reason}", path.display())]
    BadKey {
        /// The file.
        path: PathBuf,
        /// Its number, counted from 1.
        line: usize,
        /// The fault, and the cure.
        reason: &'static str,
    },
    /// The certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The edge, as the settings configure it.
pub struct Edge {
    transport: Arc<Transport>,
    limits: Limits,
    keys: Keys,
    cors: Option<CorsLayer>,
    /// The minimum size of answers to compress; 0 disables compression.
    compress_from_bytes: u64,
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
            compress_from_bytes: config.compress_from_bytes,
        }))
    }

    /// How connections are served.
    pub fn transport(&self) -> &Arc<Transport> {
        &self.transport
    }

    /// Reads keys and certificates again, and puts them in force if all of them can be used.
    /// Returns what changed, a line for each file.
    ///
    /// # Errors
    /// If a file can't be used: then everything stays as it was.
    pub fn reload(&self) -> Result<Vec<String>, EdgeError> {
        let keys = self.keys.reload()?;
        let tls = self.transport.reload()?;
        Ok([keys(), tls.map(|exchange| exchange())].into_iter().flatten().collect())
    }

    /// The CORS layer for this request, if CORS is configured. An OPTIONS request that is not a
    /// preflight goes to the routes.
    pub(super) fn cors(&self, request: &Request) -> Option<&CorsLayer> {
        let is_theirs = request.method() != axum::http::Method::OPTIONS
            || request.headers().contains_key(ORIGIN);
        self.cors.as_ref().filter(|_| is_theirs)
    }

    /// Admits a request, or returns why not. Returns the account of its API key, if it has one.
    pub(super) fn admit(&self, request: &mut Request) -> Result<Option<Arc<Account>>, ApiError> {
        self.limits.check(request)?;
        self.keys.check(request)
    }

    /// Sets the headers that all answers have in common. Returns whether to compress this answer.
    pub(super) fn finish(&self, response: &mut Response, is_head: bool) -> bool {
        headers::secure(response.headers_mut());
        if self.compress_from_bytes == 0 {
            return false;
        }
        compression::vary(response);
        compression::is_large(response, self.compress_from_bytes, is_head)
    }
}

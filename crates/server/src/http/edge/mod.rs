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

use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::ORIGIN;
use axum::response::Response;
use tower_http::cors::CorsLayer;

use self::head::Limits;
use self::keys::Keys;
use super::ApiError;
use super::transport::Transport;
use crate::config::{Config, ConfigError};
use crate::observe::{ReloadFigures, Reloadable};
use scheduler::account::Account;

/// The edge, as the settings configure it.
pub struct Edge {
    transport: Arc<Transport>,
    limits: Limits,
    keys: Keys,
    cors: Option<CorsLayer>,
    /// The minimum size of answers to compress; 0 disables compression.
    compress_from_bytes: u64,
    reloads: Arc<ReloadFigures>,
}

impl Edge {
    /// Reads keys and certificates.
    ///
    /// # Errors
    /// If a file or a setting can't be used.
    pub fn new(config: &Config) -> Result<Arc<Self>, ConfigError> {
        let (transport, reloads) = (Transport::new(config)?, Arc::<ReloadFigures>::default());
        reloads.set_certificate_expiry(transport.certificate_expiry());
        Ok(Arc::new(Self {
            transport,
            limits: Limits {
                max_uri_bytes: config.max_uri_bytes,
                max_header_bytes: config.max_header_bytes,
            },
            keys: Keys::open(&config.api_keys_file, &config.public_routes)?,
            cors: cors::layer(&config.cors_origins)?,
            compress_from_bytes: config.compress_from_bytes,
            reloads,
        }))
    }

    /// The figures of reloads, in which its own failures are counted.
    pub fn reloads(&self) -> &Arc<ReloadFigures> {
        &self.reloads
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
    pub fn reload(&self) -> Result<Vec<String>, ConfigError> {
        let count = |of| self.reloads.count_failure(of);
        let keys = self.keys.reload().inspect_err(|_| count(Reloadable::Keys))?;
        let tls = self.transport.reload().inspect_err(|_| count(Reloadable::Certificate))?;
        let lines = [keys(), tls.map(|exchange| exchange())].into_iter().flatten().collect();
        self.reloads.set_certificate_expiry(self.transport.certificate_expiry());
        Ok(lines)
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

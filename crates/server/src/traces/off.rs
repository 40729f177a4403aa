//! The names of `spans`, in a build without the Cargo feature `traces`: nothing is traced, and
//! nothing is left of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue};
use kindred::queue::Timeline;

use super::{Model, TraceFigures, TracedRequest};
use crate::config::{Config, ConfigError};

/// No traces.
#[derive(Debug, Clone, Default)]
pub struct Traces(());

/// There is none.
#[derive(Debug, Clone, Copy)]
pub enum Trace {}

impl Traces {
    /// The settings have refused an endpoint before.
    ///
    /// # Errors
    /// Never.
    pub fn start(_: &Config) -> Result<Self, ConfigError> {
        Ok(Self(()))
    }

    #[inline]
    pub(crate) fn begin(
        &self,
        _: &HeaderMap,
        _: Instant,
        _: impl FnOnce() -> TracedRequest,
    ) -> Option<Arc<Trace>> {
        None
    }

    #[inline]
    pub(crate) fn end(&self, trace: &Trace, _: Option<u16>, _: Option<(Instant, Instant)>) {
        match *trace {}
    }

    pub(crate) fn figures(&self) -> Option<TraceFigures> {
        None
    }

    /// There is nothing to send.
    pub fn flush(&self, _: Duration) {}
}

impl Trace {
    pub(crate) fn id(&self) -> String {
        match *self {}
    }

    pub(crate) fn timeline(&self) -> &Arc<Timeline> {
        match *self {}
    }

    pub(crate) fn of_model(&self, _: Model) {
        match *self {}
    }

    pub(crate) fn response_header(&self) -> HeaderValue {
        match *self {}
    }
}

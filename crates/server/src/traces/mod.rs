//! Traces: what one request in n did, and when, as spans for an OpenTelemetry collector.
//! docs/tracing.md describes them.
//!
//! With the Cargo feature `traces`, `sampler` decides at the head of a request whether it is
//! traced, by the caller's `traceparent` (`context`) or at random. After the answer `spans` makes
//! spans of what was noted, and `export` sends them from a thread of its own. Without the feature,
//! `off` has the same names, and nothing is ever traced.

#![cfg_attr(not(feature = "traces"), allow(dead_code, reason = "only spans are made of it"))]

#[cfg(feature = "traces")]
mod context;
#[cfg(feature = "traces")]
mod export;
#[cfg(not(feature = "traces"))]
mod off;
#[cfg(feature = "traces")]
mod sampler;
#[cfg(feature = "traces")]
mod spans;

#[cfg(not(feature = "traces"))]
pub use self::off::{Trace, Traces};
#[cfg(feature = "traces")]
pub use self::spans::{Trace, Traces};

/// A request as its trace shows it.
#[derive(Debug)]
pub(crate) struct TracedRequest {
    /// The label of its route; `None` for a path without a route.
    pub(crate) route: Option<&'static str>,
    /// Its method as it was sent.
    pub(crate) method: String,
    /// Its target as the access log shows it.
    pub(crate) target: String,
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// `1.1` or `2`.
    pub(crate) protocol: &'static str,
    pub(crate) user_agent: Option<String>,
    pub(crate) request_id: String,
}

/// The model that answers a request.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The name of its engine.
    pub(crate) engine: &'static str,
}

/// The counts of spans so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceFigures {
    /// Spans that the collector took.
    pub exported: u64,
    /// Spans that it did not take.
    pub failed: u64,
    /// Spans that were dropped because too many waited.
    pub dropped: u64,
    /// Traces that callers asked for beyond `traces_asked_per_second`.
    pub refused: u64,
}

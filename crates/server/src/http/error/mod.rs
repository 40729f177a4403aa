//! Every way in which a request can fail. `shape` is the one table that maps errors to what the
//! client sees (RFC 9457 problem details). `from` converts the errors of the layers below.

mod from;
mod shape;

use std::time::Duration;

pub use kindred::UnknownWord;
use kindred::expression::ExpressionError;

pub(super) use from::whole_seconds;
pub(super) use shape::Shape;

/// Why a request, or one item of a batch, is not answered.
#[derive(Debug, Clone, PartialEq)]
pub enum ApiError {
    /// The body or a query parameter is not UTF-8.
    NotUtf8 {
        /// Which part of the request.
        what: String,
    },
    /// The body is not JSON.
    NotJson {
        /// Where the error is, and why.
        reason: String,
    },
    /// The body is declared as an array, but can't be read as one.
    NotNpy {
        /// The fault, and the cure.
        reason: String,
    },
    /// One of several queries fails a request whose answer has no place for its error.
    InQuery {
        /// Its index in the batch, from 0.
        index: usize,
        /// The fault.
        error: Box<ApiError>,
    },
    /// The body could not be received.
    UnreadableBody,
    /// An expression that does not follow the grammar.
    BadExpression(ExpressionError),
    /// The body did not arrive in time.
    BodyTimeout {
        /// How long it may take.
        limit: Duration,
    },
    /// No API key, or one that is not in force.
    Unauthorized {
        /// What is missing, and what would be right.
        reason: &'static str,
    },
    /// This API key does not allow it.
    Forbidden {
        /// What is needed.
        reason: &'static str,
    },
    /// An HTTP/1.1 request without exactly one Host.
    BadHost {
        /// What is wrong.
        reason: &'static str,
    },
    /// A body in a transfer coding other than chunked.
    UnknownTransferCoding,
    /// Path and query string are too long.
    UriTooLong {
        /// In bytes.
        limit: usize,
    },
    /// The header fields are too large.
    HeadersTooLarge {
        /// In bytes.
        limit: usize,
    },
    /// The body is larger than any valid one.
    BodyTooLarge {
        /// In bytes.
        limit: usize,
    },
    /// The body is declared as something that this route does not take.
    UnsupportedMediaType {
        /// As declared.
        found: String,
    },
    /// The request as a whole does not have a valid form.
    InvalidRequest {
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A field or parameter that does not exist.
    UnknownField {
        /// Its name or path.
        field: String,
        /// The ones that exist.
        known: Vec<String>,
    },
    /// A field or parameter with an invalid value.
    InvalidValue {
        /// Its name or path.
        field: String,
        /// What it must be.
        expected: String,
    },
    /// The answer would be too large.
    TooManyResults {
        /// What is too much, and what would be right.
        reason: String,
    },
    /// A vector with the wrong number of components.
    DimensionMismatch {
        /// The number in the request.
        found: usize,
        /// The number in the model.
        expected: usize,
    },
    /// A query that is not a finite vector, or class scores that are not finite.
    NotFinite {
        /// What is not finite.
        reason: String,
    },
    /// A query without a direction.
    ZeroQuery {
        /// Why it has none.
        reason: String,
    },
    /// Words in a form that the analogy's method does not accept.
    MethodMismatch {
        /// What does not fit, and what would.
        reason: String,
    },
    /// Words that the model does not have: all such words of the request.
    UnknownWord {
        /// In the order in which they were written.
        unknown: Vec<UnknownWord>,
    },
    /// A path that does not exist.
    NoSuchRoute {
        /// The path as requested.
        path: String,
    },
    /// A model that is not served here.
    NoSuchModel {
        /// Its name.
        name: String,
        /// The models that are served.
        known: Vec<String>,
    },
    /// A head that is not served here, or none is.
    NoSuchHead {
        /// What is asked for, and what there is.
        reason: String,
    },
    /// Not all of the service's models could be reloaded.
    ReloadFailed {
        /// Which, and why.
        reason: String,
    },
    /// Another reload is in progress.
    ReloadInProgress,
    /// A path that exists, but not with this method. The `Allow` header lists its methods.
    MethodNotAllowed {
        /// The method that was used.
        method: String,
    },
    /// The client accepts no format that the answer can have.
    NotAcceptable {
        /// The formats that it can have.
        offered: String,
    },
    /// The queue is full.
    QueueFull {
        /// How many slots were requested, and how many there are.
        reason: String,
        /// How long to wait before retrying.
        retry_after_seconds: u64,
    },
    /// The caller may not take this much of a shared resource now.
    OverLimit {
        /// What was requested, its size, and the limit.
        reason: String,
    },
    /// The service is stopping.
    Draining,
    /// The engine failed during the pass. Retrying may help.
    EngineFailed,
    /// The engine failed, and a new one is not ready yet.
    EngineRestarting {
        /// How long to wait before retrying.
        retry_after_seconds: u64,
    },
    /// The engine was lost for good. Retrying does not help.
    EngineGone,
    /// The readiness check failed.
    NotReady {
        /// Why it failed.
        reason: String,
    },
    /// The answer was not ready in time.
    DeadlinePassed,
    /// A bug in the service.
    Internal,
}

//! Every way in which a request can fail. `shape` is the one table from there to what the client sees: RFC 9457 problem
//! details; `from` makes errors of what the layers below say.

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
        /// Which of them.
        place: String,
    },
    /// The body is not JSON.
    NotJson {
        /// Where and why.
        reason: String,
    },
    /// The body did not arrive.
    UnreadableBody,
    /// An expression that does not follow the grammar.
    BadExpression(ExpressionError),
    /// The body did not arrive in time.
    BodyTimeout {
        /// How long it may take.
        limit: Duration,
    },
    /// No API key, or none that is in force.
    Unauthorized {
        /// What is missing, and what would be right.
        reason: &'static str,
    },
    /// Not with this API key.
    Forbidden {
        /// What it takes.
        reason: &'static str,
    },
    /// HTTP/1.1 without exactly one host.
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
    /// The body is declared as something else than JSON.
    UnsupportedMediaType {
        /// As declared.
        found: String,
    },
    /// The request as a whole does not have the form of one.
    InvalidRequest {
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A field or parameter that does not exist.
    UnknownField {
        /// Its name or path.
        field: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// A field or parameter with an impossible value.
    InvalidValue {
        /// Its name or path.
        field: String,
        /// What it must be.
        expected: String,
    },
    /// More than one answer may hold.
    TooManyResults {
        /// What is too much, and what would be right.
        reason: String,
    },
    /// A vector with the wrong number of components.
    DimensionMismatch {
        /// The request's.
        found: usize,
        /// The model's.
        expected: usize,
    },
    /// A query that is not a finite vector.
    NotFinite {
        /// What is not finite.
        reason: String,
    },
    /// A query without a direction.
    ZeroQuery {
        /// Why it has none.
        reason: String,
    },
    /// Words that do not have the form that an analogy's method takes.
    MethodMismatch {
        /// What does not fit, and what would.
        reason: String,
    },
    /// Words that the model does not have; all of the request.
    UnknownWord {
        /// In the order in which they were written.
        unknown: Vec<UnknownWord>,
    },
    /// A path that does not exist.
    NoSuchRoute {
        /// As it was asked for.
        path: String,
    },
    /// A model that is not served here.
    NoSuchModel {
        /// Its name.
        name: String,
        /// Those that are.
        known: Vec<String>,
    },
    /// The service's models could not all be loaded again.
    ReloadFailed {
        /// Which, and why.
        reason: String,
    },
    /// The models are being loaded already.
    ReloadInProgress,
    /// A path that exists, with another method. The `Allow` header says which.
    MethodNotAllowed {
        /// As it was used.
        method: String,
    },
    /// The client takes no form that the answer can have.
    NotAcceptable {
        /// The form that it has.
        offered: &'static str,
    },
    /// The queue is full.
    QueueFull {
        /// How many slots were asked for, and how many there are.
        reason: String,
        /// How long to wait before asking again.
        retry_after_seconds: u64,
    },
    /// Its caller may not take so much of what all share now.
    OverLimit {
        /// What was asked for, how much that is and what the bound is.
        reason: String,
    },
    /// The service is stopping.
    Draining,
    /// The pass of the engine failed. Asking again may help.
    EngineFailed,
    /// The engine failed, and there is no other yet.
    EngineRestarting {
        /// How long to wait before asking again.
        retry_after_seconds: u64,
    },
    /// There is no engine any more. Asking again does not help.
    EngineGone,
    /// The readiness check did not get its answer.
    NotReady {
        /// What came instead.
        reason: String,
    },
    /// The answer was not there in time.
    DeadlinePassed,
    /// A fault of ours.
    Internal,
}

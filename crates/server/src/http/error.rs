//! Every way in which a request can fail, and the one table from there to what the client sees: RFC
//! 9457 problem details.

use std::time::Duration;

use axum::http::StatusCode;
use contract::QueryError;

use super::fields::invalid;
use crate::models::NotMilliseconds;
use crate::workers::NotDone;
use kindred::expression::ExpressionError;
use scheduler::account::Full;

/// A word that the model does not have.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UnknownWord {
    /// As it was written.
    pub word: String,
    /// Words of the model that resemble it, the likeliest first.
    pub suggestions: Vec<String>,
}

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

/// What a client sees of an error: everything but the extras.
pub(super) struct Shape {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) title: &'static str,
    pub(super) detail: String,
}

impl ApiError {
    /// The one table.
    pub(super) fn shape(&self) -> Shape {
        use StatusCode as S;
        let (status, code, title, detail) = match self {
            Self::NotUtf8 { place } => {
                (S::BAD_REQUEST, "not_utf8", "Not UTF-8", format!("{place} is not valid UTF-8"))
            }
            Self::NotJson { reason } => {
                (S::BAD_REQUEST, "not_json", "Not JSON", format!("the body is not JSON: {reason}"))
            }
            Self::UnreadableBody => (
                S::BAD_REQUEST,
                "unreadable_body",
                "Unreadable body",
                "the body was incomplete; send it again".into(),
            ),
            Self::BodyTimeout { limit } => (
                S::REQUEST_TIMEOUT,
                "body_timeout",
                "Body timeout",
                format!(
                    "the body did not arrive within {} ms; send it faster",
                    limit.as_millis()
                ),
            ),
            Self::Unauthorized { reason } => {
                (S::UNAUTHORIZED, "unauthorized", "Unauthorized", (*reason).into())
            }
            Self::Forbidden { reason } => {
                (S::FORBIDDEN, "forbidden", "Forbidden", (*reason).into())
            }
            Self::BadHost { reason } => (
                S::BAD_REQUEST,
                "bad_host",
                "Bad host",
                format!("{reason}; HTTP/1.1 requires exactly one"),
            ),
            Self::UnknownTransferCoding => (
                S::NOT_IMPLEMENTED,
                "unknown_transfer_coding",
                "Unknown transfer coding",
                "the only supported Transfer-Encoding is chunked; send the body without another encoding"
                    .into(),
            ),
            Self::UriTooLong { limit } => (
                S::URI_TOO_LONG,
                "uri_too_long",
                "URI too long",
                format!("path and query string may have at most {limit} bytes; use POST instead"),
            ),
            Self::HeadersTooLarge { limit } => (
                S::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers_too_large",
                "Headers too large",
                format!(
                    "the header fields may have at most {limit} bytes in total; send fewer or shorter ones"
                ),
            ),
            Self::BadExpression(e) => {
                (S::BAD_REQUEST, "bad_expression", "Bad expression", e.to_string())
            }
            Self::BodyTooLarge { limit } => (
                S::PAYLOAD_TOO_LARGE,
                "body_too_large",
                "Body too large",
                format!("the body may have at most {limit} bytes; split the queries over several requests"),
            ),
            Self::UnsupportedMediaType { found } => (
                S::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "Unsupported media type",
                format!(
                    "the Content-Type is {found}; send JSON with the header Content-Type: application/json \
                     (curl: --json, or -H with that header)"
                ),
            ),
            Self::InvalidRequest { reason } => {
                (S::UNPROCESSABLE_ENTITY, "invalid_request", "Invalid request", reason.clone())
            }
            Self::UnknownField { field, known } => (
                S::UNPROCESSABLE_ENTITY,
                "unknown_field",
                "Unknown field",
                format!("there is no field `{field}`; known fields: {}", known.join(", ")),
            ),
            Self::InvalidValue { field, expected } => (
                S::UNPROCESSABLE_ENTITY,
                "invalid_value",
                "Invalid value",
                format!("`{field}` must be {expected}"),
            ),
            Self::TooManyResults { reason } => {
                (S::UNPROCESSABLE_ENTITY, "too_many_results", "Too many results", reason.clone())
            }
            Self::DimensionMismatch { found, expected } => (
                S::UNPROCESSABLE_ENTITY,
                "dimension_mismatch",
                "Dimension mismatch",
                QueryError::Dimension { found: *found, expected: *expected }.to_string(),
            ),
            Self::NotFinite { reason } => {
                (S::UNPROCESSABLE_ENTITY, "not_finite", "Not finite", reason.clone())
            }
            Self::ZeroQuery { reason } => {
                (S::UNPROCESSABLE_ENTITY, "zero_query", "Zero query", reason.clone())
            }
            Self::MethodMismatch { reason } => {
                (S::UNPROCESSABLE_ENTITY, "method_mismatch", "Method mismatch", reason.clone())
            }
            Self::UnknownWord { unknown } => {
                (S::NOT_FOUND, "unknown_word", "Unknown word", unknown_detail(unknown))
            }
            Self::NoSuchRoute { path } => (
                S::NOT_FOUND,
                "no_such_route",
                "No such route",
                format!("there is no route {path}; GET /openapi.yaml describes all routes"),
            ),
            Self::NoSuchModel { name, known } => (
                S::NOT_FOUND,
                "no_such_model",
                "No such model",
                format!("there is no model `{name}`; models: {}", known.join(", ")),
            ),
            Self::ReloadFailed { reason } => {
                (S::UNPROCESSABLE_ENTITY, "reload_failed", "Reload failed", reason.clone())
            }
            Self::ReloadInProgress => (
                S::CONFLICT,
                "reload_in_progress",
                "Reload in progress",
                "another reload is in progress; GET /models shows what is served".into(),
            ),
            Self::MethodNotAllowed { method } => (
                S::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "Method not allowed",
                format!("this route does not support {method}; the Allow header lists the methods"),
            ),
            Self::NotAcceptable { offered } => (
                S::NOT_ACCEPTABLE,
                "not_acceptable",
                "Not acceptable",
                format!("the answer is {offered}, which the Accept header excludes"),
            ),
            Self::QueueFull { reason, retry_after_seconds } => (
                S::TOO_MANY_REQUESTS,
                "queue_full",
                "Queue full",
                format!("the queue is full: {reason}; retry in {retry_after_seconds} s"),
            ),
            Self::OverLimit { reason } => (
                S::TOO_MANY_REQUESTS,
                "over_limit",
                "Over limit",
                format!("{reason}; retry when your other requests are answered, or ask for less in one request"),
            ),
            Self::Draining => (
                S::SERVICE_UNAVAILABLE,
                "draining",
                "Draining",
                "the service is stopping; use another instance".into(),
            ),
            Self::EngineFailed => (
                S::SERVICE_UNAVAILABLE,
                "engine_failed",
                "Engine failed",
                "the engine failed during this request; retry".into(),
            ),
            Self::EngineRestarting { retry_after_seconds } => (
                S::SERVICE_UNAVAILABLE,
                "engine_restarting",
                "Engine restarting",
                format!(
                    "the engine failed and is restarting; retry in {retry_after_seconds} s"
                ),
            ),
            Self::EngineGone => (
                S::SERVICE_UNAVAILABLE,
                "engine_gone",
                "Engine gone",
                "the engine has stopped and the service is about to exit; use another instance".into(),
            ),
            Self::NotReady { reason } => {
                (S::SERVICE_UNAVAILABLE, "not_ready", "Not ready", reason.clone())
            }
            Self::DeadlinePassed => (
                S::GATEWAY_TIMEOUT,
                "deadline_passed",
                "Deadline passed",
                "the deadline passed before the answer was ready; ask for less in one request, or retry later".into(),
            ),
            Self::Internal => (
                S::INTERNAL_SERVER_ERROR,
                "internal",
                "Internal error",
                "internal error; the log of the service has the details".into(),
            ),
        };
        Shape { status, code, title, detail }
    }

    /// What the client is told in `Retry-After`, where asking again may help.
    pub(super) fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::QueueFull { retry_after_seconds, .. }
            | Self::EngineRestarting { retry_after_seconds } => Some(*retry_after_seconds),
            // Only this pass failed; by then there may be another engine.
            Self::EngineFailed | Self::OverLimit { .. } => Some(1),
            _ => None,
        }
    }

    /// About how many bytes of a request are repeated in what its client is told.
    pub(super) fn bytes(&self) -> usize {
        match self {
            // Each word in `unknown` and in `detail`, with its suggestions.
            Self::UnknownWord { unknown } => {
                unknown.iter().map(|unknown| 3 * unknown.word.len() + 128).sum()
            }
            _ => 0,
        }
    }

    /// The HTTP status of this error.
    pub fn status(&self) -> StatusCode {
        self.shape().status
    }
}

fn unknown_detail(unknown: &[UnknownWord]) -> String {
    let words: Vec<_> = unknown.iter().map(|unknown| format!("`{}`", unknown.word)).collect();
    let mut detail = format!("the model does not have {}", words.join(", "));
    if let [UnknownWord { suggestions, .. }] = unknown
        && !suggestions.is_empty()
    {
        detail += &format!("; did you mean {}?", suggestions.join(", "));
    }
    detail
}

impl From<NotDone> for ApiError {
    fn from(why: NotDone) -> Self {
        match why {
            NotDone::Late => Self::DeadlinePassed,
            NotDone::Broken => Self::Internal,
            NotDone::Full { waiting, most } => Self::OverLimit {
                reason: format!(
                    "{waiting} of this caller's requests are waiting for a thread; the maximum is \
                     {most}"
                ),
            },
        }
    }
}

impl From<Full> for ApiError {
    fn from(full: Full) -> Self {
        Self::OverLimit { reason: full.to_string() }
    }
}

impl From<NotMilliseconds> for ApiError {
    fn from(NotMilliseconds(field): NotMilliseconds) -> Self {
        invalid(field)
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Dimension { found, expected } => {
                Self::DimensionMismatch { found, expected }
            }
            QueryError::NotFinite { .. } => Self::NotFinite { reason: error.to_string() },
            QueryError::Zero => Self::ZeroQuery { reason: error.to_string() },
            // Rows come from the model's own words, never from a client.
            QueryError::NoSuchRow { .. } => Self::Internal,
        }
    }
}

//! What a client sees of an error: status, code, title and text.

use axum::http::StatusCode;
use kindred::unknown_words_message;

use super::ApiError;

/// What a client sees of an error: everything except the extra fields of some codes.
pub(in crate::http) struct Shape {
    pub(in crate::http) status: StatusCode,
    pub(in crate::http) code: &'static str,
    pub(in crate::http) title: &'static str,
    pub(in crate::http) detail: String,
}

impl ApiError {
    /// The one table of all errors.
    pub(in crate::http) fn shape(&self) -> Shape {
        use StatusCode as S;
        let (status, code, title, detail) = match self {
            Self::NotUtf8 { what } => {
                (S::BAD_REQUEST, "not_utf8", "Not UTF-8", format!("{what} is not valid UTF-8"))
            }
            Self::NotJson { reason } => {
                (S::BAD_REQUEST, "not_json", "Not JSON", format!("the body is not JSON: {reason}"))
            }
            Self::NotNpy { reason } => (
                S::BAD_REQUEST,
                "not_npy",
                "Not npy",
                format!("the body is not an array in the format .npy: {reason}"),
            ),
            Self::InQuery { index, error } => {
                let Shape { status, code, title, detail } = error.shape();
                let detail = format!(
                    "`queries[{index}]`: {detail}; an .npy answer has no place for the error of one query: correct the \
                     query, or accept application/json, which answers the others"
                );
                (status, code, title, detail)
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
                     (curl: --json, or -H with that header); /nearest and /expand also take vectors as application/x-npy"
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
                kindred::Error::DimensionMismatch { found: *found, expected: *expected }.to_string(),
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
                (S::NOT_FOUND, "unknown_word", "Unknown word", unknown_words_message(unknown))
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
            Self::NoSuchHead { reason } => {
                (S::NOT_FOUND, "no_such_head", "No such head", reason.clone())
            }
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

    /// The value of `Retry-After`, if retrying may help.
    pub(in crate::http) fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::QueueFull { retry_after_seconds, .. }
            | Self::EngineRestarting { retry_after_seconds } => Some(*retry_after_seconds),
            // Only this pass failed; after a second there may be a new engine.
            Self::EngineFailed | Self::OverLimit { .. } => Some(1),
            _ => None,
        }
    }

    /// About how many bytes of the request this error repeats to the client.
    pub(in crate::http) fn bytes(&self) -> usize {
        match self {
            // Each word appears in `unknown` and in `detail`, with its suggestions.
            Self::UnknownWord { unknown } => {
                unknown.iter().map(|unknown| 3 * unknown.word.len() + 128).sum()
            }
            Self::InQuery { error, .. } => error.bytes(),
            _ => 0,
        }
    }

    /// The HTTP status of this error.
    pub fn status(&self) -> StatusCode {
        self.shape().status
    }
}

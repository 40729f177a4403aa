//! Every way in which a request can fail, with the text, status and code that the client sees (RFC
//! 9457 problem details). `from` converts the errors of the layers below.

mod from;

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use kindred::live::changes::BadRow;
use kindred::{Error, UnknownWord};

use super::parse::other_names::did_you_mean;

/// Why a request, or one item of a batch, is not answered. Its text says what is wrong, and what
/// would be right.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(in crate::http) enum ApiError {
    /// A question that the facade refuses. (`from` makes other errors of it where it is no fault of
    /// the question.)
    #[error(transparent)]
    Question(Error),
    #[error("{what} is not valid UTF-8")]
    NotUtf8 { what: String },
    #[error("the body is not JSON: {reason}")]
    NotJson { reason: String },
    #[error("the body is not an array in the format .npy: {reason}")]
    NotNpy { reason: String },
    /// One of several queries or texts fails a request whose answer has no place for its error.
    #[error(
        "`{list}[{index}]`: {error}; an .npy answer has no place for the error of one {item}: \
         correct the {item}, or accept application/json, which answers the others"
    )]
    InItem { list: &'static str, item: &'static str, index: usize, error: Box<ApiError> },
    /// A text of a request whose answer has no place for its error.
    #[error("`{field}`: {error}")]
    InField { field: String, error: Box<ApiError> },
    /// No text at all, or an empty one, for clients that tell this fault from others.
    #[error("`{field}` cannot be empty: it must be a text, or a list of 1 to 2048 texts")]
    EmptyInput { field: String },
    #[error("the body was incomplete; send it again")]
    UnreadableBody,
    #[error("the body did not arrive within {} ms; send it faster", limit.as_millis())]
    BodyTimeout { limit: Duration },
    /// No API key, or one that is not in force.
    #[error("{reason}")]
    Unauthorized { reason: &'static str },
    /// This API key does not allow it.
    #[error("{reason}")]
    Forbidden { reason: &'static str },
    #[error("{reason}; HTTP/1.1 requires exactly one")]
    BadHost { reason: &'static str },
    #[error(
        "the only supported Transfer-Encoding is chunked; send the body without another encoding"
    )]
    UnknownTransferCoding,
    #[error("path and query string may have at most {limit} bytes; use POST instead")]
    UriTooLong { limit: usize },
    #[error(
        "the header fields may have at most {limit} bytes in total; send fewer or shorter ones"
    )]
    HeadersTooLarge { limit: usize },
    #[error("the body may have at most {limit} bytes; split the queries over several requests")]
    BodyTooLarge { limit: usize },
    /// The body is declared as something that this route does not take.
    #[error(
        "the Content-Type is {found}; send JSON with the header Content-Type: application/json \
         (curl: -H 'Content-Type: application/json'); /nearest and /expand also take vectors as \
         application/x-npy"
    )]
    UnsupportedMediaType { found: String },
    /// The body is declared to be compressed, or coded otherwise.
    #[error(
        "the Content-Encoding of the body is {found}, and only bodies without one are read; send \
         the body as it is, and leave the header Content-Encoding out (a character set belongs \
         in Content-Type)"
    )]
    EncodedBody { found: String },
    #[error(
        "there is no field `{field}`{}; known fields: {}",
        did_you_mean(field, known),
        known.join(", ")
    )]
    UnknownField { field: String, known: Vec<String> },
    /// The answer would be too large.
    #[error("{reason}")]
    TooManyResults { reason: String },
    /// `meant` is the path of a route, or several, that may be meant.
    #[error(
        "there is no route {path}{}; GET /openapi.yaml describes all routes",
        meant.as_ref().map_or_else(String::new, |meant| format!(" (did you mean {meant}?)"))
    )]
    NoSuchRoute { path: String, meant: Option<String> },
    #[error("there is no model `{name}`; models: {}", known.join(", "))]
    NoSuchModel { name: String, known: Vec<String> },
    /// There is a table or a model of this name.
    #[error("{reason}")]
    ModelExists { reason: String },
    /// A table that can't be made, or not deleted.
    #[error("{reason}")]
    TableRefused { reason: String },
    #[error("the changes of this table are being folded; wait for its end")]
    FoldInProgress,
    /// Nothing is served yet: tables are made while the service runs.
    #[error("there is no model yet; make a table: POST /models")]
    NoModels,
    /// A row that is not there, or not any more.
    #[error("the table has no row `{key}`")]
    NoSuchRow { key: String },
    /// Rows of a batch that was refused whole.
    #[error("{}", all_bad(rows))]
    BadRows { rows: Arc<[BadRow]> },
    /// A model whose rows can't be changed here.
    #[error(
        "rows of `{model}` can't be changed here: only tables in the folder of the setting \
         models_dir can (kindred serve --models-dir DIR)"
    )]
    NotWritable { model: String },
    /// A position whose rows are not kept any more.
    #[error(
        "the rows at position {position} are not kept any more; list them from the beginning, \
         without `after`"
    )]
    PositionGone { position: u64 },
    /// The table has not had the position that the request asks for.
    #[error(
        "the table is at {found}, and the header Min-Position asks for {wanted}; retry in {} s, or \
         ask the service that answered the change",
        RETRY_POSITION
    )]
    PositionNotReached { found: String, wanted: String },
    /// A change of the rows at another position.
    #[error(
        "the table is at {found}, and the header If-Position asks for {wanted}: nothing was changed; \
         read the rows again, and send the change for the position at which they are now"
    )]
    PositionChanged { found: String, wanted: String },
    /// A report about a source that no batch has named.
    #[error(
        "the table follows no source `{name}`; a change with the header Source-Position makes it \
         known"
    )]
    NoSuchSource { name: String },
    /// An idempotency key of another batch.
    #[error("{reason}")]
    KeyReused { reason: String },
    #[error(
        "there is no space left on the disk; nothing was changed: free some space and send the \
         request again"
    )]
    NoSpace,
    #[error("the table has no numbers left for so many rows; make a new one from its rows")]
    TooManyRows,
    /// A write or a sync failed.
    #[error(
        "the change was not written; the log of the service has the details. The table takes no \
         changes until it is opened again if a sync failed"
    )]
    NotWritten,
    /// A head that is not served here, or none is.
    #[error("{reason}")]
    NoSuchHead { reason: String },
    /// Not all of the service's models could be reloaded.
    #[error("{reason}")]
    ReloadFailed { reason: String },
    #[error("another reload is in progress; GET /models shows what is served")]
    ReloadInProgress,
    /// `allowed` is the `Allow` header.
    #[error("this route does not support {method}; send {}", one_of(allowed))]
    MethodNotAllowed { method: String, allowed: &'static str },
    #[error("the answer is {offered}, which the Accept header excludes")]
    NotAcceptable { offered: String },
    #[error("the queue is full: {reason}; retry in {retry_after_seconds} s")]
    QueueFull { reason: String, retry_after_seconds: u64 },
    /// The caller may not take this much of a shared resource now.
    #[error(
        "{reason}; retry when your other requests are answered, or ask for less in one request"
    )]
    OverLimit { reason: String },
    #[error("the service is stopping; use another instance")]
    Draining,
    #[error("the engine failed during this request; retry")]
    EngineFailed,
    #[error("the engine failed and is restarting; retry in {retry_after_seconds} s")]
    EngineRestarting { retry_after_seconds: u64 },
    #[error("the engine has stopped and the service is about to exit; use another instance")]
    EngineGone,
    /// The readiness check failed.
    #[error("{reason}")]
    NotReady { reason: String },
    #[error(
        "the deadline passed before the answer was ready; ask for less in one request, or retry \
         later"
    )]
    DeadlinePassed,
    /// A bug in the service.
    #[error("internal error; the log of the service has the details")]
    Internal,
}

impl ApiError {
    /// The request as a whole does not have a valid form. `reason` says what would be right.
    pub(in crate::http) fn invalid_request(reason: impl Into<String>) -> Self {
        Self::Question(Error::InvalidRequest { reason: reason.into() })
    }

    /// The field or parameter of this name or path has an invalid value.
    pub(in crate::http) fn invalid_value(field: &str, expected: impl Into<String>) -> Self {
        let expected: String = expected.into();
        let (field, expected) = (field.into(), expected.into_boxed_str());
        Self::Question(Error::InvalidValue { field, expected, found: None })
    }

    /// The same error about an invalid value, with that value in words.
    pub(in crate::http) fn with_found(mut self, value: Option<String>) -> Self {
        if let Self::Question(Error::InvalidValue { found, .. }) = &mut self {
            *found = value.map(String::into_boxed_str);
        }
        self
    }

    /// The same error about the text in a field of another name.
    pub(in crate::http) fn in_field(self, name: String) -> Self {
        match self {
            Self::Question(Error::InvalidValue { expected, found, .. }) => {
                Self::Question(Error::InvalidValue { field: name.into(), expected, found })
            }
            other => Self::InField { field: name, error: Box::new(other) },
        }
    }

    /// The HTTP status and the code: the one table of all errors.
    pub(in crate::http) fn kind(&self) -> (StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Self::Question(error) => {
                let status = match error {
                    Error::BadExpression(_) => S::BAD_REQUEST,
                    Error::UnknownWord { .. } => S::NOT_FOUND,
                    _ => S::UNPROCESSABLE_ENTITY,
                };
                (status, error.code())
            }
            Self::NotUtf8 { .. } => (S::BAD_REQUEST, "not_utf8"),
            Self::NotJson { .. } => (S::BAD_REQUEST, "not_json"),
            Self::NotNpy { .. } => (S::BAD_REQUEST, "not_npy"),
            Self::InItem { error, .. } | Self::InField { error, .. } => error.kind(),
            Self::EmptyInput { .. } => (S::UNPROCESSABLE_ENTITY, "invalid_value"),
            Self::UnreadableBody => (S::BAD_REQUEST, "unreadable_body"),
            Self::BodyTimeout { .. } => (S::REQUEST_TIMEOUT, "body_timeout"),
            Self::Unauthorized { .. } => (S::UNAUTHORIZED, "unauthorized"),
            Self::Forbidden { .. } => (S::FORBIDDEN, "forbidden"),
            Self::BadHost { .. } => (S::BAD_REQUEST, "bad_host"),
            Self::UnknownTransferCoding => (S::NOT_IMPLEMENTED, "unknown_transfer_coding"),
            Self::UriTooLong { .. } => (S::URI_TOO_LONG, "uri_too_long"),
            Self::HeadersTooLarge { .. } => {
                (S::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large")
            }
            Self::BodyTooLarge { .. } => (S::PAYLOAD_TOO_LARGE, "body_too_large"),
            Self::UnsupportedMediaType { .. } | Self::EncodedBody { .. } => {
                (S::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type")
            }
            Self::UnknownField { .. } => (S::UNPROCESSABLE_ENTITY, "unknown_field"),
            Self::TooManyResults { .. } => (S::UNPROCESSABLE_ENTITY, "too_many_results"),
            Self::NoSuchRoute { .. } => (S::NOT_FOUND, "no_such_route"),
            Self::NoSuchModel { .. } => (S::NOT_FOUND, "no_such_model"),
            Self::NoSuchHead { .. } => (S::NOT_FOUND, "no_such_head"),
            Self::ModelExists { .. } => (S::CONFLICT, "model_exists"),
            Self::TableRefused { .. } => (S::FORBIDDEN, "table_refused"),
            Self::FoldInProgress => (S::CONFLICT, "fold_in_progress"),
            Self::NoModels => (S::NOT_FOUND, "no_such_model"),
            Self::NoSuchRow { .. } => (S::NOT_FOUND, "no_such_row"),
            Self::BadRows { .. } => (S::UNPROCESSABLE_ENTITY, "bad_rows"),
            Self::NotWritable { .. } => (S::FORBIDDEN, "not_writable"),
            Self::PositionGone { .. } => (S::GONE, "position_gone"),
            Self::PositionNotReached { .. } => (S::SERVICE_UNAVAILABLE, "position_not_reached"),
            Self::PositionChanged { .. } => (S::PRECONDITION_FAILED, "position_changed"),
            Self::NoSuchSource { .. } => (S::NOT_FOUND, "no_such_source"),
            Self::KeyReused { .. } => (S::CONFLICT, "idempotency_key_reused"),
            Self::NoSpace => (S::INSUFFICIENT_STORAGE, "no_space"),
            Self::TooManyRows => (S::UNPROCESSABLE_ENTITY, "too_many_rows"),
            Self::NotWritten => (S::INTERNAL_SERVER_ERROR, "not_written"),
            Self::ReloadFailed { .. } => (S::UNPROCESSABLE_ENTITY, "reload_failed"),
            Self::ReloadInProgress => (S::CONFLICT, "reload_in_progress"),
            Self::MethodNotAllowed { .. } => (S::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::NotAcceptable { .. } => (S::NOT_ACCEPTABLE, "not_acceptable"),
            Self::QueueFull { .. } => (S::TOO_MANY_REQUESTS, "queue_full"),
            Self::OverLimit { .. } => (S::TOO_MANY_REQUESTS, "over_limit"),
            Self::Draining => (S::SERVICE_UNAVAILABLE, "draining"),
            Self::EngineFailed => (S::SERVICE_UNAVAILABLE, "engine_failed"),
            Self::EngineRestarting { .. } => (S::SERVICE_UNAVAILABLE, "engine_restarting"),
            Self::EngineGone => (S::SERVICE_UNAVAILABLE, "engine_gone"),
            Self::NotReady { .. } => (S::SERVICE_UNAVAILABLE, "not_ready"),
            Self::DeadlinePassed => (S::GATEWAY_TIMEOUT, "deadline_passed"),
            Self::Internal => (S::INTERNAL_SERVER_ERROR, "internal"),
        }
    }

    /// The value of `Retry-After`, if retrying may help.
    pub(in crate::http) fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::QueueFull { retry_after_seconds, .. }
            | Self::EngineRestarting { retry_after_seconds } => Some(*retry_after_seconds),
            // Only this pass failed; after a second there may be a new engine.
            Self::EngineFailed | Self::OverLimit { .. } => Some(1),
            Self::PositionNotReached { .. } => Some(RETRY_POSITION),
            _ => None,
        }
    }

    /// About how many bytes of the request this error repeats to the client.
    pub(in crate::http) fn bytes(&self) -> usize {
        match self {
            // Each word appears in `unknown` and in `detail`, with its suggestions and expression.
            Self::Question(Error::UnknownWord { unknown }) => {
                let of_word = |unknown: &UnknownWord| {
                    let expression = unknown.expression.as_ref().map_or(0, String::len);
                    3 * (unknown.word.len() + expression) + 128
                };
                unknown.iter().map(of_word).sum()
            }
            Self::Question(Error::InvalidFilter(fault)) => {
                let known = fault.fault.known().iter().map(|name| name.len() + 3);
                fault.to_string().len() + known.sum::<usize>()
            }
            Self::InItem { error, .. } | Self::InField { error, .. } => error.bytes(),
            Self::BadRows { rows } => {
                rows.iter().map(|row| 2 * (row.key.len() + row.reason.len()) + 64).sum()
            }
            _ => 0,
        }
    }
}

/// Seconds after which a position may be there.
const RETRY_POSITION: u64 = 1;

/// The first bad rows of a batch, and how many there are.
fn all_bad(rows: &[BadRow]) -> String {
    const NAMED: usize = 3;
    let plural = if rows.len() == 1 { " is" } else { "s are" };
    let named: Vec<String> = rows.iter().take(NAMED).map(BadRow::to_string).collect();
    let more = match rows.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more, which `rows` names"),
    };
    let (bad, named) = (rows.len(), named.join("; "));
    format!("{bad} row{plural} bad, so nothing was changed: {named}{more}")
}

/// The methods of an `Allow` header, in words.
fn one_of(allowed: &str) -> String {
    match allowed.rsplit_once(',') {
        Some((others, last)) => format!("{} or {last}", others.replace(',', ", ")),
        None => allowed.to_owned(),
    }
}

//! Converts the errors of the layers below into errors for clients.

use std::time::Duration;

use kindred::live::changes::ChangeError;
use kindred::{Error, ModelError};
use scheduler::SubmitError;
use scheduler::account::Full;
use tracing::error;

use super::ApiError;
use crate::http::parse::{found, invalid};
use crate::models::{LoadError, NotMilliseconds, TableError, WriteError};
use crate::workers::WorkError;

impl From<WorkError> for ApiError {
    fn from(why: WorkError) -> Self {
        match why {
            WorkError::Expired => Self::DeadlinePassed,
            WorkError::Panicked => Self::Internal,
            WorkError::QueueFull { waiting, most } => Self::OverLimit {
                reason: format!(
                    "{waiting} requests are waiting for a thread; the maximum is {most}"
                ),
            },
        }
    }
}

impl From<WriteError> for ApiError {
    fn from(why: WriteError) -> Self {
        match why {
            WriteError::Expired => Self::DeadlinePassed,
            WriteError::Panicked => Self::Internal,
            WriteError::QueueFull { waiting, most } => Self::OverLimit {
                reason: format!(
                    "{waiting} changes are waiting to be written; the maximum is {most}"
                ),
            },
            WriteError::Memory(full) => full.into(),
            WriteError::Question(error) => error.into(),
            WriteError::Bad(rows) => Self::BadRows { rows: rows.0.into() },
            WriteError::Change(ChangeError::DiskFull { .. }) => Self::NoSpace,
            WriteError::Change(ChangeError::TooManyRows { .. }) => Self::TooManyRows,
            WriteError::Change(ChangeError::BadRequestKey { bytes }) => {
                let expected = "a text of 1 to 255 bytes";
                let found = Some(format!("one of {bytes} bytes"));
                Self::invalid_value("Idempotency-Key", expected).with_found(found)
            }
            WriteError::Change(why @ ChangeError::TooManySources) => {
                Self::invalid_value("Source-Position", why.to_string())
            }
            WriteError::Change(why @ ChangeError::RequestKeyReused { .. }) => {
                Self::KeyReused { reason: why.to_string() }
            }
            WriteError::Change(why) => {
                error!("a change was not written: {why}");
                Self::NotWritten
            }
        }
    }
}

impl From<TableError> for ApiError {
    fn from(why: TableError) -> Self {
        let reason = why.to_string();
        match why {
            TableError::Exists(_) => Self::ModelExists { reason },
            TableError::NotThere { name, known } => Self::NoSuchModel { name, known },
            TableError::NoFolder | TableError::OfSettings(_) => Self::TableRefused { reason },
            TableError::Name(_) => Self::invalid_request(reason),
            TableError::Create(ModelError::BadInput { reason, .. }) => {
                Self::invalid_request(reason.to_string())
            }
            TableError::Load(LoadError::NoMemory { .. }) => Self::OverLimit { reason },
            TableError::Folding => Self::FoldInProgress,
            TableError::NoSpaceToFold { .. } => Self::NoSpace,
            TableError::Create(_)
            | TableError::Load(_)
            | TableError::Delete { .. }
            | TableError::Broken => {
                error!("a table was not made or deleted: {reason}");
                Self::NotWritten
            }
        }
    }
}

impl From<Full> for ApiError {
    fn from(full: Full) -> Self {
        Self::OverLimit { reason: full.to_string() }
    }
}

impl From<NotMilliseconds> for ApiError {
    fn from(why: NotMilliseconds) -> Self {
        let (name, found) = match why {
            NotMilliseconds::Header(value) => ("Request-Timeout-Ms", found::of_parameter(&value)),
            NotMilliseconds::Field => ("timeout_ms", Some("0".to_owned())),
        };
        invalid(name).with_found(found)
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotAnswered(why) => why.into(),
            Error::Internal => Self::Internal,
            error => Self::Question(error),
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(why: SubmitError) -> Self {
        match why {
            SubmitError::Full { retry_after, .. } => Self::QueueFull {
                reason: why.to_string(),
                retry_after_seconds: whole_seconds(retry_after),
            },
            SubmitError::EngineRestarting { retry_after } => {
                Self::EngineRestarting { retry_after_seconds: whole_seconds(retry_after) }
            }
            SubmitError::DeadlinePassed => Self::DeadlinePassed,
            SubmitError::EngineFailed => Self::EngineFailed,
            SubmitError::EngineGone => Self::EngineGone,
        }
    }
}

/// Rounds up to whole seconds, at most 60, so that a client does not give up.
fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + 1).min(60)
}

#[cfg(test)]
mod tests {
    use kindred::UnknownWord;
    use scheduler::SubmitError;

    use super::*;

    /// Memory for an answer is counted by what its errors repeat.
    #[test]
    fn the_size_of_an_error_counts_words_and_expressions() {
        let bytes = |expression: Option<String>| {
            let mut unknown = UnknownWord::new("a-b+c".to_owned());
            unknown.expression = expression;
            ApiError::from(Error::UnknownWord { unknown: vec![unknown] }).bytes()
        };
        let expression = "a - b + c".repeat(20);
        assert!(bytes(Some(expression.clone())) >= bytes(None) + 2 * expression.len());
    }

    /// Answers in bulk have no `ApiError`, and the same codes.
    #[test]
    fn codes_are_those_of_the_facade() {
        let text = || "x".to_owned();
        let soon = Duration::from_millis(1);
        let full = SubmitError::Full { asked: 1, held: 1, free: 0, capacity: 1, retry_after: soon };
        let expression = kindred::Target::expression("+").unwrap_err();
        let errors = [
            expression,
            kindred::filters::parse("").unwrap_err().into(),
            Error::InvalidRequest { reason: text() },
            Error::InvalidValue { field: "x".into(), expected: "y".into(), found: None },
            Error::DimensionMismatch { found: 1, expected: 2 },
            Error::NotFinite { reason: text() },
            Error::ZeroQuery { reason: text() },
            Error::MethodMismatch { reason: text() },
            Error::UnknownWord { unknown: Vec::new() },
            Error::NotAnswered(full),
            Error::NotAnswered(SubmitError::DeadlinePassed),
            Error::NotAnswered(SubmitError::EngineFailed),
            Error::NotAnswered(SubmitError::EngineRestarting { retry_after: soon }),
            Error::NotAnswered(SubmitError::EngineGone),
            Error::Internal,
        ];
        for error in errors {
            let code = error.code();
            assert_eq!(ApiError::from(error).kind().1, code);
        }
    }
}

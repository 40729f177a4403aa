//! Errors as Python's exceptions. The classes are in `kindred/_errors.py`.

use std::path::Path;

use kindred::expression::ExpressionError;
use kindred::live::changes::{BadRow, ChangeError};
use kindred::{Error, ModelError, UnknownWord};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};

static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// An exception of this class with this message.
fn exception(
    py: Python<'_>,
    class: &str,
    message: &str,
    fields: &Bound<'_, PyDict>,
) -> PyResult<PyErr> {
    let classes = CLASSES
        .get_or_try_init(py, || PyModule::import(py, "kindred._errors").map(Bound::unbind))?;
    let class = classes.bind(py).getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), Some(fields))?))
}

fn raise(
    class: &str,
    message: &str,
    fill: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyErr {
    Python::attach(|py| {
        let fields = PyDict::new(py);
        fill(&fields).and_then(|()| exception(py, class, message, &fields)).unwrap_or_else(|e| e)
    })
}

fn plain(class: &str, message: &str) -> PyErr {
    raise(class, message, |_| Ok(()))
}

pub(crate) fn forked(message: &str) -> PyErr {
    plain("ForkError", message)
}

/// What has no class of its own: folders and files.
pub(crate) fn model(error: impl ToString) -> PyErr {
    plain("ModelError", &of_python(&error.to_string()))
}

/// A message with options as Python names them: `--skip-bad-rows` is `skip_bad_rows`. A command for
/// a terminal, at the end, keeps its own.
fn of_python(message: &str) -> String {
    let command = message.find("| kindred ").unwrap_or(message.len());
    let (message, command) = message.split_at(command);
    let mut pieces = message.split("--");
    let mut written = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
        let end = piece.find(|c| !is_name(c)).unwrap_or(piece.len());
        let (name, rest) = piece.split_at(end);
        match name {
            "" => written += "--",
            // Options that are repeated on the command line, and one that is singular there.
            "type" => written += "`types`",
            "bias" => written += "`biases`",
            _ => written += &format!("`{}`", name.replace('-', "_")),
        }
        written += rest;
    }
    written + command
}

/// Why a model folder can't be opened.
pub(crate) fn opening(error: ModelError) -> PyErr {
    match &error {
        ModelError::HasChanges { path } => is_a_table(path),
        _ => model(error),
    }
}

/// That a folder is no model that never changes.
pub(crate) fn is_a_table(path: &Path) -> PyErr {
    let path = path.display();
    model(format!("rows of {path} were changed; open the folder by kindred.open_table"))
}

/// Bad rows of a batch.
pub(crate) fn bad_rows(bad: &[BadRow]) -> PyErr {
    let count = match bad.len() {
        1 => "1 row is".to_owned(),
        n => format!("{n} rows are"),
    };
    let first = bad.first().map(BadRow::to_string).unwrap_or_default();
    raise("BadRowsError", &format!("{count} bad, so nothing was changed: {first}"), |fields| {
        let rows = bad.iter().map(|one| (one.index, &*one.key, &*one.reason));
        fields.set_item("rows", rows.collect::<Vec<_>>())
    })
}

/// Why a table can't be opened or changed.
pub(crate) fn change(error: ChangeError) -> PyErr {
    match error {
        ChangeError::BadRequestKey { .. } | ChangeError::RequestKeyReused { .. } => {
            raise("InvalidValueError", &error.to_string(), |fields| {
                fields.set_item("field", "idempotency_key")
            })
        }
        error => model(error),
    }
}

/// A value that is not what it must be.
pub(crate) fn invalid(field: &str, expected: &str) -> PyErr {
    let (field, expected) = (field.into(), expected.into());
    of_question(Error::InvalidValue { field, expected, found: None })
}

#[cfg(feature = "cuda")]
pub(crate) fn not_finite(message: &str) -> PyErr {
    plain("NotFiniteError", message)
}

pub(crate) fn engine(error: impl ToString) -> PyErr {
    plain("EngineError", &of_python(&error.to_string()))
}

/// Why a question has no answer.
pub(crate) fn of_question(error: Error) -> PyErr {
    use kindred::queue::SubmitError as Queue;
    let message = error.to_string();
    match error {
        Error::UnknownWord { unknown } => raise("UnknownWordError", &message, |fields| {
            let words = unknown
                .into_iter()
                .map(|UnknownWord { word, suggestions, .. }| (word, suggestions));
            fields.set_item("unknown", words.collect::<Vec<_>>())
        }),
        Error::InvalidValue { field, expected, .. } => {
            raise("InvalidValueError", &message, |fields| {
                fields.set_item("field", &*field)?;
                fields.set_item("expected", &*expected)
            })
        }
        Error::InvalidRequest { .. } => plain("InvalidValueError", &message),
        Error::BadExpression(ExpressionError { column, .. }) => {
            raise("ExpressionError", &message, |fields| fields.set_item("column", column))
        }
        Error::InvalidFilter(fault) => raise("InvalidValueError", &message, |fields| {
            fields.set_item("field", "filter")?;
            fields.set_item("column", fault.column)
        }),
        Error::DimensionMismatch { found, expected } => {
            raise("DimensionError", &message, |fields| {
                fields.set_item("found", found)?;
                fields.set_item("expected", expected)
            })
        }
        Error::NotFinite { .. } => plain("NotFiniteError", &message),
        Error::ZeroQuery { .. } => plain("ZeroVectorError", &message),
        Error::MethodMismatch { .. } => plain("MethodError", &message),
        Error::NotAnswered(Queue::Full { retry_after, .. }) => {
            raise("OverloadedError", &message, |fields| {
                fields.set_item("retry_after", retry_after.as_secs_f64())
            })
        }
        Error::NotAnswered(Queue::DeadlinePassed) => plain("DeadlineError", &message),
        Error::NotAnswered(_) | Error::Internal => engine(message),
    }
}

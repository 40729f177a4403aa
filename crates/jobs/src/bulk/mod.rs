//! Bulk work: each row of a file is a text, a word or an expression, and each gets its answer in
//! another file, in order.
//!
//! One thread reads the input and cuts it into pieces; some threads ask an [`Answerer`] for the
//! answers of a piece each, and write them as text, each beside its question; the thread that waits
//! for them puts them in order, keeps the journal and shows the progress. A piece is read only when
//! there is room for its answers, so memory does not grow with the input. What is done survives a
//! kill: it is in a folder beside the output, from which the same call goes on.

mod answerer;
mod ask;
mod formats;
mod journal;
mod json_answer;
mod keep;
mod local;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod read;
mod render;
mod rows;
mod run;
#[cfg(feature = "parquet")]
mod schema;
mod source;
mod work;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use kindred::Error;
use serde::Serialize;

pub use answerer::{Answerer, GoOn, RowAnswer, RowAnswers};
pub use formats::{BulkFormat, BulkInput, BulkOutput};
pub use json_answer::JsonAnswer;
pub use run::{run, run_by};
pub use work::{BulkQuestion, BulkWork, WantedLabels};

use crate::error::JobError;
use crate::journal::check_free;

/// How an input is read, and its answers are written.
#[derive(Debug, Clone)]
pub struct BulkOptions {
    /// The format of the input; `None`: as its name says.
    pub from: Option<BulkFormat>,
    /// The format of the output; `None`: as its name says.
    pub to: Option<BulkFormat>,
    /// The column or field with what is asked; `None`: `text`, `word` or `expression`.
    pub column: Option<String>,
    /// The column or field with an id of the row; `None`: the row's line.
    pub id: Option<String>,
    /// Whether the first row without an answer ends the work.
    pub strict: bool,
    /// Whether a file that is there is replaced.
    pub replace: bool,
    /// Jobs in flight, each of up to 1,024 rows: two for each replica, and some that are being made
    /// or written.
    pub jobs: usize,
}

impl Default for BulkOptions {
    fn default() -> Self {
        let (from, to, column, id) = (None, None, None, None);
        Self { from, to, column, id, strict: false, replace: false, jobs: 8 }
    }
}

/// Why a row has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The code that the HTTP API has for it; also `row_too_large` and `not_csv`.
    pub code: Cow<'static, str>,
    /// What is wrong, and what would be right.
    pub detail: String,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { code: error.code().into(), detail: error.to_string() }
    }
}

/// What is read, asked and written, as all threads know it.
struct Job<'a> {
    answerer: &'a dyn Answerer,
    question: &'a BulkQuestion,
    input: BulkInput<'a>,
    /// The format of the input.
    format: BulkFormat,
    /// The column or field with what is asked.
    column: &'a str,
    /// The column or field with an id, if rows have one.
    id: Option<&'a str>,
    /// Whether the first row without an answer ends the work.
    strict: bool,
    /// The format of the output: JSON lines, also for Parquet, which is made of them at the end, or
    /// CSV.
    to: BulkFormat,
    /// Whether it is compressed with gzip.
    is_packed: bool,
}

/// How far the work is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BulkProgress {
    /// Rows that are done, those of earlier runs included.
    pub rows: u64,
    /// Those of them that have an error.
    pub failed: u64,
    /// Rows that earlier runs did.
    pub resumed: u64,
    /// Bytes of the input that are done, before decompression.
    pub read: u64,
    /// Of how many; unknown for a pipe.
    pub total: Option<u64>,
}

/// Work that is done.
#[derive(Debug, Clone, Serialize)]
pub struct BulkSummary {
    /// The input's name.
    pub input: String,
    /// The output's name.
    pub output: String,
    /// What was asked: `classify`, `expand`, `nearest` or `analogy`.
    pub work: &'static str,
    /// The model's name.
    pub model: String,
    /// The version of its content.
    pub version: String,
    /// Number of rows.
    pub rows: u64,
    /// Those that have an answer.
    pub answered: u64,
    /// Those that have an error.
    pub failed: u64,
    /// How many, by its code.
    pub errors: BTreeMap<String, u64>,
    /// Unusual things about the input that are no faults: a sentence for each.
    pub warnings: Vec<String>,
    /// Rows that earlier runs had done.
    pub resumed_rows: u64,
    /// In which the other rows were read, asked for and written, in seconds.
    pub asking_seconds: f64,
    /// With what came before and after.
    pub seconds: f64,
}

/// Checks that the output could be written, before anything is loaded.
///
/// # Errors
/// See [`JobError`].
pub fn check_bulk_files(
    input: BulkInput<'_>,
    output: BulkOutput<'_>,
    options: &BulkOptions,
) -> Result<(), JobError> {
    let from = input.format(options.from)?;
    output.format(options.to)?;
    if from == BulkFormat::Lines && (options.column.is_some() || options.id.is_some()) {
        let reason = format!(
            "{}: a line of text has no columns; leave out --column and --id, or give the format of the input with --from",
            input.name()
        );
        return Err(JobError::Refused(reason));
    }
    let BulkOutput::File(path) = output else { return Ok(()) };
    let is_input = |input: &Path| match (input.canonicalize(), path.canonicalize()) {
        (Ok(input), Ok(output)) => input == output,
        _ => false,
    };
    match input {
        BulkInput::File(input) if !path.is_dir() && is_input(input) => {
            let reason = "is the input; choose another --out";
            Err(JobError::InTheWay { path: path.to_owned(), reason })
        }
        _ => check_free(path, options.replace),
    }
}

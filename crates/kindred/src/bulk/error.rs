//! Why bulk work ended early.

use std::io;
use std::path::{Path, PathBuf};

use model_store::ModelError;

use super::Fault;
use crate::Error;
use crate::jobs::JournalError;

/// Why bulk work ended early. Each message has the cure.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The name of the input does not say its format.
    #[error(
        "{}: the name does not say the format; give it: csv, tsv, jsonl, lines or parquet (with \
         `kindred bulk`, --from FORMAT)",
        .0.display()
    )]
    InputName(PathBuf),
    /// The name of the output does not say its format.
    #[error(
        "{0}: the name must end in .jsonl, .csv, .jsonl.gz, .csv.gz or .parquet, or the format be given: jsonl, csv or parquet \
         (with `kindred bulk`, --to FORMAT)"
    )]
    OutputName(String),
    /// Parquet is not in this build.
    #[error(
        "{0}: this kindred was built without Parquet; choose another format, or build it with `cargo build --release --features \
         parquet`"
    )]
    NoParquet(String),
    /// The input is not Parquet, or is damaged, or needs what this build does not have.
    #[error(
        "{file}: it can't be read as Parquet: {reason}; write it again, or give its format (with `kindred bulk`, --from FORMAT)"
    )]
    NotParquet {
        /// The input.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A column of Parquet has values of another kind.
    #[error(
        "{file}: the column `{column}` has neither strings nor whole numbers, floats or booleans; cast it to strings"
    )]
    ColumnType {
        /// The input.
        file: String,
        /// The column.
        column: String,
    },
    /// The input has no such column.
    #[error(
        "{file}: it has no column `{column}`; choose one of its columns: {found} (with `kindred bulk`, --column or --id)"
    )]
    Column {
        /// The input.
        file: String,
        /// The requested column.
        column: String,
        /// Those that it has.
        found: String,
    },
    /// The input has two columns of this name, or two whose names differ from it in case only.
    #[error(
        "{file}: `{column}` may be its column `{}` or its column `{}`; rename one (with `kindred \
         bulk`, --column and --id name them)",
        found[0], found[1]
    )]
    Columns {
        /// The input.
        file: String,
        /// The requested column.
        column: String,
        /// Those that it may be.
        found: [String; 2],
    },
    /// The row with the names of the columns is no such row.
    #[error(
        "{file}: its first row, which names the columns, has a quote that is not closed, or is \
         too large; correct it"
    )]
    FirstRow {
        /// The input.
        file: String,
    },
    /// The input is text in another encoding.
    #[error("{file}: {reason}")]
    Encoding {
        /// The input.
        file: String,
        /// The encoding, and the cure.
        reason: String,
    },
    /// Lines of text that end with carriage returns only.
    #[error(
        "the input has no line feeds, but carriage returns between its lines; convert them: \
         tr '\\r' '\\n' <IN >OUT"
    )]
    CarriageReturns,
    /// Options that do not go together, or have an impossible value.
    #[error("{0}")]
    Option(String),
    /// Something is where the file should be.
    #[error("{} {reason}", path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
        /// What is there, and the cure.
        reason: &'static str,
    },
    /// There is the unfinished work on something else.
    #[error(
        "{} has unfinished work with {difference}; finish it with the input, the options and the model that it was begun with, \
         or remove that folder", folder.display()
    )]
    OtherWork {
        /// The folder.
        folder: PathBuf,
        /// What is different: there, and here.
        difference: String,
    },
    /// The part of the input that was read already has changed.
    #[error(
        "{input} has changed since the work in {} was begun: its first {read} are others; restore it, or remove that folder to \
         start anew", folder.display()
    )]
    ChangedInput {
        /// The input.
        input: String,
        /// The folder of the work.
        folder: PathBuf,
        /// The length of that part: bytes, without compression, or rows of Parquet.
        read: String,
    },
    /// Another process works there.
    #[error("another process works in {}; wait until it ends, or choose another file", .0.display())]
    Busy(PathBuf),
    /// The input can't be read.
    #[error(transparent)]
    Read(#[from] ModelError),
    /// The system refused to read or write.
    #[error("can't {action} {}: {source}; rows that are done are kept: the same command goes on from there", path.display())]
    Io {
        /// The action, as an infinitive.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Nobody reads standard output any more.
    #[error("standard output was closed")]
    Closed,
    /// A row has no answer, and that was to end the work.
    #[error(
        "{input}, line {line}: {}: {}; correct the row, or leave out --strict: then it is answered with this error",
        fault.code, fault.detail
    )]
    Strict {
        /// The input.
        input: String,
        /// Its line, from 1.
        line: u64,
        /// Why it has no answer.
        fault: Fault,
    },
    /// The engine did not answer.
    #[error("{0}; rows that are done are kept: the same command goes on from there")]
    NotAnswered(#[from] Error),
    /// The caller stopped it.
    #[error(
        "stopped with {rows} rows done; they are kept in {}: the same command goes on from there", folder.display()
    )]
    Stopped {
        /// The number of rows.
        rows: u64,
        /// Where they are kept.
        folder: PathBuf,
    },
    /// The caller stopped it, and it can't go on.
    #[error(
        "stopped with {rows} rows done; there is nothing to go on from: the same command begins anew (work on standard input or \
         for standard output can't go on)"
    )]
    StoppedForGood {
        /// The number of rows.
        rows: u64,
    },
}

impl BulkError {
    pub(super) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

impl From<JournalError> for BulkError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::OtherJob { folder, difference } => Self::OtherWork { folder, difference },
            JournalError::Busy(folder) => Self::Busy(folder),
            JournalError::Io { action, path, source } => Self::Io { action, path, source },
        }
    }
}

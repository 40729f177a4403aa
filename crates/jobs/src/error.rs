//! Why a job ended early.

use std::io;
use std::path::{Path, PathBuf};

use kindred::queue::SubmitError;
use model_store::ModelError;

/// Why a job ended early. Each message has the cure.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// An option, a name or an input that can't be used.
    #[error("{0}")]
    Refused(String),
    /// Something is where the file should be.
    #[error("{} {reason}", path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
        /// What is there, and the cure.
        reason: &'static str,
    },
    /// There is the unfinished work of another job.
    #[error(
        "{} has unfinished work with {difference}; finish it with {same} that it was begun with, \
         or remove that folder",
        folder.display()
    )]
    OtherWork {
        /// The folder.
        folder: PathBuf,
        /// What is different: there, and here.
        difference: String,
        /// What must be the same.
        same: &'static str,
    },
    /// Another process works there.
    #[error("another process works in {}; wait until it ends, or choose another file", .0.display())]
    Busy(PathBuf),
    /// The input can't be read.
    #[error(transparent)]
    Read(#[from] ModelError),
    /// The folder of the unfinished work can't be made, so there is no work yet.
    #[error("can't create {}: {source}; choose another --out", folder.display())]
    NotBegun {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused to read or write.
    #[error(
        "can't {action} {}: {source}; rows that are done are kept: the same command goes on from \
         there",
        path.display()
    )]
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
    /// The engine did not answer.
    #[error("{0}; rows that are done are kept: the same command goes on from there")]
    NotAnswered(#[from] kindred::Error),
    /// The service, or whatever answers instead of an engine, did not answer.
    #[error("{0}; rows that are done are kept: the same command goes on from there")]
    Answerer(String),
    /// The same, and the work can't go on.
    #[error("{0}; there is nothing to go on from: the same command begins anew")]
    AnswererForGood(String),
    /// The caller stopped it.
    #[error(
        "stopped with {done} rows done; they are kept in {}: the same command goes on from there",
        folder.display()
    )]
    Stopped {
        /// How many rows, or which share of how many.
        done: String,
        /// Where they are kept.
        folder: PathBuf,
    },
    /// The caller stopped it, and it can't go on.
    #[error(
        "stopped with {rows} rows done; there is nothing to go on from: the same command begins \
         anew (work on standard input or for standard output can't go on)"
    )]
    StoppedForGood {
        /// The number of rows.
        rows: u64,
    },
}

impl JobError {
    pub(crate) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// Parquet is not in this build.
    pub(crate) fn no_parquet(file: &str, instead: &str) -> Self {
        Self::Refused(format!(
            "{file}: this kindred was built without Parquet; choose {instead}, or build it with \
             `cargo build --release --features parquet`"
        ))
    }
}

impl From<SubmitError> for JobError {
    fn from(error: SubmitError) -> Self {
        Self::NotAnswered(error.into())
    }
}

//! Why there is no graph.

use std::io;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::jobs::JournalError;

/// Why there is no graph. Each message has the cure.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// The name does not say which form the file has.
    #[error("{}: the name must end in .npz or .parquet", .0.display())]
    Name(PathBuf),
    /// Parquet is not in this build.
    #[error(
        "{}: this kindred was built without Parquet; choose a name that ends in .npz, or build it with `cargo build --release \
         --features parquet`", .0.display()
    )]
    NoParquet(PathBuf),
    /// An option has an impossible value.
    #[error("`{field}` must be {expected}")]
    Option {
        /// Its name.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// Something is where the file should be.
    #[error("{} {reason}", path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
        /// What is there, and the cure.
        reason: &'static str,
    },
    /// There is the unfinished work of another graph.
    #[error(
        "{} has unfinished work with {difference}; finish it with the options and the model that it was begun with, or remove \
         that folder", folder.display()
    )]
    OtherWork {
        /// The folder.
        folder: PathBuf,
        /// What is different: there, and here.
        difference: String,
    },
    /// Another process works there.
    #[error("another process works in {}; wait until it ends, or choose another file", .0.display())]
    Busy(PathBuf),
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
    /// The engine did not answer.
    #[error("{0}; rows that are done are kept: the same command goes on from there")]
    NotAnswered(#[from] Error),
    /// The caller stopped it.
    #[error(
        "stopped with {percent} % of {rows} rows done; they are kept in {}: the same command goes on from there",
        folder.display()
    )]
    Stopped {
        /// The share that is done.
        percent: u64,
        /// The number of rows.
        rows: u64,
        /// Where they are kept.
        folder: PathBuf,
    },
}

impl GraphError {
    pub(super) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

impl From<JournalError> for GraphError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::OtherJob { folder, difference } => Self::OtherWork { folder, difference },
            JournalError::Busy(folder) => Self::Busy(folder),
            JournalError::Io { action, path, source } => Self::Io { action, path, source },
        }
    }
}

//! How good a model is: the standard sets of analogies and of similarities that people judged.
//!
//! The path of the data: a [`source`] is read; [`analogies`] and [`similarities`] make questions of
//! it, in the forms in which such sets come; `run` asks through the queue and counts what is right;
//! [`spearman`] compares rankings; [`results`] has the numbers.

pub mod analogies;
mod fields;
pub mod results;
pub(crate) mod run;
pub mod similarities;
pub mod source;
pub mod spearman;

use std::io;
use std::path::PathBuf;

/// Why a set can't be used.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// A file or folder can't be read.
    #[error("can't read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("{file}, line {line}: {what}")]
    Line {
        /// The file, as given.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The fault, and the cure.
        what: String,
    },
    /// A file or folder has nothing to ask.
    #[error("{file}: {what}")]
    Empty {
        /// The file or folder, as given.
        file: String,
        /// What is missing, and the cure.
        what: String,
    },
}

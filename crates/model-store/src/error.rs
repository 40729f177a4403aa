//! Errors of this crate, each with its cure.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file can't be used: a text, or the error that says so.
pub(crate) type Reason = Box<dyn Error + Send + Sync>;

/// A reason whose text repeats an error's.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct TextAbout {
    text: String,
    source: Reason,
}

/// The reason with this text, which repeats what `source` says.
pub(crate) fn because(text: String, source: impl Into<Reason>) -> Reason {
    TextAbout { text, source: source.into() }.into()
}

/// Cuts a text in a message that is longer than anybody would read.
pub fn cut(mut text: String) -> String {
    const LONGEST: usize = 32 << 10;
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}

/// Errors between a vectors file and a model in memory. Each message names the file (and
/// the line) and, if possible, the cure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The system refused to read or write.
    #[error("can't {action} {}: {source}", path.display())]
    Io {
        /// The action, as an infinitive.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder is not a model.
    #[error("{} is not a Kindred model: {reason}; create one with `kindred prepare INPUT --out DIR`", path.display())]
    NotAModel {
        /// The folder or file.
        path: PathBuf,
        /// What was found instead.
        #[source]
        reason: Reason,
    },
    /// The model has another format version.
    #[error(
        "{} has model format {found}, but this kindred reads formats {supported}; prepare the model again \
         from its vectors file", path.display()
    )]
    Version {
        /// The file with the version.
        path: PathBuf,
        /// The version it has.
        found: String,
        /// The versions this build reads and writes, such as `1 and 2`.
        supported: String,
    },
    /// Rows of the model were changed, and the changes can't be read here.
    #[error(
        "rows of {} were changed, and here only models without changes can be opened: questions on \
         the command line are about its rows as they are now, `kindred rows list` prints them, \
         `kindred changes verify` checks them, and `kindred prepare --replace --discard-changes` \
         gives the changes up", path.display()
    )]
    HasChanges {
        /// The file of the vectors.
        path: PathBuf,
    },
    /// A file of the model does not have the size given in its header.
    #[error(
        "{} has {found} bytes instead of {expected}: the copy is incomplete or was changed; copy the model \
         folder again, or prepare it again from its vectors file", path.display()
    )]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// The size it should have.
        expected: u64,
    },
    /// A file of the model contradicts itself or another file.
    #[error(
        "{} is damaged: {reason}; copy the model folder again, or prepare it again from its vectors file", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is inconsistent.
        #[source]
        reason: Reason,
    },
    /// A line of a vectors file can't be read.
    #[error(
        "{}, line {line}: {reason} (correct the line, or skip such lines with --skip-bad-rows)",
        path.display()
    )]
    BadLine {
        /// The vectors file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The fault.
        reason: String,
    },
    /// A row of a vectors file without lines can't be read.
    #[error("{}, row {row}, {byte}: {reason} (skip such rows with --skip-bad-rows)", path.display())]
    BadRow {
        /// The vectors file.
        path: PathBuf,
        /// The row, from 0.
        row: u64,
        /// Where it starts, such as `byte 1234`.
        byte: String,
        /// The fault.
        reason: String,
    },
    /// A vectors file as a whole can't be read.
    #[error("{}: {reason}", path.display())]
    BadInput {
        /// The vectors file.
        path: PathBuf,
        /// The fault.
        #[source]
        reason: Reason,
    },
    /// A model can't be exported losslessly in a format.
    #[error("{model}: {reason}")]
    Unwritable {
        /// The model's name.
        model: String,
        /// Which word, and which format can hold it.
        reason: String,
    },
    /// The folder or file to write to is in use.
    #[error("{} {reason}", path.display())]
    OutputInTheWay {
        /// The folder.
        path: PathBuf,
        /// What exists there, and the cure.
        reason: &'static str,
    },
    /// The caller cancelled it. Nothing was left behind.
    #[error("stopped; nothing was written: the same command begins anew")]
    Cancelled,
    /// The caller cancelled it, and vectors that are made were kept.
    #[error(
        "stopped; {} keeps the vectors that are made: the same command goes on from there",
        .path.display()
    )]
    CancelledHalf {
        /// The file with them.
        path: PathBuf,
    },
}

impl ModelError {
    /// The error of an action on a file, such as `read`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// A file that contradicts itself.
    pub fn damaged(path: &Path, reason: impl Into<Reason>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }
}

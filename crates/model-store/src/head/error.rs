//! Why there is no head.

use std::path::PathBuf;

use crate::ModelError;
use crate::error::Reason;

/// Why a head can't be opened or written. Each message names the file and the cure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// A file can't be read or written.
    #[error(transparent)]
    File(#[from] ModelError),
    /// The folder is not a head.
    #[error(
        "{} is not a head: {reason}; make one with `kindred train classifier --model MODEL \
         --data FILE --out DIR`, or an expander with `kindred train expander --model MODEL \
         --out DIR`",
        path.display()
    )]
    NotAHead {
        /// The folder.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// The head is of another kind.
    #[error("{} is {found}; choose {wanted}, or make one {how}", path.display())]
    OtherKind {
        /// The head's folder.
        path: PathBuf,
        /// Its kind, with an article.
        found: String,
        /// The kind that is asked, with an article.
        wanted: String,
        /// The way to make one of that kind.
        how: &'static str,
    },
    /// The description can't be read.
    #[error(
        "{}: {reason}; copy the head's folder again, or train it again", path.display()
    )]
    Description {
        /// The file.
        path: PathBuf,
        /// The fault, and its place.
        #[source]
        reason: Reason,
    },
    /// The head has another format version.
    #[error("{} has head format {found}, but this kindred reads format {supported}; train it again", path.display())]
    Version {
        /// The file with the version.
        path: PathBuf,
        /// The version it has.
        found: u32,
        /// The version this build reads and writes.
        supported: u32,
    },
    /// A file contradicts itself or the other file.
    #[error("{} is damaged: {reason}; copy the head's folder again, or train it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is inconsistent.
        #[source]
        reason: Reason,
    },
    /// The head was made for another model.
    #[error(
        "the head {} was made for {made_for}, not for {model}; serve it with that model, or train it again with \
         `kindred train classifier --model` and this one", path.display()
    )]
    OtherModel {
        /// The head's folder.
        path: PathBuf,
        /// The model that it was made for.
        made_for: String,
        /// The model that was given.
        model: String,
    },
}

//! Why changes are refused.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model_store::ModelError;

/// A reason with the reasons for it.
type Reason = Box<dyn Error + Send + Sync>;

/// Why changes can't be opened or made. Each message names the file and the cure. Callers of one
/// group are told the same error, so it is shared.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The system refused to read or write. Nothing of the batch was kept.
    #[error("can't {action} {}: {source}", path.display())]
    Io {
        /// The action, as an infinitive.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The disk is full. Nothing of the batch was kept.
    #[error(
        "there is no space left for changes in {} ({source}); nothing was changed; free some space \
         and send the batch again", path.display()
    )]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// A sync has failed before: nobody knows what is on disk.
    #[error(
        "{} takes no more changes: {reason}; look at the disk, then open the table again",
        path.display()
    )]
    ReadOnly {
        /// The folder.
        path: PathBuf,
        /// What happened.
        reason: Arc<str>,
    },
    /// It was opened to be read.
    #[error("{} was opened to be read only", path.display())]
    OpenedToRead {
        /// The folder.
        path: PathBuf,
    },
    /// Another process writes.
    #[error(
        "another process changes the rows of {}; write through it, or end it first", path.display()
    )]
    Locked {
        /// The file that it has locked.
        path: PathBuf,
    },
    /// Another process has changed the rows since this one opened them.
    #[error("another process has changed the rows of {}; open the table again", path.display())]
    ChangedMeanwhile {
        /// The folder.
        path: PathBuf,
    },
    /// A log is damaged, in a place that was on disk.
    #[error(
        "{} is damaged at byte {offset}: {reason}; put back this file from a copy of the table, or \
         the whole table", path.display()
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// Where, in bytes.
        offset: u64,
        /// The fault.
        #[source]
        reason: Arc<Reason>,
    },
    /// The batch is of a table with another dimension, metric or other attributes.
    #[error("the batch was made for a table of another shape; make it with this table's schema")]
    OtherSchema,
    /// The table would have more rows than there are numbers for.
    #[error(
        "the table has no numbers left for {rows} more rows: it has had 4,294,967,294; prepare a \
         new one from its rows"
    )]
    TooManyRows {
        /// The rows of the batch.
        rows: usize,
    },
    /// An idempotency key is empty or too long.
    #[error("an idempotency key has 1 to 255 bytes; this one has {bytes}")]
    BadRequestKey {
        /// Its length.
        bytes: usize,
    },
    /// An idempotency key was used before, for another batch.
    #[error("the idempotency key {key:?} was used for another batch; choose a new one")]
    RequestKeyReused {
        /// The key.
        key: String,
    },
    /// The batch was for the rows at another position.
    #[error(
        "the table is no longer at position {wanted}: others have changed rows since; read the rows \
         again, and send the batch for the position at which they are now"
    )]
    OtherPosition {
        /// The position that the batch is for.
        wanted: u64,
    },
    /// The table would have the positions of too many sources.
    #[error("a table follows at most 1000 sources; use fewer names")]
    TooManySources,
    /// There is too little room for a new base.
    #[error(
        "folding the changes of {} needs {needed} bytes of free space for the new base, and there \
         are {free}; nothing was changed; free some space and fold again", path.display()
    )]
    NoSpaceToFold {
        /// The model folder.
        path: PathBuf,
        /// Bytes that the new base takes, at most.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The caller stopped a fold.
    #[error("stopped; nothing was changed: the rows are as they were, and can be folded again")]
    FoldStopped,
    /// A fold is running.
    #[error("the changes of {} are being folded; wait for its end", path.display())]
    Folding {
        /// The model folder.
        path: PathBuf,
    },
    /// The base can't be read or marked.
    #[error(transparent)]
    Model(Arc<ModelError>),
}

impl ChangeError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            let source = Arc::new(source);
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Self::DiskFull { path, source }
                }
                _ => Self::Io { action, path, source },
            }
        }
    }

    pub(crate) fn damaged(path: &Path, offset: usize, reason: impl Into<Reason>) -> Self {
        let reason = Arc::new(reason.into());
        Self::Damaged { path: path.to_owned(), offset: offset as u64, reason }
    }
}

impl From<ModelError> for ChangeError {
    fn from(error: ModelError) -> Self {
        Self::Model(Arc::new(error))
    }
}

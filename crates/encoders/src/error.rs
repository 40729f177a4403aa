//! Errors of this crate, each with its cure.

use std::path::PathBuf;

use model_store::ModelError;

/// The cure of a file that contradicts itself.
pub(crate) const DAMAGED: &str = "if the program that made it reads the original, this copy is \
                                  incomplete or was changed: copy or download it again";

/// The cure of a folder whose files contradict each other.
pub(crate) const INCOMPLETE: &str = "the folder is incomplete or was changed: download it again";

/// Why an encoder's file can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncoderError {
    /// The file can't be opened or mapped.
    #[error(transparent)]
    Unreadable(#[from] ModelError),
    /// The file contradicts itself.
    #[error(
        "{}, byte {byte}: {reason}; {DAMAGED}", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the field begins that is wrong.
        byte: u64,
        /// The fault.
        reason: String,
    },
    /// A file of a folder contradicts itself or another one.
    #[error(
        "{}: {reason}; {INCOMPLETE}", path.display()
    )]
    Faulty {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The file is of a kind that is not read.
    #[error("{}: {reason}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Its kind, and the cure.
        reason: String,
    },
}

/// For those who prepare or open models, whose errors have more in them.
impl From<EncoderError> for ModelError {
    fn from(error: EncoderError) -> Self {
        match error {
            EncoderError::Unreadable(error) => error,
            EncoderError::Faulty { path, reason } => {
                Self::BadInput { path, reason: format!("{reason}; {INCOMPLETE}").into() }
            }
            EncoderError::Unsupported { path, reason } => {
                Self::BadInput { path, reason: reason.into() }
            }
            EncoderError::Damaged { path, byte, reason } => Self::BadInput {
                path,
                reason: format!("byte {byte} of the fastText model: {reason}; {DAMAGED}").into(),
            },
        }
    }
}

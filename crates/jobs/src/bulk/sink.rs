//! Where answers go: a folder, which becomes a file, or the standard output.

use std::io::{self, Write as _};
use std::path::Path;

use super::journal::Checkpoint;
use super::partial::PartialFile;
use crate::error::JobError;

/// Where answers go.
pub(super) enum Sink {
    Folder(Box<PartialFile>),
    Stdout,
}

impl Sink {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), JobError> {
        match self {
            Self::Folder(file) => file.write(bytes),
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| {
                    match error.kind() {
                        io::ErrorKind::BrokenPipe => JobError::Closed,
                        _ => JobError::io("write", Path::new("standard output"))(error),
                    }
                })
            }
        }
    }

    /// Before the first rows there is nothing to go on from.
    pub(super) fn commit(&mut self, checkpoint: &Checkpoint, beside: bool) -> Result<(), JobError> {
        match self {
            Self::Folder(file) if checkpoint.input.rows > 0 => {
                file.commit(checkpoint.clone(), beside)
            }
            _ => Ok(()),
        }
    }
}

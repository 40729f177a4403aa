//! Where answers go: a folder of work, which becomes a file, or the standard output.

use std::io::{self, Write as _};
use std::path::Path;

use super::BulkError;
use super::journal::Done;
use super::work::Work;

/// Where answers go.
pub(super) enum Sink {
    Folder(Work),
    Stdout,
}

impl Sink {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), BulkError> {
        match self {
            Self::Folder(work) => work.write(bytes),
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| {
                    match error.kind() {
                        io::ErrorKind::BrokenPipe => BulkError::Closed,
                        _ => BulkError::io("write", Path::new("standard output"))(error),
                    }
                })
            }
        }
    }

    /// Before the first rows there is nothing to go on from.
    pub(super) fn commit(&mut self, done: &Done, beside: bool) -> Result<(), BulkError> {
        match self {
            Self::Folder(work) if done.input.rows > 0 => match beside {
                true => work.commit_beside(done.clone()),
                false => work.commit(done.clone()),
            },
            _ => Ok(()),
        }
    }
}

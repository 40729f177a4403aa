//! The rows of an output while it is written, in the folder beside it.
//!
//! A checkpoint counts only if the rows still have the checksum that the journal has.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crc32fast::Hasher;

use super::journal::{Checkpoint, Identity};
use crate::error::JobError;
use crate::journal::Journal;

/// The rows of a file.
pub(super) struct PartialFile {
    pub(super) journal: Journal,
    /// The last checkpoint that was entered.
    pub(super) entered: Checkpoint,
    /// The length and the checksum of what is written.
    written: u64,
    hasher: Hasher,
    /// Whether another run could go on from here.
    is_resumable: bool,
}

impl PartialFile {
    /// Begins, or goes on from what is there.
    pub(super) fn open(
        file: &Path,
        identity: &Identity,
        is_resumable: bool,
    ) -> Result<Self, JobError> {
        let (mut journal, checkpoints) = Journal::open(file, "rows", identity, is_resumable)?;
        let right = last_right(journal.data(), checkpoints).and_then(|(right, end)| {
            journal.keep(end)?;
            let mut rows = journal.data();
            rows.set_len(right.written)?;
            rows.seek(SeekFrom::End(0))?;
            Ok(right)
        });
        let entered = right.map_err(JobError::io("prepare", journal.folder()))?;
        let (written, checksum) = (entered.written, entered.checksum);
        let hasher = Hasher::new_with_initial_len(checksum, written);
        Ok(Self { journal, entered, written, hasher, is_resumable })
    }

    pub(super) fn folder(&self) -> &Path {
        self.journal.folder()
    }

    /// Whether nothing is written.
    pub(super) fn is_empty(&self) -> bool {
        self.written == 0
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), JobError> {
        let written = self.journal.data().write_all(bytes);
        written.map_err(JobError::io("write", self.folder()))?;
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Enters a checkpoint into the journal, `beside` other work or before it returns.
    pub(super) fn commit(
        &mut self,
        mut checkpoint: Checkpoint,
        beside: bool,
    ) -> Result<(), JobError> {
        checkpoint.written = self.written;
        checkpoint.checksum = self.hasher.clone().finalize();
        if self.is_resumable && checkpoint != self.entered {
            self.journal.add(&checkpoint);
            self.entered = checkpoint;
        }
        match beside {
            true => self.journal.commit_beside(),
            false => self.journal.commit(),
        }
    }
}

/// The last checkpoint whose rows are as they were written, and where its line ends.
fn last_right(
    mut rows: &File,
    checkpoints: Vec<(Checkpoint, usize)>,
) -> io::Result<(Checkpoint, Option<usize>)> {
    let (mut right, mut end) = (Checkpoint::default(), None);
    let (mut hasher, mut length, mut buffer) = (Hasher::new(), 0, vec![0; 1 << 20]);
    for (checkpoint, line_end) in checkpoints {
        while length < checkpoint.written {
            let some = (checkpoint.written - length).min(buffer.len() as u64) as usize;
            match rows.read(&mut buffer[..some])? {
                0 => break,
                some => {
                    hasher.update(&buffer[..some]);
                    length += some as u64;
                }
            }
        }
        if length != checkpoint.written || hasher.clone().finalize() != checkpoint.checksum {
            break;
        }
        (right, end) = (checkpoint, Some(line_end));
    }
    Ok((right, end))
}

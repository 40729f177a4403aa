//! Where answers go: the folder beside a file, which becomes the file, or the standard output.
//!
//! In the folder, a checkpoint counts only if the rows still have the checksum that the journal has.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crc32fast::Hasher;

use super::journal::Checkpoint;
use crate::error::JobError;
use crate::journal::{Description, Journal};

/// Where answers go.
pub(super) struct Output {
    /// `None`: to the standard output.
    pub(super) journal: Option<Journal>,
    /// The last checkpoint that was entered.
    pub(super) entered: Checkpoint,
    /// The length and the checksum of what is written to the folder.
    written: u64,
    hasher: Hasher,
    /// Whether another run could go on from here.
    is_resumable: bool,
}

impl Output {
    /// The standard output.
    pub(super) fn stdout() -> Self {
        let (entered, hasher) = (Checkpoint::default(), Hasher::new());
        Self { journal: None, entered, written: 0, hasher, is_resumable: false }
    }

    /// The folder beside a file: begins, or goes on from what is there.
    pub(super) fn open(
        file: &Path,
        description: &Description,
        is_resumable: bool,
    ) -> Result<Self, JobError> {
        let same = "the input, the options and the model";
        let (mut journal, checkpoints) =
            Journal::open(file, "rows", description, same, is_resumable)?;
        let right = last_right(&journal.data, checkpoints).and_then(|(right, end)| {
            journal.keep(end)?;
            let mut rows = &journal.data;
            rows.set_len(right.written)?;
            rows.seek(SeekFrom::End(0))?;
            Ok(right)
        });
        let entered = right.map_err(JobError::io("prepare", &journal.folder))?;
        let (written, checksum) = (entered.written, entered.checksum);
        let hasher = Hasher::new_with_initial_len(checksum, written);
        Ok(Self { journal: Some(journal), entered, written, hasher, is_resumable })
    }

    /// The folder, unless answers go to the standard output.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.journal.as_ref().map(|journal| &*journal.folder)
    }

    /// Whether nothing is written to the folder.
    pub(super) fn is_empty(&self) -> bool {
        self.written == 0
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), JobError> {
        let Some(journal) = &self.journal else {
            let mut stdout = io::stdout().lock();
            let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
            return written.map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => JobError::Closed,
                _ => JobError::io("write", Path::new("standard output"))(error),
            });
        };
        let written = (&journal.data).write_all(bytes);
        written.map_err(JobError::io("write", &journal.folder))?;
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Enters a checkpoint into the journal, `beside` other work or before it returns. Before the
    /// first rows there is nothing to go on from.
    pub(super) fn commit(&mut self, checkpoint: &Checkpoint, beside: bool) -> Result<(), JobError> {
        let Some(journal) = self.journal.as_mut().filter(|_| checkpoint.input.rows > 0) else {
            return Ok(());
        };
        let (written, checksum) = (self.written, self.hasher.clone().finalize());
        let checkpoint = Checkpoint { written, checksum, ..checkpoint.clone() };
        if self.is_resumable && checkpoint != self.entered {
            journal.add(&checkpoint);
            self.entered = checkpoint;
        }
        match beside {
            true => journal.commit_beside(),
            false => journal.commit(),
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

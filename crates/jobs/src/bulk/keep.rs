//! Keeps the answers of pieces, in their order: writes them, enters how far it is into the journal
//! and tells it.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::ask::Written;
use super::formats::BulkFormat;
use super::journal::Checkpoint;
use super::output::Output;
use super::read::ReadingEnd;
use super::source::Position;
use super::{BulkProgress, Job};
use crate::cancellation::Cancellation;
use crate::error::JobError;
use crate::run::{self, Keep};

/// What the waiting thread keeps.
pub(super) struct Keeper<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) checkpoint: Checkpoint,
    pub(super) output: Output,
    pub(super) resumed: u64,
    pub(super) total: Option<u64>,
    /// Bytes of the file that were read for the rows that are done.
    pub(super) read: u64,
    /// Pieces that are done.
    pub(super) pieces: u64,
    /// Zero bytes at the end of the input that were left out.
    pub(super) padding: u64,
    pub(super) on_progress: &'a mut dyn FnMut(BulkProgress) -> ControlFlow<()>,
}

impl Keep<Written> for Keeper<'_> {
    const IN_ORDER: bool = true;

    fn keep(&mut self, written: Written) -> Result<(), JobError> {
        let Written { bytes, end, bytes_read, faults } = written;
        if self.job.strict
            && let Some((line, fault)) = faults.first()
        {
            // Of this piece nothing is kept, but a pipe gets what can be had.
            if self.output.folder().is_none() {
                self.output.write(&bytes)?;
            }
            return Err(JobError::Refused(format!(
                "{}, line {line}: {}: {}; correct the row, or leave out --strict: then it is \
                 answered with this error",
                self.job.input.name(),
                fault.code,
                fault.detail
            )));
        }
        self.output.write(&bytes)?;
        for (_, fault) in faults {
            *self.checkpoint.errors.entry(fault.code.into_owned()).or_default() += 1;
        }
        (self.checkpoint.input, self.read) = (end, bytes_read);
        self.pieces += 1;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), JobError> {
        self.output.commit(&self.checkpoint, true)
    }

    fn tell(&mut self) -> ControlFlow<()> {
        (self.on_progress)(BulkProgress {
            rows: self.checkpoint.input.rows,
            failed: self.checkpoint.errors.values().sum(),
            resumed: self.resumed,
            read: self.read,
            total: self.total,
        })
    }
}

impl Keeper<'_> {
    /// Reads the input from there on, on a thread of its own, and keeps its answers until all are
    /// there.
    pub(super) fn run(&mut self, from: Option<&Position>, threads: usize) -> Result<(), JobError> {
        let (job, cancellation) = (self.job, &Cancellation::new());
        let (ran, read) = thread::scope(|scope| {
            // Each thread finds a piece that is read already.
            let (give, pieces) = sync_channel(threads);
            let read = move || {
                let mut given = 0;
                let end = job.pieces(from, &mut |piece| {
                    given += 1;
                    match cancellation.is_cancelled() || give.send(piece).is_err() {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                })?;
                Ok::<_, JobError>((end, given))
            };
            let reader = thread::Builder::new().name("kindred-bulk-read".to_owned());
            let reader = reader.spawn_scoped(scope, read);
            let reader =
                reader.map_err(JobError::io("start a thread for", Path::new("bulk work")))?;
            let ask = |piece| job.ask(piece, cancellation);
            let (workers, pieces) = (vec![ask; threads], pieces.into_iter());
            let ran = run::run("kindred-bulk", workers, pieces, self, cancellation);
            Ok::<_, JobError>((ran, reader.join().unwrap_or_else(|panic| resume_unwind(panic))))
        })?;
        let read = ran.and(read);
        if let Ok((ReadingEnd::Changed, _)) = read {
            return Err(self.changed());
        }
        let is_complete = match read {
            Ok((ReadingEnd::AtTheEnd { padding }, given)) => {
                self.padding = padding;
                given == self.pieces
            }
            _ => false,
        };
        // Where the last piece was not written, the checkpoint is that of the piece before. If all
        // is written, it becomes the file at once.
        let kept = match is_complete || matches!(read, Err(JobError::Io { .. })) {
            true => Ok(()),
            false => self.output.commit(&self.checkpoint, false),
        };
        read?;
        kept?;
        let _ = self.tell();
        if is_complete { Ok(()) } else { Err(self.stopped()) }
    }

    fn stopped(&self) -> JobError {
        let rows = self.checkpoint.input.rows;
        match self.output.folder() {
            Some(folder) if self.total.is_some() && rows > 0 => {
                JobError::Stopped { done: rows.to_string(), folder: folder.to_owned() }
            }
            _ => JobError::StoppedForGood { rows },
        }
    }

    /// The part of the input that was read already has changed.
    fn changed(&self) -> JobError {
        let folder = self.output.folder().expect("nothing goes on to the standard output");
        let Position { rows, bytes, .. } = self.checkpoint.input;
        let read = match self.job.format {
            BulkFormat::Parquet => format!("{rows} rows"),
            _ => format!("{bytes} bytes"),
        };
        JobError::Refused(format!(
            "{} has changed since the work in {} was begun: its first {read} are others; restore \
             it, or remove that folder to start anew",
            self.job.input.name(),
            folder.display()
        ))
    }
}

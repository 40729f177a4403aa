//! Keeps the answers of pieces, in their order: writes them, enters how far it is into the journal
//! and tells it.

use std::io;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::ask::{Asker, Written};
use super::journal::Checkpoint;
use super::read::{Reading, ReadingEnd};
use super::sink::Sink;
use super::source::Position;
use super::{BulkError, BulkFormat, BulkInput, BulkProgress};
use crate::jobs::{self, Keep};

/// What the waiting thread keeps.
pub(super) struct Keeper<'a> {
    pub(super) input: BulkInput<'a>,
    pub(super) format: BulkFormat,
    pub(super) strict: bool,
    pub(super) checkpoint: Checkpoint,
    pub(super) sink: Sink,
    pub(super) resumed: u64,
    pub(super) total: Option<u64>,
    /// Bytes of the file that were read for the rows that are done.
    pub(super) read: u64,
    /// Pieces that are done.
    pub(super) pieces: u64,
    pub(super) on_progress: &'a mut dyn FnMut(BulkProgress) -> ControlFlow<()>,
}

impl Keep<Written, BulkError> for Keeper<'_> {
    const IN_ORDER: bool = true;

    fn keep(&mut self, written: Written) -> Result<(), BulkError> {
        let Written { bytes, end, bytes_read, faults } = written;
        if self.strict
            && let Some((line, fault)) = faults.first().cloned()
        {
            // Of this piece nothing is kept, but a pipe gets what can be had.
            if let Sink::Stdout = self.sink {
                self.sink.write(&bytes)?;
            }
            return Err(BulkError::Strict { input: self.input.name(), line, fault });
        }
        self.sink.write(&bytes)?;
        for (_, fault) in faults {
            *self.checkpoint.errors.entry(fault.code.to_owned()).or_default() += 1;
        }
        (self.checkpoint.input, self.read) = (end, bytes_read);
        self.pieces += 1;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), BulkError> {
        self.sink.commit(&self.checkpoint, true)
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

    fn no_thread(&self, source: io::Error) -> BulkError {
        BulkError::io("start a thread for", Path::new("bulk work"))(source)
    }
}

impl Keeper<'_> {
    /// Reads the input on a thread of its own, and keeps its answers until all are there.
    pub(super) fn run(
        &mut self,
        reading: &Reading<'_>,
        asker: &Asker<'_>,
        threads: usize,
    ) -> Result<(), BulkError> {
        let (ran, read) = thread::scope(|scope| {
            // Each thread finds a piece that is read already.
            let (give, pieces) = sync_channel(threads);
            let read = move || {
                let mut given = 0;
                let end = reading.pieces(&mut |piece| {
                    given += 1;
                    match asker.cancellation.is_cancelled() || give.send(piece).is_err() {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                })?;
                Ok::<_, BulkError>((end, given))
            };
            let reader = thread::Builder::new().name("kindred-bulk-read".to_owned());
            let reader = reader.spawn_scoped(scope, read);
            let reader = reader.map_err(|source| self.no_thread(source))?;
            let workers: Vec<_> = (0..threads).map(|_| move |piece| asker.ask(piece)).collect();
            let (pieces, cancellation) = (pieces.into_iter(), asker.cancellation);
            let ran = jobs::run("kindred-bulk", workers, pieces, self, cancellation);
            Ok::<_, BulkError>((ran, reader.join().unwrap_or_else(|panic| resume_unwind(panic))))
        })?;
        let is_complete = match ran.and(read) {
            Ok((ReadingEnd::AtTheEnd, given)) => Ok(given == self.pieces),
            Ok((ReadingEnd::Enough, _)) => Ok(false),
            Ok((ReadingEnd::Changed, _)) => Err(self.changed()),
            Err(error) => Err(error),
        };
        // Where the last piece was not written, the checkpoint is that of the piece before.
        let kept = match &is_complete {
            Err(BulkError::Io { .. } | BulkError::ChangedInput { .. }) => Ok(()),
            // All is written, and becomes the file at once.
            Ok(true) => Ok(()),
            _ => self.sink.commit(&self.checkpoint, false),
        };
        let is_complete = is_complete?;
        kept?;
        let _ = self.tell();
        if is_complete { Ok(()) } else { Err(self.stopped()) }
    }

    fn stopped(&self) -> BulkError {
        let rows = self.checkpoint.input.rows;
        match &self.sink {
            Sink::Folder(file) if self.total.is_some() && rows > 0 => {
                BulkError::Stopped { rows, folder: file.folder().to_owned() }
            }
            _ => BulkError::StoppedForGood { rows },
        }
    }

    fn changed(&self) -> BulkError {
        let folder = match &self.sink {
            Sink::Folder(file) => file.folder().to_owned(),
            Sink::Stdout => unreachable!("nothing goes on there"),
        };
        let Position { rows, bytes, .. } = self.checkpoint.input;
        let read = match self.format {
            BulkFormat::Parquet => format!("{rows} rows"),
            _ => format!("{bytes} bytes"),
        };
        BulkError::ChangedInput { input: self.input.name(), folder, read }
    }
}

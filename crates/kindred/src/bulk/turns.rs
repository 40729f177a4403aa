//! The threads of the work, and the one that waits for them: it puts parts in order, keeps the
//! journal and shows the progress.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use super::ask::{Asker, Told, Written};
use super::journal::Done;
use super::read::{Ended, Part, Reading};
use super::sink::Sink;
use super::source::Position;
use super::{BulkError, BulkFormat, BulkInput, BulkProgress};
use crate::jobs::StopAtEnd;

/// What is done is entered into the journal this often. A kill loses no more, and the parts in
/// flight.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// How often progress is told, and whether to stop asked.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What the waiting thread keeps.
pub(super) struct Run<'a> {
    pub(super) input: BulkInput<'a>,
    pub(super) format: BulkFormat,
    pub(super) done: Done,
    pub(super) sink: Sink,
    pub(super) resumed: u64,
    pub(super) total: Option<u64>,
    /// Bytes of the file that were read for the rows that are done.
    pub(super) read: u64,
}

/// What threads tell: a part that is written, that all is read, or why not.
enum News {
    Part(Told),
    /// With the number of parts.
    Read(Result<Ended, BulkError>, u64),
}

impl Run<'_> {
    pub(super) fn all(
        &mut self,
        reading: &Reading<'_>,
        asker: &Asker<'_>,
        jobs: usize,
        on_progress: &mut dyn FnMut(BulkProgress) -> ControlFlow<()>,
    ) -> Result<(), BulkError> {
        let stop = asker.stop;
        let (tell, told) = channel::<News>();
        let (give, parts) = channel::<Part>();
        let parts = Mutex::new(parts);
        // Parts that may be read and not yet written.
        let (allow, allowed) = channel::<()>();
        let mut allow = Some(allow);
        let allow_one = |allow: &Option<Sender<()>>| {
            // A reader that is at the end needs no more.
            let _ = allow.as_ref().map(|allow| allow.send(()));
        };
        (0..2 * jobs + 1).for_each(|_| allow_one(&allow));
        thread::scope(|scope| {
            // Also if this thread panics. The reader stops when nobody allows it another part.
            let _at_the_end = StopAtEnd(stop);
            let mut allow = allow.take();
            let read = {
                let tell = tell.clone();
                move || {
                    let mut given = 0;
                    let ended = reading.parts(&mut |part| {
                        given += 1;
                        let goes_on = allowed.recv().is_ok() && give.send(part).is_ok();
                        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                    });
                    let _ = tell.send(News::Read(ended, given));
                }
            };
            spawn(scope, "kindred-bulk-read".to_owned(), read)?;
            for number in 0..jobs {
                let (tell, parts) = (Sender::clone(&tell), &parts);
                let ask = move || asker.run(parts, &|told| tell.send(News::Part(told)).is_ok());
                spawn(scope, format!("kindred-bulk-{number}"), ask)?;
            }
            drop(tell);
            let (mut waiting, mut next) = (BTreeMap::<u64, Written>::new(), 0);
            let (mut committed, mut last_told) = (Instant::now(), None::<Instant>);
            let (mut result, mut all) = (Ok(()), None);
            loop {
                match told.recv_timeout(TELL_EVERY) {
                    Ok(News::Part(Ok(part))) if result.is_ok() => {
                        waiting.insert(part.number, part);
                    }
                    Ok(News::Read(Ok(Ended::AtTheEnd), given)) => all = Some(given),
                    Ok(News::Read(Ok(Ended::Changed), _)) => result = Err(self.changed()),
                    Ok(News::Part(Err(error)) | News::Read(Err(error), _)) => {
                        // The first is the cause.
                        result = result.and(Err(error));
                    }
                    Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                while result.is_ok()
                    && let Some(part) = waiting.remove(&next)
                {
                    next += 1;
                    result = self.take(part, asker.strict);
                    allow_one(&allow);
                }
                if committed.elapsed() >= COMMIT_EVERY && result.is_ok() {
                    result = self.sink.commit(&self.done, true);
                    committed = Instant::now();
                }
                if last_told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
                    last_told = Some(Instant::now());
                    if on_progress(self.progress()).is_break() {
                        stop.stop();
                    }
                }
                if result.is_err() || stop.is_stopped() {
                    stop.stop();
                    allow = None;
                }
            }
            // Where the last part was not written, the state is that of the part before.
            let kept = match &result {
                Err(BulkError::Io { .. } | BulkError::ChangedInput { .. }) => Ok(()),
                // All is written, and becomes the file at once.
                Ok(()) if all == Some(next) => Ok(()),
                _ => self.sink.commit(&self.done, false),
            };
            result.and(kept)?;
            let _ = on_progress(self.progress());
            if all == Some(next) { Ok(()) } else { Err(self.stopped()) }
        })
    }

    /// Writes a part whose turn it is.
    fn take(&mut self, part: Written, strict: bool) -> Result<(), BulkError> {
        let Written { bytes, end, bytes_read, faults, .. } = part;
        if strict && let Some((line, fault)) = faults.first().cloned() {
            // Of this part nothing is kept, but a pipe gets what can be had.
            if let Sink::Stdout = self.sink {
                self.sink.write(&bytes)?;
            }
            return Err(BulkError::Strict { input: self.input.name(), line, fault });
        }
        self.sink.write(&bytes)?;
        for (_, fault) in faults {
            *self.done.errors.entry(fault.code.to_owned()).or_default() += 1;
        }
        (self.done.input, self.read) = (end, bytes_read);
        Ok(())
    }

    fn progress(&self) -> BulkProgress {
        BulkProgress {
            rows: self.done.input.rows,
            failed: self.done.errors.values().sum(),
            resumed: self.resumed,
            read: self.read,
            total: self.total,
        }
    }

    fn stopped(&self) -> BulkError {
        let rows = self.done.input.rows;
        match &self.sink {
            Sink::Folder(work) if self.total.is_some() && rows > 0 => {
                BulkError::Stopped { rows, folder: work.folder().to_owned() }
            }
            _ => BulkError::StoppedForGood { rows },
        }
    }

    fn changed(&self) -> BulkError {
        let folder = match &self.sink {
            Sink::Folder(work) => work.folder().to_owned(),
            Sink::Stdout => unreachable!("nothing goes on there"),
        };
        let Position { rows, bytes, .. } = self.done.input;
        let read = match self.format {
            BulkFormat::Parquet => format!("{rows} rows"),
            _ => format!("{bytes} bytes"),
        };
        BulkError::ChangedInput { input: self.input.name(), folder, read }
    }
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: String,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), BulkError> {
    let thread = thread::Builder::new().name(name);
    let started = thread.spawn_scoped(scope, work);
    started.map(drop).map_err(BulkError::io("start a thread for", Path::new("bulk work")))
}

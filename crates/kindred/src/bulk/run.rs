//! The work as a whole: its threads, the order of its parts, its journal, its progress.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::ask::{Asker, Told, Written};
use super::journal::{Done, Identity};
use super::read::{Ended, Part, Reading};
use super::render::Rendering;
use super::work::Work;
use super::{
    Answers, BulkError, BulkFormat, BulkInput, BulkOptions, BulkOutput, BulkProgress, BulkSummary,
    check_bulk_files,
};
use crate::jobs::{Stop, StopAtEnd};

/// What is done is entered into the journal this often. A kill loses no more, and the parts in flight.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// How often progress is told, and whether to stop asked.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What is asked of each row, as the work needs to know it.
pub(crate) struct Plan {
    /// `classify`, `expand`, `nearest` or `analogy`.
    pub(crate) work: &'static str,
    /// The column that is asked if none is named.
    pub(crate) column: &'static str,
    /// The columns of an answer in CSV.
    pub(crate) columns: &'static [&'static str],
    /// Labels, terms or neighbours of a row, at most.
    pub(crate) most_per_row: usize,
    pub(crate) model: String,
    pub(crate) version: String,
    /// What else decides the answers: the head, options, and the engine if scores depend on it.
    pub(crate) options: Value,
}

impl Plan {
    /// Rows that are answered together. Their answers take a few megabytes.
    fn rows_per_part(&self) -> usize {
        (65_536 / self.most_per_row.max(1)).clamp(64, 1024)
    }
}

/// Where answers go.
enum Sink {
    Folder(Work),
    Stdout,
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), BulkError> {
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
    fn commit(&mut self, done: &Done, beside: bool) -> Result<(), BulkError> {
        match self {
            Self::Folder(work) if done.input.rows > 0 => match beside {
                true => work.commit_beside(done.clone()),
                false => work.commit(done.clone()),
            },
            _ => Ok(()),
        }
    }
}

/// Reads the input, has its rows answered, and writes the output, complete or not at all. Goes on from what an earlier call left.
///
/// `on_progress` is called ten times a second; a break stops the work.
pub(crate) fn write(
    plan: &Plan,
    answers: &dyn Answers,
    (input, output): (BulkInput<'_>, BulkOutput<'_>),
    options: &BulkOptions,
    on_progress: &mut dyn FnMut(BulkProgress) -> ControlFlow<()>,
) -> Result<BulkSummary, BulkError> {
    let started = Instant::now();
    check_bulk_files(input, output, options)?;
    let (from, (to, is_packed)) = (input.format(options.from)?, output.format(options.to)?);
    let total = match input {
        BulkInput::File(path) => file_length(path)?,
        BulkInput::Stdin => None,
    };
    let column = options.column.as_deref().unwrap_or(plan.column);
    let identity = identity(plan, options, (from, column), (to, is_packed), total);
    let rendering = Rendering { format: to, is_packed, columns: plan.columns };
    let mut sink = match output {
        BulkOutput::File(file) => Sink::Folder(Work::open(file, &identity, total.is_some())?),
        BulkOutput::Stdout => Sink::Stdout,
    };
    let done = match &sink {
        Sink::Folder(work) => work.committed().clone(),
        Sink::Stdout => Done::default(),
    };
    let resumed = done.input.rows;
    let no_text = |_| BulkError::NotAnswered(crate::Error::Internal);
    if resumed == 0 {
        let head = rendering.head().map_err(no_text)?;
        sink.write(&head)?;
    }
    let asked = Instant::now();
    let from_here = (resumed > 0).then_some(&done.input);
    let reading = Reading {
        input,
        format: from,
        column,
        id: options.id.as_deref(),
        rows_per_part: plan.rows_per_part(),
        from: from_here,
    };
    let stop = Stop::new();
    let asker = Asker {
        answers,
        format: from,
        column,
        id: options.id.as_deref(),
        rendering,
        strict: options.strict,
        stop: &stop,
    };
    let mut run = Run { input, done: done.clone(), sink, resumed, total, read: 0 };
    let result = run.all(&reading, &asker, options.jobs.max(1), on_progress);
    let Run { done, sink, .. } = run;
    let asking_seconds = asked.elapsed().as_secs_f64();
    match (result, sink) {
        (Ok(()), Sink::Stdout) => {}
        (Ok(()), Sink::Folder(mut work)) => {
            let BulkOutput::File(file) = output else { unreachable!("it is written to a file") };
            if work.is_empty() {
                work.write(&rendering.nothing().map_err(no_text)?)?;
            }
            // Something may have come there meanwhile.
            check_bulk_files(input, output, options)?;
            work.finish(file)?;
        }
        // Nothing to go on from, or no way to; another command may be right.
        (Err(error), Sink::Folder(work)) if total.is_none() || done.input.rows == 0 => {
            work.remove();
            return Err(error);
        }
        (Err(error), _) => return Err(error),
    }
    let failed = done.errors.values().sum();
    Ok(BulkSummary {
        input: input.name(),
        output: output.name(),
        work: plan.work,
        model: plan.model.clone(),
        version: plan.version.clone(),
        rows: done.input.rows,
        answered: done.input.rows - failed,
        failed,
        errors: done.errors,
        resumed_rows: resumed,
        asking_seconds,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// The length of a file; `None` for a pipe, which can't be read again.
fn file_length(path: &Path) -> Result<Option<u64>, BulkError> {
    let metadata = path.metadata().map_err(|source| model_store::ModelError::Io {
        action: "open",
        path: path.to_owned(),
        source,
    })?;
    Ok(metadata.is_file().then_some(metadata.len()))
}

/// What decides every byte of the output.
fn identity(
    plan: &Plan,
    options: &BulkOptions,
    (from, column): (BulkFormat, &str),
    (to, is_packed): (BulkFormat, bool),
    input_bytes: Option<u64>,
) -> Identity {
    /// Of the folder of work.
    const FORMAT: u32 = 1;
    let mut identity = Identity::new();
    let mut put = |name: &str, value: Value| identity.insert(name.to_owned(), value);
    put("format", FORMAT.into());
    put("work", plan.work.into());
    put("model", plan.model.as_str().into());
    put("version", plan.version.as_str().into());
    put("options", plan.options.clone());
    put("from", from.name().into());
    put("to", to.name().into());
    put("gzip", is_packed.then_some(true).into());
    put("column", (from != BulkFormat::Lines).then_some(column).into());
    put("id", options.id.as_deref().into());
    put("input_bytes", input_bytes.into());
    identity
}

/// What the waiting thread keeps.
struct Run<'a> {
    input: BulkInput<'a>,
    done: Done,
    sink: Sink,
    resumed: u64,
    total: Option<u64>,
    /// Bytes of the file that were read for the rows that are done.
    read: u64,
}

/// What threads tell: a part that is written, that all is read, or why not.
enum News {
    Part(Told),
    /// With the number of parts.
    Read(Result<Ended, BulkError>, u64),
}

impl Run<'_> {
    fn all(
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
        let bytes = self.done.input.bytes;
        BulkError::ChangedInput { input: self.input.name(), folder, bytes }
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

//! Asks for very many searches: a job after another on each of some threads, again where the queue
//! is full or a pass failed.

use std::ops::Range;
use std::time::Duration;
use std::{io, thread};

use contract::{Hit, Query};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::Error;
use crate::asking::Asking;
use crate::queue::SubmitError;

/// How often a job is asked again after its pass failed.
const TRIES: usize = 5;

/// A full queue is asked for fewer queries at once, but for at least this many.
const FEWEST_TOGETHER: usize = 64;

/// Tells threads that ask to stop.
pub(crate) struct Stop(watch::Sender<bool>);

impl Stop {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.0.borrow()
    }

    async fn stopped(&self) {
        // The sender lives as long as this.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}

/// Stops the threads when it is dropped, also by a panic.
pub(crate) struct StopAtEnd<'a>(pub(crate) &'a Stop);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Why a thread stops asking early.
#[derive(Debug)]
pub(crate) enum Early {
    Stopped,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Early {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The jobs of one thread, of which one at a time is in flight.
pub(crate) struct Jobs<'s, 'a> {
    asking: &'s (dyn Fn() -> Asking<'a> + Sync),
    stop: &'s Stop,
    /// Answers are handed out on it.
    runtime: Runtime,
    retry: Retry,
    /// Queries of the first job.
    first: Option<usize>,
}

impl<'s, 'a> Jobs<'s, 'a> {
    /// Jobs of up to `together` queries.
    ///
    /// Jobs that wait together share each pass. If the jobs of all threads began together, they
    /// would also end together, and the engine would wait until their answers are written. So the
    /// first job of thread `number` of `threads` is cut, each at another place.
    ///
    /// # Errors
    /// If the system has no room for what a thread waits on.
    pub(crate) fn new(
        asking: &'s (dyn Fn() -> Asking<'a> + Sync),
        stop: &'s Stop,
        together: usize,
        (number, threads): (usize, usize),
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().build()?;
        let first = Some((together * (number + 1)).div_ceil(threads));
        Ok(Self { asking, stop, runtime, retry: Retry::new(together), first })
    }

    /// Asks for all queries of `range`. `queries` makes some of them; `put` takes their answers, in
    /// the same order.
    ///
    /// # Errors
    /// If `queries` fails, the engine does not answer, or the work is stopped.
    pub(crate) fn ask(
        &mut self,
        range: Range<u64>,
        queries: impl Fn(Range<u64>) -> Result<Vec<Query>, Error>,
        mut put: impl FnMut(Range<u64>, &[Vec<Hit>]),
    ) -> Result<(), Early> {
        let mut next = range.start;
        while next < range.end {
            let count = self.retry.together().min(self.first.unwrap_or(usize::MAX));
            let some = next..range.end.min(next + count as u64);
            let queries = queries(some.clone())?;
            if queries.is_empty() {
                next = some.end;
                continue;
            }
            let answer = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = self.stop.stopped() => None,
                    answer = (self.asking)().search(queries) => Some(answer),
                }
            });
            match answer.ok_or(Early::Stopped)? {
                Ok(answer) => {
                    put(some.clone(), &answer.hits);
                    self.retry.answered();
                    (next, self.first) = (some.end, None);
                }
                Err(error) => self.retry.after(error, self.stop)?,
            }
        }
        Ok(())
    }
}

/// What becomes of jobs that were not answered: they are asked again, with fewer queries, after a
/// pause, or not at all.
pub(crate) struct Retry {
    /// Halved where the queue has no room for them.
    together: usize,
    /// How often this job has failed.
    failed: usize,
}

impl Retry {
    /// For jobs of up to `together` queries.
    pub(crate) fn new(together: usize) -> Self {
        Self { together, failed: 0 }
    }

    /// Queries that the next job may have.
    pub(crate) fn together(&self) -> usize {
        self.together
    }

    /// A job was answered.
    pub(crate) fn answered(&mut self) {
        self.failed = 0;
    }

    /// A job was not answered. Returns when it may be asked again.
    ///
    /// # Errors
    /// If it will not be, or the work is stopped.
    pub(crate) fn after(&mut self, error: SubmitError, stop: &Stop) -> Result<(), Early> {
        match error {
            // A caller may hold half of the queue: this job would never be taken.
            SubmitError::Full { asked, capacity, .. }
                if asked > capacity / 2 && self.together > 1 =>
            {
                self.together /= 2;
            }
            SubmitError::Full { .. } if self.together > FEWEST_TOGETHER => self.together /= 2,
            SubmitError::Full { .. } => pause(Duration::from_millis(5), stop)?,
            SubmitError::EngineRestarting { retry_after } => {
                pause(retry_after.min(Duration::from_millis(200)), stop)?;
            }
            SubmitError::EngineFailed if self.failed < TRIES => self.failed += 1,
            error => return Err(error.into()),
        }
        Ok(())
    }
}

/// The thread has nothing else to do.
fn pause(time: Duration, stop: &Stop) -> Result<(), Early> {
    thread::sleep(time);
    if stop.is_stopped() { Err(Early::Stopped) } else { Ok(()) }
}

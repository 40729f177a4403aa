//! Asks for the items of a piece: a request after another, with fewer items where the queue is
//! full, and again where a pass failed.

use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Duration;

use contract::{Hit, Query, QueryError, QueryVector, Row};
use kindred::Error;
use kindred::asking::Asking;
use kindred::queue::SubmitError;
use kindred::rows::Rows;
use tokio::runtime::{Builder, Runtime};

use crate::cancellation::{Cancellation, Interrupted};
use crate::error::JobError;

/// How often a request is made again after its pass failed.
const TRIES: usize = 5;

/// A full queue is asked for fewer items at once, but for at least this many.
const FEWEST: usize = 64;

/// The requests of one thread, of which one at a time is in flight.
pub(crate) struct Requests<'c> {
    cancellation: &'c Cancellation,
    /// Items of a request. Halved where the queue has no room for them.
    most: usize,
    /// Items of the first request.
    first: usize,
    /// How often this request has failed.
    failed: usize,
}

impl<'c> Requests<'c> {
    /// Requests of up to `most` items.
    pub(crate) fn new(cancellation: &'c Cancellation, most: usize) -> Self {
        Self { cancellation, most, first: most, failed: 0 }
    }

    /// Asks for all items. `request` asks for some of them, and puts their answers where they
    /// belong.
    pub(crate) fn all(
        &mut self,
        items: Range<u64>,
        mut request: impl FnMut(Range<u64>) -> Result<(), Interrupted>,
    ) -> Result<(), Interrupted> {
        let mut next = items.start;
        while next < items.end {
            let end = items.end.min(next + self.most.min(self.first) as u64);
            match request(next..end) {
                Ok(()) => {
                    next = end;
                    (self.first, self.failed) = (usize::MAX, 0);
                }
                Err(Interrupted::Failed(JobError::NotAnswered(Error::NotAnswered(why)))) => {
                    self.after(why)?;
                }
                Err(interrupted) => return Err(interrupted),
            }
        }
        Ok(())
    }

    /// A request was not answered. Returns when it may be made again.
    fn after(&mut self, error: SubmitError) -> Result<(), Interrupted> {
        match error {
            // A caller may hold half of the queue: this request would never be taken.
            SubmitError::Full { asked, capacity, .. } if asked > capacity / 2 && self.most > 1 => {
                self.most /= 2;
            }
            SubmitError::Full { .. } if self.most > FEWEST => self.most /= 2,
            SubmitError::Full { .. } => self.pause(Duration::from_millis(5))?,
            SubmitError::EngineRestarting { retry_after } => {
                self.pause(retry_after.min(Duration::from_millis(200)))?;
            }
            SubmitError::EngineFailed if self.failed < TRIES => self.failed += 1,
            error => return Err(error.into()),
        }
        Ok(())
    }

    /// The thread has nothing else to do.
    fn pause(&self, time: Duration) -> Result<(), Interrupted> {
        thread::sleep(time);
        match self.cancellation.is_cancelled() {
            true => Err(Interrupted::Cancelled),
            false => Ok(()),
        }
    }
}

/// The searches of one thread.
pub(crate) struct Searches<'s, 'a> {
    asking: &'s (dyn Fn() -> Asking<'a> + Sync),
    requests: Requests<'s>,
    /// Answers are handed out on it.
    runtime: Runtime,
}

impl<'s, 'a> Searches<'s, 'a> {
    /// Searches with up to `most` queries at once.
    ///
    /// Requests that wait together share each pass. If those of all threads began together, they
    /// would also end together, and the engine would wait until their answers are written. So the
    /// first request of thread `number` of `threads` is cut, each at another place.
    pub(crate) fn new(
        asking: &'s (dyn Fn() -> Asking<'a> + Sync),
        cancellation: &'s Cancellation,
        most: usize,
        (number, threads): (usize, usize),
    ) -> Result<Self, JobError> {
        let first = (most * (number + 1)).div_ceil(threads);
        let requests = Requests { first, ..Requests::new(cancellation, most) };
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.map_err(JobError::io("wait on", Path::new("a thread")))?;
        Ok(Self { asking, requests, runtime })
    }

    /// Searches for all items. `queries` makes the queries of some of them; `put` takes their
    /// answers, in the same order.
    pub(crate) fn all(
        &mut self,
        items: Range<u64>,
        queries: impl Fn(Range<u64>) -> Result<Vec<Query>, Error>,
        mut put: impl FnMut(Range<u64>, &[Vec<Hit>]),
    ) -> Result<(), Interrupted> {
        let (asking, cancellation, runtime) =
            (self.asking, self.requests.cancellation, &self.runtime);
        self.requests.all(items, |some| {
            let queries = queries(some.clone())?;
            if queries.is_empty() {
                return Ok(());
            }
            let answer = runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = cancellation.cancelled() => None,
                    answer = asking().search(queries) => Some(answer),
                }
            });
            let Some(answer) = answer else { return Err(Interrupted::Cancelled) };
            put(some, &answer?.responses);
            Ok(())
        })
    }
}

/// Whether a row can be asked for: one without a direction has no neighbours.
pub(crate) fn has_neighbours(model: &dyn Rows, row: Row) -> bool {
    QueryVector::Row(row).norm(&model.table()) != Err(QueryError::Zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(asked: u64, capacity: u32) -> Interrupted {
        let (asked, retry_after) = (asked as u32, Duration::ZERO);
        SubmitError::Full { asked, held: 0, free: 0, capacity, retry_after }.into()
    }

    #[test]
    fn a_full_queue_is_asked_for_less_until_it_has_room() {
        for (capacity, fits) in [(1000, 100), (100, 50), (2, 1), (5000, 1000)] {
            let cancellation = Cancellation::new();
            let mut requests = Requests::new(&cancellation, 1000);
            let (mut next, mut refused) = (0, 0);
            requests
                .all(0..3000, |some| {
                    assert_eq!(some.start, next, "in order, and none twice");
                    let asked = some.end - some.start;
                    if asked > fits {
                        refused += 1;
                        return Err(full(asked, capacity));
                    }
                    next = some.end;
                    Ok(())
                })
                .unwrap();
            assert_eq!(next, 3000);
            assert!(refused <= 10, "it is not forgotten what fits: {refused}");
        }
    }

    #[test]
    fn who_asks_for_few_waits_for_room() {
        let cancellation = Cancellation::new();
        let mut requests = Requests::new(&cancellation, FEWEST);
        let mut sizes = Vec::new();
        requests
            .all(0..FEWEST as u64, |some| {
                sizes.push(some.end - some.start);
                if sizes.len() < 4 { Err(full(1, 1000)) } else { Ok(()) }
            })
            .unwrap();
        assert_eq!(sizes, [FEWEST as u64; 4]);
        let refused = requests.all(0..1, |_| {
            cancellation.cancel();
            Err(full(1, 1000))
        });
        assert!(matches!(refused, Err(Interrupted::Cancelled)), "{refused:?}");
    }

    #[test]
    fn a_pass_that_fails_is_asked_again_some_times() {
        let cancellation = Cancellation::new();
        let mut requests = Requests::new(&cancellation, 10);
        let mut asked = 0;
        // Each request fails as often as it may.
        let often = |asked: usize| match asked.is_multiple_of(TRIES + 1) {
            true => Ok(()),
            false => Err(SubmitError::EngineFailed.into()),
        };
        requests
            .all(0..30, |_| {
                asked += 1;
                often(asked)
            })
            .unwrap();
        assert_eq!(asked, 3 * (TRIES + 1));
        asked = 0;
        let failed = requests.all(0..30, |_| {
            asked += 1;
            Err(SubmitError::EngineFailed.into())
        });
        let why = Error::NotAnswered(SubmitError::EngineFailed);
        let is_why = |error: &JobError| matches!(error, JobError::NotAnswered(e) if *e == why);
        assert!(matches!(&failed, Err(Interrupted::Failed(error)) if is_why(error)));
        assert_eq!(asked, TRIES + 1);
    }
}

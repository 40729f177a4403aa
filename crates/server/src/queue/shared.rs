//! What both ends of the queue see: the jobs that wait, and how many queries may.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::SubmitError;
use super::job::{Job, JobError, Reply, tell};

/// One lock, held for a push by callers and for a swap by the engine thread: that takes all that
/// waits at once, however much it is.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Told when there is work for an engine thread that waits for some, or will never be.
    changed: Condvar,
    capacity: u32,
    /// How many callers have gone without their answer: while it stays the same, nobody needs to
    /// look for their jobs.
    hung_up: AtomicU64,
    /// Nanoseconds that a query has lately taken of the engine's time.
    nanoseconds_per_query: AtomicU64,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    /// The readiness check's own place, which no load can take away.
    probe: Option<Job>,
    /// Of the jobs in the engine's hands, while it searches: until when their callers wait, and where
    /// their answers go.
    lent: Vec<(Instant, Option<Reply>)>,
    /// Places of the jobs that wait or are in work.
    taken: u32,
    /// Waking a thread costs microseconds: only one that sleeps is woken.
    engine_sleeps: bool,
    engine_gone: bool,
    callers_gone: bool,
}

impl Shared {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            capacity,
            hung_up: AtomicU64::new(0),
            nanoseconds_per_query: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds this lock")
    }

    /// Places for so many queries. More than the queue holds are let in when it is otherwise empty.
    pub(super) fn places(&self, queries: usize) -> u32 {
        u32::try_from(queries).unwrap_or(u32::MAX).min(self.capacity)
    }

    /// Takes a job in, if there is room.
    pub(super) fn admit(&self, job: Job) -> Result<(), SubmitError> {
        self.put(|state| {
            if job.places > self.capacity - state.taken {
                let each = self.nanoseconds_per_query.load(Ordering::Relaxed);
                let retry_after = Duration::from_nanos(u64::from(state.taken).saturating_mul(each));
                return Err(SubmitError::Full { retry_after });
            }
            state.taken += job.places;
            state.jobs.push(job);
            Ok(())
        })
    }

    /// Takes a probe in, in place of one that may be there.
    pub(super) fn admit_probe(&self, probe: Job) -> Result<(), SubmitError> {
        self.put(|state| {
            state.probe = Some(probe);
            Ok(())
        })
    }

    fn put(
        &self,
        put: impl FnOnce(&mut State) -> Result<(), SubmitError>,
    ) -> Result<(), SubmitError> {
        let mut state = self.lock();
        if state.engine_gone {
            return Err(SubmitError::EngineGone);
        }
        put(&mut state)?;
        let wake = std::mem::take(&mut state.engine_sleeps);
        drop(state);
        if wake {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// For the engine thread: moves all jobs that wait into `jobs`, which is empty, and the probe, if
    /// there is one, out. If it `may_sleep`, not before there is something. `None` when there never
    /// will be again.
    pub(super) fn take(&self, jobs: &mut Vec<Job>, may_sleep: bool) -> Option<Option<Job>> {
        let mut state = self.lock();
        while may_sleep && state.jobs.is_empty() && state.probe.is_none() {
            if state.callers_gone {
                return None;
            }
            state.engine_sleeps = true;
            state = self.changed.wait(state).expect("nothing panics while it holds this lock");
        }
        state.engine_sleeps = false;
        std::mem::swap(&mut state.jobs, jobs);
        Some(state.probe.take())
    }

    /// Places of jobs that are about to be answered.
    pub(super) fn free(&self, places: u32) {
        self.lock().taken -= places;
    }

    /// For the engine thread, before and after a pass: exchanges what is lent here, so that callers
    /// whose time is over can be told so while the pass takes its time.
    pub(super) fn lend(&self, replies: &mut Vec<(Instant, Option<Reply>)>) {
        std::mem::swap(&mut self.lock().lent, replies);
    }

    /// Tells callers whose time is over so. `false` when there will be none any more.
    pub(super) fn expire(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let State { jobs, probe, lent, .. } = &mut *state;
        let waiting = jobs.iter_mut().chain(probe).map(|job| (job.deadline, &mut job.reply));
        let lent = lent.iter_mut().map(|(deadline, reply)| (*deadline, reply));
        let late: Vec<Reply> = waiting
            .chain(lent)
            .filter(|(deadline, _)| now >= *deadline)
            .filter_map(|(_, reply)| reply.take())
            .collect();
        let over = state.engine_gone || state.callers_gone;
        drop(state);
        for reply in late {
            tell(Some(reply), Err(JobError::DeadlinePassed));
        }
        !over
    }

    /// There will be no more callers.
    pub(super) fn callers_are_gone(&self) {
        self.lock().callers_gone = true;
        self.changed.notify_one();
    }

    /// There is no engine any more: what waits gets no answer but an error.
    pub(super) fn engine_is_gone(&self) {
        let mut state = self.lock();
        state.engine_gone = true;
        let lent = std::mem::take(&mut state.lent);
        let abandoned = (std::mem::take(&mut state.jobs), state.probe.take(), lent);
        drop(state);
        // Dropping a job wakes its caller, which may ask again at once.
        drop(abandoned);
    }

    /// A caller has gone without its answer.
    pub(super) fn hang_up(&self) {
        self.hung_up.fetch_add(1, Ordering::Release);
    }

    /// How many have, so far.
    pub(super) fn hung_up(&self) -> u64 {
        self.hung_up.load(Ordering::Acquire)
    }

    /// Keeps a moving average of a query's share of the passes.
    pub(super) fn note_pass(&self, queries: usize, took: Duration) {
        let now = (took.as_nanos() / queries.max(1) as u128).min(u128::from(u64::MAX)) as u64;
        let average = &self.nanoseconds_per_query;
        let before = average.load(Ordering::Relaxed);
        let after = if before == 0 { now } else { before - before / 8 + now / 8 };
        average.store(after, Ordering::Relaxed);
    }
}

//! A lane, and its inbox: where callers put jobs of one workload, and workers find them.
//!
//! An inbox has shards with a lock each: callers on one runtime use one shard, and workers visit
//! all shards once per pass. So no lock is taken by all callers and all workers for every request.

use std::sync::Arc;

use contract::Workload;

use crate::job::Job;
use crate::shared::{LaneShared, Shared};
use crate::sync::{Mutex, Ordering, SHARDS, lock};

pub(crate) struct Inbox<W: Workload> {
    lane: Arc<LaneShared>,
    shards: Vec<Shard<W>>,
    /// The readiness check's own slot, which no load can take away.
    probe: Shard<W>,
}

/// The probe's bit among those of the shards.
const PROBE: u64 = 1 << SHARDS;

/// On cache lines of its own.
#[repr(align(128))]
struct Shard<W: Workload>(Mutex<Jobs<W>>);

struct Jobs<W: Workload> {
    waiting: Vec<Job<W>>,
    /// There is no device any more.
    is_closed: bool,
}

impl<W: Workload> Shard<W> {
    fn new() -> Self {
        Self(Mutex::new(Jobs { waiting: Vec::new(), is_closed: false }))
    }
}

impl<W: Workload> Inbox<W> {
    pub(crate) fn new(lane: Arc<LaneShared>) -> Self {
        let shards = (0..SHARDS).map(|_| Shard::new()).collect();
        Self { lane, shards, probe: Shard::new() }
    }

    /// Leaves a job for the next pass.
    ///
    /// # Errors
    /// The job, if there is no device any more.
    pub(crate) fn put(&self, job: Job<W>) -> Result<(), Job<W>> {
        let shard = job.ticket.home.shard();
        let mut jobs = lock(&self.shards[shard].0);
        if jobs.is_closed {
            return Err(job);
        }
        let was_empty = jobs.waiting.is_empty();
        jobs.waiting.push(job);
        if was_empty {
            // Set under the shard's lock, so that the worker that empties the shard next sees the
            // bit. Sequentially consistent, like what a worker does before it sleeps
            // (`parking.rs`).
            self.lane.filled.0.fetch_or(1 << shard, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Leaves a probe, and replaces one that may be there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(crate) fn put_probe(&self, probe: Job<W>) -> Result<(), Job<W>> {
        let mut jobs = lock(&self.probe.0);
        if jobs.is_closed {
            return Err(probe);
        }
        let before = std::mem::replace(&mut jobs.waiting, vec![probe]);
        self.lane.filled.0.fetch_or(PROBE, Ordering::SeqCst);
        drop(jobs);
        // Its caller gets an error.
        drop(before);
        Ok(())
    }

    /// Takes all jobs, shard by shard, and the probe last. Passes each to `each`, with whether it
    /// is the probe. `spare` is empty before and after.
    pub(crate) fn take(&self, spare: &mut Vec<Job<W>>, mut each: impl FnMut(Job<W>, bool)) {
        let mut filled = self.lane.filled.0.swap(0, Ordering::SeqCst);
        while filled != 0 {
            let index = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            // What is put there from now on sets the bit again, unless it is taken here.
            let shard = self.shards.get(index).unwrap_or(&self.probe);
            std::mem::swap(&mut lock(&shard.0).waiting, spare);
            spare.drain(..).for_each(|job| each(job, index == SHARDS));
        }
    }

    /// Looks at all jobs that wait here.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&mut Job<W>)) {
        if self.lane.is_filled() {
            for shard in self.shards.iter().chain([&self.probe]) {
                lock(&shard.0).waiting.iter_mut().for_each(&mut each);
            }
        }
    }

    /// Takes out all jobs; if `for_good`, none will be let in again.
    pub(crate) fn empty(&self, for_good: bool) -> Vec<Job<W>> {
        let mut all = Vec::new();
        for shard in self.shards.iter().chain([&self.probe]) {
            let mut jobs = lock(&shard.0);
            jobs.is_closed |= for_good;
            all.append(&mut jobs.waiting);
        }
        all
    }
}

/// What the callers of a lane, its waiting jobs and its passes share.
pub(crate) struct LaneParts<W: Workload> {
    /// Its index among the lanes.
    pub(crate) index: usize,
    pub(crate) workload: W,
    pub(crate) inbox: Inbox<W>,
    pub(crate) lane: Arc<LaneShared>,
    pub(crate) shared: Arc<Shared>,
}

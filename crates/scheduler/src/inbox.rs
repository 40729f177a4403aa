//! Where callers put jobs of one workload, and workers find them.
//!
//! In shards with a lock each: callers on one runtime use one shard, and workers visit all of them once a pass. So no
//! lock is taken by all callers and all workers for every request.

use contract::Workload;

use crate::job::Job;
use crate::sync::{AtomicBool, Mutex, Ordering, SHARDS, lock};

pub(crate) struct Inbox<W: Workload> {
    shards: Vec<Shard<W>>,
    /// The readiness check's own slot, which no load can take away.
    probe: Shard<W>,
}

/// On cache lines of its own.
#[repr(align(128))]
struct Shard<W: Workload> {
    /// Whether there are jobs. Outside the lock, because workers read it often.
    is_filled: AtomicBool,
    jobs: Mutex<Jobs<W>>,
}

struct Jobs<W: Workload> {
    waiting: Vec<Job<W>>,
    /// There is no device any more.
    is_closed: bool,
}

impl<W: Workload> Shard<W> {
    fn new() -> Self {
        let jobs = Mutex::new(Jobs { waiting: Vec::new(), is_closed: false });
        Self { is_filled: AtomicBool::new(false), jobs }
    }
}

impl<W: Workload> Inbox<W> {
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::new()).collect(), probe: Shard::new() }
    }

    /// Leaves a job for the next pass.
    ///
    /// # Errors
    /// The job, if there is no device any more.
    pub(crate) fn put(&self, job: Job<W>) -> Result<(), Job<W>> {
        let shard = &self.shards[job.ticket.home.shard()];
        let mut jobs = lock(&shard.jobs);
        if jobs.is_closed {
            return Err(job);
        }
        jobs.waiting.push(job);
        // Sequentially consistent, as what a worker does before it sleeps (`parking.rs`).
        shard.is_filled.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Leaves a probe, and replaces one that may be there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(crate) fn put_probe(&self, probe: Job<W>) -> Result<(), Job<W>> {
        let mut jobs = lock(&self.probe.jobs);
        if jobs.is_closed {
            return Err(probe);
        }
        let before = std::mem::replace(&mut jobs.waiting, vec![probe]);
        self.probe.is_filled.store(true, Ordering::SeqCst);
        drop(jobs);
        // Its caller hears that it was given up.
        drop(before);
        Ok(())
    }

    /// Whether jobs wait here.
    pub(crate) fn is_filled(&self) -> bool {
        let mut all = self.shards.iter().chain([&self.probe]);
        all.any(|shard| shard.is_filled.load(Ordering::SeqCst))
    }

    /// Takes all jobs, shard by shard: `spare` is empty before and after.
    pub(crate) fn take(&self, spare: &mut Vec<Job<W>>, mut each: impl FnMut(Job<W>)) {
        for shard in self.shards.iter().filter(|shard| shard.is_filled.load(Ordering::SeqCst)) {
            let mut jobs = lock(&shard.jobs);
            std::mem::swap(&mut jobs.waiting, spare);
            shard.is_filled.store(false, Ordering::SeqCst);
            drop(jobs);
            spare.drain(..).for_each(&mut each);
        }
    }

    /// Takes the probe, if there is one.
    pub(crate) fn take_probe(&self) -> Option<Job<W>> {
        if !self.probe.is_filled.load(Ordering::SeqCst) {
            return None;
        }
        let mut jobs = lock(&self.probe.jobs);
        self.probe.is_filled.store(false, Ordering::SeqCst);
        jobs.waiting.pop()
    }

    /// Looks at all jobs that wait here.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&mut Job<W>)) {
        for shard in self.shards.iter().chain([&self.probe]) {
            if shard.is_filled.load(Ordering::SeqCst) {
                lock(&shard.jobs).waiting.iter_mut().for_each(&mut each);
            }
        }
    }

    /// Takes out all jobs; if `for_good`, none will be let in again.
    pub(crate) fn empty(&self, for_good: bool) -> Vec<Job<W>> {
        let mut all = Vec::new();
        for shard in self.shards.iter().chain([&self.probe]) {
            let mut jobs = lock(&shard.jobs);
            jobs.is_closed |= for_good;
            all.append(&mut jobs.waiting);
            shard.is_filled.store(false, Ordering::SeqCst);
        }
        all
    }
}

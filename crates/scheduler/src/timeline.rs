//! When the jobs of one request waited and ran, for the callers that want to know it: a trace of
//! the request shows it.
//!
//! Few requests have a timeline. The jobs of the others carry an empty pointer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The jobs of one request, noted while they wait and run.
#[derive(Debug, Default)]
pub struct Timeline(Mutex<Vec<Arc<JobTimes>>>);

/// When a job entered the queue, and its passes.
#[derive(Debug)]
pub struct JobTimes {
    /// The name of the workload's passes, with its article: `a search`.
    pub workload: &'static str,
    /// The requests of the job.
    pub requests: usize,
    /// When it entered the queue.
    pub entered: Instant,
    passes: Mutex<Vec<PassTimes>>,
}

/// A pass that answered a job, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassTimes {
    /// When it was formed. If the device was still busy with the pass before, it began a little
    /// later.
    pub started: Instant,
    /// When the device had finished it.
    pub ended: Instant,
    /// The time of its slices: less than from start to end if other passes had turns in between.
    pub device: Duration,
    /// The requests of all callers in it: the batch size.
    pub batch: usize,
    /// How many slices it had.
    pub slices: usize,
    /// The index of the device's worker.
    pub replica: usize,
}

impl Timeline {
    /// Notes that a job enters the queue.
    pub(crate) fn enter(
        &self,
        workload: &'static str,
        requests: usize,
        entered: Instant,
    ) -> Arc<JobTimes> {
        let passes = Mutex::default();
        let job = Arc::new(JobTimes { workload, requests, entered, passes });
        lock(&self.0).push(job.clone());
        job
    }

    /// The jobs so far, in the order in which they entered the queue.
    pub fn jobs(&self) -> Vec<Arc<JobTimes>> {
        lock(&self.0).clone()
    }
}

impl JobTimes {
    pub(crate) fn note(&self, pass: PassTimes) {
        lock(&self.passes).push(pass);
    }

    /// The passes that are over, in the order in which they ended. None if the job was not
    /// answered.
    pub fn passes(&self) -> Vec<PassTimes> {
        lock(&self.passes).clone()
    }
}

/// Nobody contends for these locks for long: a caller, and the workers that run its jobs.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The locks, atomics and runtimes that the scheduler's protocol is made of. With the feature
//! `shuttle`, `crates/scheduler/schedules/sync.rs` takes the place of this file.

use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

use crate::account::ById;

/// The number of parts of what many threads write at the same time: enough that threads seldom
/// meet.
pub(crate) const SHARDS: usize = 16;

/// Locks, even after a thread panicked while it held the lock: a device's code may panic there, and
/// the guarded data is consistent at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits until notified, until the time is over, or until a spurious wake-up. Returns whether the
/// time is over.
pub(crate) fn wait_at_most<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    duration: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let waited = changed.wait_timeout(guard, duration);
    let (guard, time) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
    (guard, time.timed_out())
}

/// Whether there is work soon. Threads that could use this core meanwhile get it.
pub(crate) fn is_soon(linger: Duration, has_work: impl Fn() -> bool) -> bool {
    if linger.is_zero() {
        return false;
    }
    let until = Instant::now() + linger;
    while !has_work() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Where a caller waits: answers are handed out there.
#[derive(Clone)]
pub(crate) struct Home(Option<tokio::runtime::Handle>);

impl Home {
    /// The runtime of the task that calls, if it runs on one.
    pub(crate) fn current() -> Self {
        Self(tokio::runtime::Handle::try_current().ok())
    }

    /// Which of the [`SHARDS`] the caller writes to: callers on one runtime share one.
    pub(crate) fn shard(&self) -> usize {
        let mut hasher = ById::default();
        match &self.0 {
            Some(runtime) => runtime.id().hash(&mut hasher),
            None => std::thread::current().id().hash(&mut hasher),
        }
        // The upper bits are the well-mixed ones.
        (hasher.finish() >> 32) as usize % SHARDS
    }

    /// Whether this is the same runtime.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.as_ref().map(|runtime| runtime.id()) == other.0.as_ref().map(|runtime| runtime.id())
    }

    /// Runs some work there, or here if the caller is on no runtime.
    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) {
        match &self.0 {
            Some(runtime) => drop(runtime.spawn(async move { work() })),
            None => work(),
        }
    }
}

//! The locks, atomics and runtimes that the scheduler's protocol is made of. With the feature
//! `shuttle` they are those of the model checker, which runs the same code under thousands of
//! schedules (`crates/scheduler/schedules`).

#[cfg(not(feature = "shuttle"))]
use std::hash::{Hash, Hasher};
use std::time::Duration;

pub(crate) use std::sync::atomic::Ordering;

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(not(feature = "shuttle"))]
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
#[cfg(not(feature = "shuttle"))]
pub(crate) fn wait_at_most<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    duration: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let waited = changed.wait_timeout(guard, duration);
    let (guard, time) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
    (guard, time.timed_out())
}

/// There is no clock under the model checker: the time is over immediately, and other threads may
/// or may not have run by then.
#[cfg(feature = "shuttle")]
pub(crate) fn wait_at_most<'a, T>(
    _: &Condvar,
    guard: MutexGuard<'a, T>,
    _: Duration,
) -> (MutexGuard<'a, T>, bool) {
    (guard, true)
}

/// Where a caller waits: answers are handed out there.
#[cfg(not(feature = "shuttle"))]
#[derive(Clone)]
pub(crate) struct Home(Option<tokio::runtime::Handle>);

#[cfg(not(feature = "shuttle"))]
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

/// Under the model checker, all callers wait on one runtime.
#[cfg(feature = "shuttle")]
#[derive(Clone)]
pub(crate) struct Home;

#[cfg(feature = "shuttle")]
impl Home {
    pub(crate) fn current() -> Self {
        Self
    }

    pub(crate) fn shard(&self) -> usize {
        usize::from(shuttle::current::me()) % 2
    }

    pub(crate) fn is_same(&self, _: &Self) -> bool {
        true
    }

    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) {
        drop(shuttle::future::spawn(async move { work() }));
    }
}

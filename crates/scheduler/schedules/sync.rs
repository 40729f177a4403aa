//! The locks, atomics and runtimes of the model checker, in place of `src/sync.rs`: it runs the
//! scheduler's code under thousands of schedules.

use std::time::Duration;

pub(crate) use std::sync::atomic::Ordering;

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};

pub(crate) const SHARDS: usize = 16;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// There is no clock: the time is over immediately, and other threads may or may not have run by
/// then.
pub(crate) fn wait_at_most<'a, T>(
    _: &Condvar,
    guard: MutexGuard<'a, T>,
    _: Duration,
) -> (MutexGuard<'a, T>, bool) {
    (guard, true)
}

/// There is no clock.
pub(crate) fn is_soon(_: Duration, _: impl Fn() -> bool) -> bool {
    false
}

/// All callers wait on one runtime.
#[derive(Clone)]
pub(crate) struct Home;

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

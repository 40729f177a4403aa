//! What the queue's own protocol is made of, in one place: the model checker puts its own kind of each here
//! (`schedules.rs`) and runs the same code.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tokio::runtime::{Handle, Id};

/// Waits until it is told of a change, or so much time is over, or for no reason; whether the time is over.
pub(super) fn wait_at_most<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    duration: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let waited = changed.wait_timeout(guard, duration);
    let (guard, time) = waited.expect("nothing panics while it holds this lock");
    (guard, time.timed_out())
}

/// The runtime on which a caller waits.
#[derive(Clone)]
pub(super) struct Home(Handle);

impl Home {
    /// That of the task that asks.
    ///
    /// # Panics
    /// Outside a runtime of tokio.
    pub(super) fn current() -> Self {
        Self(Handle::current())
    }

    pub(super) fn id(&self) -> Id {
        self.0.id()
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(work);
    }
}

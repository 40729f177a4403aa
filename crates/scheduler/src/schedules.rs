//! The queue's own protocol (its lock, its condition, what is lent, freed, given up) under a model checker: the same
//! files once more, over shuttle's locks and threads, run under thousands of random schedules. A caller that is
//! never answered is a deadlock, which shuttle reports with the schedule that led there.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::duplicate_mod,
    reason = "they are the files of the queue, and only some of their functions are used here"
)]

use super::{Limits, StartError, engine_state, statistics};
use handle::SubmitError;

#[path = "hand_out.rs"]
mod hand_out;
#[path = "handle.rs"]
mod handle;
#[path = "job.rs"]
mod job;
#[path = "lane.rs"]
mod lane;
#[path = "passes.rs"]
mod passes;
#[path = "share.rs"]
mod share;
#[path = "shared.rs"]
mod shared;
#[path = "slices.rs"]
mod slices;
#[path = "state.rs"]
mod state;
#[path = "supervisor.rs"]
mod supervisor;

/// In place of the other `sync.rs`.
mod sync {
    use std::time::Duration;

    pub(super) use shuttle::sync::atomic::{AtomicU64, Ordering};
    pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard};

    pub(super) fn wait_at_most<'a, T>(
        _changed: &Condvar,
        guard: MutexGuard<'a, T>,
        _duration: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        // No clock here: the time is over at once, and the others may have had a turn by then or not.
        (guard, true)
    }

    /// All callers wait on one.
    #[derive(Clone)]
    pub(super) struct Home;

    impl Home {
        pub(super) fn current() -> Self {
            Self
        }

        pub(super) fn id(&self) -> u32 {
            0
        }

        pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
            drop(shuttle::future::spawn(work));
        }
    }
}

mod tests;

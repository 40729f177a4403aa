//! Which process may use what: threads do not survive a fork.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::PyResult;

use crate::errors;

/// The process in which threads were started; 0 before.
static STARTED_IN: AtomicU32 = AtomicU32::new(0);

/// The number of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn current() -> Self {
        Self(std::process::id())
    }

    /// Checks that what was made in this process is used in it.
    pub(crate) fn check(self) -> PyResult<()> {
        if self == Self::current() {
            return Ok(());
        }
        Err(errors::forked(
            "this model was opened before the process forked, and its threads are not in the new process; open the model there, or \
             start processes by `spawn`: multiprocessing.get_context(\"spawn\")",
        ))
    }

    /// This process, which is about to start threads.
    ///
    /// # Errors
    /// If the process is a fork of one that has threads: locks that they held are held for ever.
    pub(crate) fn that_starts_threads() -> PyResult<Self> {
        let current = Self::current();
        let first = STARTED_IN.compare_exchange(0, current.0, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok_and(|_| true) || first == Err(current.0) {
            return Ok(current);
        }
        Err(errors::forked(
            "this process was forked from one in which kindred had already started threads; start processes by `spawn`, for example by \
             multiprocessing.get_context(\"spawn\"), or fork before the first model is opened",
        ))
    }
}

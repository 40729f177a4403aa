//! Work shared between several threads of a pool and the calling thread.

use std::sync::{Mutex, PoisonError};

use rayon::ThreadPool;

use crate::InstructionSet;

/// The threads of a pass, the calling one included, and the instructions that they use.
#[derive(Clone, Copy)]
pub(crate) struct Workers<'a> {
    pub(crate) pool: &'a ThreadPool,
    pub(crate) threads: usize,
    pub(crate) instructions: InstructionSet,
}

impl Workers<'_> {
    /// The same, but at most this many threads, and at least one.
    pub(crate) fn at_most(self, threads: usize) -> Self {
        Self { threads: self.threads.min(threads).max(1), ..self }
    }

    /// Runs the same work on each thread, and returns the results.
    pub(crate) fn each<T: Send>(self, work: impl Fn() -> T + Sync) -> Vec<T> {
        let (work, others) = (&work, Mutex::new(Vec::new()));
        let mut results = self.pool.in_place_scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(|_| {
                    let result = work();
                    others.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                });
            }
            vec![work()]
        });
        results.append(&mut others.into_inner().unwrap_or_else(PoisonError::into_inner));
        results
    }

    /// Shares parts between the threads. Each of them gets an iterator of its parts.
    pub(crate) fn share<P: Send>(
        self,
        parts: Vec<P>,
        work: impl Fn(&mut dyn Iterator<Item = P>) + Sync,
    ) {
        let workers = self.at_most(parts.len());
        let parts = Mutex::new(parts.into_iter());
        let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
        workers.each(|| work(&mut std::iter::from_fn(next)));
    }
}

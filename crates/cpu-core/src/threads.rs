//! Work shared between several threads of a pool and the calling thread.

use std::sync::{Mutex, PoisonError};

use rayon::ThreadPool;

/// Runs the same work on this thread and on others of the pool, n in total, and returns the results.
pub(crate) fn on_threads<T: Send>(
    pool: &ThreadPool,
    threads: usize,
    work: impl Fn() -> T + Sync,
) -> Vec<T> {
    let (work, others) = (&work, Mutex::new(Vec::new()));
    let mut results = pool.in_place_scope(|scope| {
        for _ in 1..threads {
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

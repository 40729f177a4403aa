//! Tests that measure time or memory of the program: one at a time, and in a process of their own,
//! so that no other test runs beside them. `cargo test -p cli --test measured attacks::` runs
//! one of them.

mod account;
mod attacks;
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test measures.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Work beside a service that runs.

use std::panic::resume_unwind;
use std::{io, thread};

/// Lets this thread, and those that it starts, have what time others leave: a tenth, where those want all of it.
/// Only where that can be asked for a thread; elsewhere nothing changes.
pub fn give_way() {
    // In Linux this is the calling thread's, and what it starts inherits it.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}

/// The same for threads whose work somebody waits for, if not as urgently: they get a third of what others get.
pub fn give_way_a_little() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 5);
}

/// Does work that would like all cores, giving way to others.
///
/// # Errors
/// If the system has no threads left.
pub fn in_background<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let run = || {
        give_way();
        let pool = rayon::ThreadPoolBuilder::new().build().map_err(io::Error::other)?;
        Ok(pool.install(work))
    };
    thread::scope(|scope| {
        let thread =
            thread::Builder::new().name("kindred-verify".into()).spawn_scoped(scope, run)?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

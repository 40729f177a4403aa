//! Background work beside a running service.

use std::panic::resume_unwind;
use std::{io, thread};

/// Lowers the priority of this thread and of those that it starts: they get a tenth of the time if others want all of
/// it. Only on Linux; elsewhere nothing changes.
pub fn give_way() {
    // On Linux this is the calling thread's priority, and threads that it starts inherit it.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}

/// Like [`give_way`], for threads whose work is waited for, but less urgently: they get a third of the time that
/// others get.
pub fn give_way_a_little() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 5);
}

/// Runs work that wants all cores, at low priority.
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

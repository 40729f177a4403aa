//! Background work beside a running service.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::{io, thread};

const NAME: &str = "kindred-verify";

/// Lowers the priority of this thread and of those that it starts: they get a tenth of the time if
/// others want all of it. Only on Linux; elsewhere nothing changes.
pub fn give_way() {
    // On Linux this is the calling thread's priority, and threads that it starts inherit it.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}

/// Like [`give_way`], for threads whose work is waited for, but less urgently: they get a third of
/// the time that others get.
pub fn give_way_a_little() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 5);
}

/// Runs work at low priority, on a quarter of the cores or two.
///
/// # Errors
/// If the system has no threads left.
pub fn in_background<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(NAME.into());
        let thread = thread.spawn_scoped(scope, || at_low_priority(work))?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// As [`in_background`], but does not wait for it.
///
/// # Errors
/// If the system has no threads left.
pub fn start_in_background(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let run = || {
        if let Err(error) = at_low_priority(work) {
            tracing::warn!("background work is not done: {error}");
        }
    };
    thread::Builder::new().name(NAME.into()).spawn(run).map(drop)
}

/// Runs work on threads of low priority.
fn at_low_priority<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    give_way();
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads_beside(cores));
    Ok(pool.build().map_err(io::Error::other)?.install(work))
}

/// Threads for work beside a service: a quarter of the cores, but two of the first two. If all are
/// busy, a request waits for a slice of time, whatever the priorities are; and checksums, which are
/// most of the work, are bound by memory before that.
fn threads_beside(cores: usize) -> usize {
    cores.div_ceil(4).max(cores.min(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_most_of_the_cores() {
        assert_eq!([1, 2, 4, 16, 32].map(threads_beside), [1, 2, 2, 4, 8]);
    }

    #[test]
    fn work_in_the_background_is_done_on_every_system() {
        assert_eq!(in_background(|| rayon::join(|| 1, || 2)).unwrap(), (1, 2));
        let (tell, told) = std::sync::mpsc::channel();
        start_in_background(move || tell.send(3).unwrap()).unwrap();
        assert_eq!(told.recv(), Ok(3));
        thread::spawn(give_way_a_little).join().unwrap();
    }
}

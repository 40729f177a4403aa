//! Background work beside a running service.

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

/// Runs work that wants all cores, at low priority.
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

/// Runs work on threads of low priority, as many as there are cores.
fn at_low_priority<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    give_way();
    let pool = rayon::ThreadPoolBuilder::new().build().map_err(io::Error::other)?;
    Ok(pool.install(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_in_the_background_is_done_on_every_system() {
        assert_eq!(in_background(|| rayon::join(|| 1, || 2)).unwrap(), (1, 2));
        let (tell, told) = std::sync::mpsc::channel();
        start_in_background(move || tell.send(3).unwrap()).unwrap();
        assert_eq!(told.recv(), Ok(3));
        thread::spawn(give_way_a_little).join().unwrap();
    }
}

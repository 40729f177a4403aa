//! The signals that stop a command.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::CommandError;
use super::system_signals::{StopSignals, no_signals};

/// How long the work may take to stop by itself after a signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The remains of a command that writes no file, or has not begun to.
pub(super) const NOTHING: &str = "nothing was written: the same command begins anew";

/// The remains of a command that answers line by line.
pub(super) const LINES: &str = "the lines that were printed are right, and the others are not \
                                answered: the same command begins anew";

/// What is left of most work that does not stop by itself.
pub(super) const REMOVED: &str = match cfg!(windows) {
    // There a folder can't be locked, so none is known to be left.
    true => {
        "a temporary .kindred-* may be left beside the output, and can be deleted: the same \
         command begins anew"
    }
    false => {
        "a temporary .kindred-* may be left beside the output, and the next run removes it: the \
         same command begins anew"
    }
};

/// Whether a signal came.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);
/// Whether work that was told to stop has stopped, and only its end is left.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// The remains of work that does not stop by itself; `None` if there is none to stop.
static WORK: Mutex<Option<&'static str>> = Mutex::new(None);

/// From now on, Ctrl-C and SIGTERM end this process with the exit code 130, after a line that says
/// what it leaves and how to go on: at once with `left`, or, once work is [watched](Interrupt),
/// when that has stopped.
pub(super) fn handle(left: &'static str) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(no_signals)?;
    let mut stop_signals = {
        let _within = runtime.enter();
        StopSignals::handle()?
    };
    let wait = move || {
        runtime.block_on(stop_signals.next());
        let work = *WORK.lock().unwrap_or_else(PoisonError::into_inner);
        let left = match work {
            None => left,
            Some(kept) => {
                IS_STOPPED.store(true, Ordering::Relaxed);
                eprintln!("stopping; a second signal stops at once");
                // A reader that waits for a silent pipe does not check, so wait only for a limited
                // time: but not for less than what was done needs to be written.
                runtime.block_on(async {
                    let second = tokio::time::timeout(STOP_TIMEOUT, stop_signals.next()).await;
                    if second.is_err() && IS_OVER.load(Ordering::Relaxed) {
                        stop_signals.next().await;
                    }
                });
                kept
            }
        };
        eprintln!("kindred: stopped; {left}");
        std::process::exit(130);
    };
    let thread = std::thread::Builder::new().name("kindred-signals".to_owned());
    thread.spawn(wait).map(drop).map_err(no_signals)
}

/// Whether work stopped by itself because of a signal, or is about to.
pub(super) fn is_stopped() -> bool {
    IS_STOPPED.load(Ordering::Relaxed)
}

/// Whether somebody wants long work to stop.
pub(super) struct Interrupt(());

impl Interrupt {
    /// From now on, Ctrl-C and SIGTERM stop the work between two chunks, so that it can keep or
    /// remove what it has written. `kept` says what it leaves if it does not stop by itself.
    pub(super) fn watch(kept: &'static str) -> Self {
        *WORK.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        Self(())
    }

    /// Breaks once the work should stop.
    pub(super) fn go_on(&self) -> ControlFlow<()> {
        match is_stopped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// The work has stopped: however long its end takes, only a second signal cuts it short.
    pub(super) fn end(&self) {
        IS_OVER.store(true, Ordering::Relaxed);
    }
}

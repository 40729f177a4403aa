//! The signals that a command handles: those that stop it, and SIGHUP, which reloads the models.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::CommandError;

/// How long the work may take to stop by itself after a signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// What is left of most work that does not stop by itself.
pub(super) const REMOVED: &str =
    "a temporary .kindred-* may be left beside the output, and the next run removes it";

/// Whether somebody wants long work to stop.
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Ctrl-C and SIGTERM stop the work between two chunks, so that it can remove what it has
    /// written. `kept` says what it leaves if it does not stop by itself.
    pub(super) fn watch(kept: &'static str) -> Result<Self, CommandError> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = interrupted.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(no_signals)?;
        let mut stop_signals = {
            let _within = runtime.enter();
            StopSignals::handle()?
        };
        std::thread::spawn(move || {
            runtime.block_on(stop_signals.next());
            flag.store(true, Ordering::Relaxed);
            eprintln!("stopping; a second signal stops at once");
            // A reader that waits for a silent pipe does not check the flag, so wait only for a
            // limited time.
            runtime.block_on(async {
                let _ = tokio::time::timeout(STOP_TIMEOUT, stop_signals.next()).await;
            });
            eprintln!("kindred: stopped; {kept}");
            std::process::exit(130);
        });
        Ok(Self(interrupted))
    }

    /// Breaks once the work should stop.
    pub(super) fn go_on(&self) -> ControlFlow<()> {
        match self.0.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn no_signals(source: io::Error) -> CommandError {
    CommandError::System { doing: "can't handle signals", source }
}

/// Ctrl-C and SIGTERM. Once this value exists, neither ends the process by itself.
pub(super) struct StopSignals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

impl StopSignals {
    /// Must be called within a tokio runtime.
    pub(super) fn handle() -> Result<Self, CommandError> {
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt()).map_err(no_signals)?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate()).map_err(no_signals)?,
        })
    }

    /// Waits for the next signal. Signals between two calls count as one.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// SIGHUP, on systems that have it. Once this value exists, SIGHUP does not end the process.
pub(super) struct Hangup(#[cfg(unix)] Signal);

impl Hangup {
    /// Must be called within a tokio runtime.
    pub(super) fn handle() -> Result<Self, CommandError> {
        Ok(Self(
            #[cfg(unix)]
            signal(SignalKind::hangup()).map_err(no_signals)?,
        ))
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        if self.0.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

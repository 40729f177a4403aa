//! The signals that a command handles: those that stop it, and SIGHUP, which reloads the models.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C and SIGTERM. Once this value exists, neither ends the process by itself.
pub(super) struct StopSignals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

impl StopSignals {
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the system refuses a handler.
    pub(super) fn handle() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
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
    ///
    /// # Errors
    /// If the system refuses a handler.
    pub(super) fn handle() -> io::Result<Self> {
        Ok(Self(
            #[cfg(unix)]
            signal(SignalKind::hangup())?,
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

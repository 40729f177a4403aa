//! The signals that a program handles, as each system has them: those that stop it, and SIGHUP,
//! which reloads the models.
//!
//! | | Unix | Windows |
//! |---|---|---|
//! | stop | SIGINT (Ctrl-C), SIGTERM | Ctrl-C, Ctrl-Break |
//! | reload | SIGHUP | none: `POST /admin/reload` does it |

use std::io;

use super::CommandError;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub(super) fn no_signals(source: io::Error) -> CommandError {
    CommandError::System { doing: "can't handle signals", source }
}

/// Ctrl-C, and SIGTERM or Ctrl-Break. Once this value exists, neither ends the process by itself.
pub(super) struct StopSignals(system::Stop);

impl StopSignals {
    /// Must be called within a tokio runtime.
    pub(super) fn handle() -> Result<Self, CommandError> {
        system::Stop::handle().map(Self).map_err(no_signals)
    }

    /// Waits for the next signal. Signals between two calls count as one.
    pub(super) async fn next(&mut self) {
        self.0.next().await;
    }
}

/// SIGHUP, on systems that have it. Once this value exists, SIGHUP does not end the process.
pub(super) struct Hangup(system::Hangup);

impl Hangup {
    /// Must be called within a tokio runtime.
    pub(super) fn handle() -> Result<Self, CommandError> {
        system::Hangup::handle().map(Self).map_err(no_signals)
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) {
        if self.0.next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    pub(super) struct Stop {
        interrupt: Signal,
        terminate: Signal,
    }

    impl Stop {
        pub(super) fn handle() -> io::Result<Self> {
            let interrupt = signal(SignalKind::interrupt())?;
            Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
        }

        pub(super) async fn next(&mut self) {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
        }
    }

    pub(super) struct Hangup(Signal);

    impl Hangup {
        pub(super) fn handle() -> io::Result<Self> {
            signal(SignalKind::hangup()).map(Self)
        }

        pub(super) async fn next(&mut self) -> Option<()> {
            self.0.recv().await
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::io;

    use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};

    pub(super) struct Stop {
        ctrl_c: CtrlC,
        ctrl_break: CtrlBreak,
    }

    impl Stop {
        pub(super) fn handle() -> io::Result<Self> {
            Ok(Self { ctrl_c: ctrl_c()?, ctrl_break: ctrl_break()? })
        }

        pub(super) async fn next(&mut self) {
            tokio::select! {
                _ = self.ctrl_c.recv() => {}
                _ = self.ctrl_break.recv() => {}
            }
        }
    }

    pub(super) struct Hangup;

    impl Hangup {
        pub(super) fn handle() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn next(&mut self) -> Option<()> {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    /// On every system they can be handled, and none comes by itself.
    #[test]
    fn signals_are_waited_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut stop, mut hangup) =
                (StopSignals::handle().unwrap(), Hangup::handle().unwrap());
            let (mut stop, mut hangup) = (pin!(stop.next()), pin!(hangup.next()));
            let none_came = poll_fn(|context| {
                let stop = stop.as_mut().poll(context).is_pending();
                Poll::Ready(stop && hangup.as_mut().poll(context).is_pending())
            });
            assert!(none_came.await);
        });
    }
}

//! Ends the threads of a job early.

use tokio::sync::watch;

use crate::Error;

/// Tells threads to end.
pub(crate) struct Cancellation(watch::Sender<bool>);

impl Cancellation {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(crate) fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn cancelled(&self) {
        // The sender lives as long as this.
        let _ = self.0.subscribe().wait_for(|is_cancelled| *is_cancelled).await;
    }
}

/// Cancels when it is dropped, also by a panic.
pub(crate) struct CancelOnDrop<'a>(pub(crate) &'a Cancellation);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Cancels if it is dropped by a panic: an answer that never comes would be waited for.
pub(crate) struct CancelOnPanic<'a>(pub(crate) &'a Cancellation);

impl Drop for CancelOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

/// Why a piece has no answer.
#[derive(Debug)]
pub(crate) enum Interrupted<E = Error> {
    Cancelled,
    Failed(E),
}

impl Interrupted {
    /// With the error of the whole job.
    pub(crate) fn of_job<E: From<Error>>(self) -> Interrupted<E> {
        match self {
            Self::Cancelled => Interrupted::Cancelled,
            Self::Failed(error) => Interrupted::Failed(error.into()),
        }
    }
}

impl<E: Into<Error>> From<E> for Interrupted {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

//! Ends the threads of a job early.

use std::ops::ControlFlow;

use tokio::sync::watch;

use crate::error::JobError;

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

    /// A break once it is cancelled.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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

/// Why a piece has no answer.
#[derive(Debug)]
pub(crate) enum Interrupted {
    Cancelled,
    Failed(JobError),
}

impl<E: Into<JobError>> From<E> for Interrupted {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

//! Why requests are not answered, and why there is no device.

use std::time::Duration;

/// Why requests were not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The queue is full, or its caller holds too much of it.
    #[error(
        "{asked} queue slots are needed, but {free} of {capacity} are free, and this caller holds {held}"
    )]
    Full {
        /// Slots that were asked for.
        asked: u32,
        /// Slots that the caller holds already.
        held: u32,
        /// Slots that nobody holds.
        free: u32,
        /// Slots of the queue.
        capacity: u32,
        /// When the queue should have drained at the present rate.
        retry_after: Duration,
    },
    /// The deadline passed before the answer was there.
    #[error("the deadline passed")]
    DeadlinePassed,
    /// The pass that these requests were part of failed.
    #[error("the engine failed in this pass")]
    EngineFailed,
    /// The engine failed and there is no other yet.
    #[error("the engine is being restarted")]
    EngineRestarting {
        /// When the next attempt should be over.
        retry_after: Duration,
    },
    /// There is no engine any more, and will be none.
    #[error("the engine is gone")]
    EngineGone,
}

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum StartError<E> {
    /// It can't be made: the error of its maker.
    #[error(transparent)]
    Device(E),
    /// Its maker panicked, or took too long.
    #[error("the engine broke while it was being made: {0}; the log has more")]
    Broken(String),
    /// The system has no threads left.
    #[error("can't start the engine's thread: {0}")]
    Thread(#[source] std::io::Error),
}

//! From many callers to one engine: a bounded queue of jobs, and the one thread that owns the engine
//! and answers whatever is waiting in one pass.
//!
//! There is no artificial delay: while one batch runs, the next one gathers and the last one is handed
//! out.
//!
//! **Turns.** Searches and full passes wait in a lane each. A search pass answers its queries; a full pass is made in
//! slices, for it can take as long as thousands of searches. Before each of them the caller on which the engine has
//! spent less time decides which it is (`account/turns.rs`), so what one caller asks for never keeps
//! the others waiting for longer than one slice or one search pass. Within a lane callers, and the jobs of each, share
//! each pass fairly (`share.rs`).
//!
//! **Admission** has one rule, whether a request asks one query or a thousand: a job takes slots, one for a search and
//! one for each vector of a full-pass query, and has them from when it comes in until it is answered, fails or is
//! dropped. It is let in if that many slots are free and its caller then holds no more than it leaves free
//! ([`account`](crate::account)). More than half of the slots count as half. Who is refused hears how long the slots
//! taken will take the engine, at its present rate.
//!
//! **Deadlines** are looked at on entry, before each pass, while a pass runs, and when the answer is there. Who
//! hung up is dropped before the next pass.
//!
//! **Supervision.** A pass that fails or panics fails its own jobs; then the engine is dropped and made again
//! (`supervisor.rs`), who waits goes on waiting and who comes is refused. An engine that can't be made again, or
//! that hangs, is lost: everybody is told so, and [`EngineThread::lost`] tells the process to end.

pub mod account;
mod engine_state;
mod engine_thread;
mod hand_out;
mod handle;
mod job;
mod lane;
mod passes;
mod share;
mod shared;
mod slices;
mod state;
mod statistics;
mod supervisor;
mod sync;

use std::time::Duration;

pub use engine_state::{EngineLost, EngineState};
pub use engine_thread::{EngineThread, start};
pub use handle::{QueueHandle, SubmitError};
pub use job::{Answer, FullPassAnswers};
pub use statistics::{BATCH_SIZE_BOUNDS, LaneStatistics, PASS_SECONDS_BOUNDS, QueueStatistics};

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum StartError<E> {
    /// It can't be made: as its maker says.
    #[error(transparent)]
    Engine(E),
    /// Its maker panicked, or took too long.
    #[error("the engine broke while it was being made: {0}; the log has more")]
    Broken(String),
    /// The system has no threads left.
    #[error("can't start the engine's thread: {0}")]
    Thread(std::io::Error),
}

/// Bounds of the queue and of its engine.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Places: queries that may wait or be in work at the same time. A full-pass query counts as many times as
    /// it has vectors.
    pub capacity_queries: u32,
    /// Queries that one search pass takes at most; the engine may prefer fewer.
    pub max_batch_queries: usize,
    /// How often an engine that fails is made again within a minute; failed attempts count.
    pub engine_max_restarts: u32,
    /// How long a pass, or making the engine again, may take before the engine is given up.
    pub engine_hang_timeout: Duration,
}

#[cfg(test)]
mod schedules;
#[cfg(test)]
mod tests;

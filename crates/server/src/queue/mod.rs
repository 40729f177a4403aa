//! From many callers to one engine: a bounded queue of jobs, and the one thread that owns the engine
//! and answers whatever is waiting in one pass.
//!
//! There is no artificial delay: while one batch runs, the next one gathers and the last one is handed
//! out.
//!
//! Searches and full passes wait in a lane each and take turns, a pass of the one and a pass of the other,
//! so that neither keeps the other from the engine: a full pass takes as long as many searches, so it is
//! bounded, and searches never stop coming where a service is busy.

mod engine_thread;
mod hand_out;
mod handle;
mod job;
mod lane;
mod shared;

pub use engine_thread::{EngineThread, start};
pub use handle::{QueueHandle, SubmitError};
pub use job::{Answer, FullPassAnswers};

/// Bounds of the queue.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Queries that may wait or be in work at the same time. A full-pass query counts as many times as it has
    /// vectors.
    pub capacity_queries: u32,
    /// Queries that one search pass takes at most; the engine may prefer fewer.
    pub max_batch_queries: usize,
}

//! From many callers to one engine: a bounded queue of jobs, and the one thread that owns the engine
//! and answers whatever is waiting in one pass.
//!
//! There is no artificial delay: while one batch runs, the next one gathers and the last one is handed
//! out.

mod engine_thread;
mod hand_out;
mod handle;
mod job;
mod shared;

pub use engine_thread::{EngineThread, start};
pub use handle::{QueueHandle, SubmitError};
pub use job::Answer;

/// Bounds of the queue.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Queries that may wait or be in work at the same time.
    pub capacity_queries: u32,
    /// Queries that one pass takes at most; the engine may prefer fewer.
    pub max_batch_queries: usize,
}

use std::time::{Duration, Instant};

use model_store::{Hit, Query};
use tokio::sync::oneshot;

/// What one request asks of the engine: some queries, answered together.
pub(super) struct Job {
    pub(super) queries: Vec<Query>,
    /// After this nobody waits any more.
    pub(super) deadline: Instant,
    /// When the job entered the queue.
    pub(super) entered: Instant,
    pub(super) reply: oneshot::Sender<Result<Answer, JobError>>,
    /// Its places in the queue. A probe has none.
    pub(super) places: u32,
}

impl Job {
    /// Whether nobody waits for the answer.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

/// What a job comes back with.
#[derive(Debug, Default)]
pub struct Answer {
    /// For each query, in order, its neighbours, best first.
    pub hits: Vec<Vec<Hit>>,
    /// From entering the queue to the start of the first pass.
    pub queued: Duration,
    /// In passes of the engine.
    pub engine: Duration,
}

/// Why a job has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobError {
    /// It waited past its deadline.
    DeadlinePassed,
    /// The pass failed.
    EngineFailed,
}

use std::time::{Duration, Instant};

use model_store::{Hit, Query};
use tokio::runtime;
use tokio::sync::oneshot;

/// What one request asks of the engine: some queries, answered together.
pub(super) struct Job {
    pub(super) queries: Vec<Query>,
    /// After this nobody waits any more.
    pub(super) deadline: Instant,
    /// When the job entered the queue.
    pub(super) entered: Instant,
    /// Where the answer goes; `None` once the caller has been told that its time is over.
    pub(super) reply: Option<Reply>,
    /// Where the caller waits: its answer is handed out there.
    pub(super) home: runtime::Handle,
    /// Its places in the queue. A probe has none.
    pub(super) places: u32,
}

impl Job {
    /// Whether nobody waits for the answer.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}

/// Where a caller's answer goes.
pub(super) type Reply = oneshot::Sender<Result<Answer, JobError>>;

/// Sends it. Whoever hung up does not hear this.
pub(super) fn tell(reply: Option<Reply>, result: Result<Answer, JobError>) {
    if let Some(reply) = reply {
        let _ = reply.send(result);
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

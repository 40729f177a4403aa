use std::sync::Arc;
use std::time::{Duration, Instant};

use model_store::{FullPassQuery, Query};
use tokio::runtime;
use tokio::sync::oneshot;

use super::job::{Answer, Ask, FullPassAnswers, Job, JobError};
use super::shared::{HasLane, Shared};

/// The callers' end of the queue. Clones share it; when the last is gone the engine thread ends.
#[derive(Clone)]
pub struct QueueHandle(Arc<CallersEnd>);

struct CallersEnd(Arc<Shared>);

impl Drop for CallersEnd {
    fn drop(&mut self) {
        self.0.callers_are_gone();
    }
}

/// Why queries were not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The queue is full; when it should have drained at the present rate.
    #[error("the queue is full")]
    Full {
        /// How long to wait before asking again.
        retry_after: Duration,
    },
    /// The deadline passed before the answer was there.
    #[error("the deadline passed")]
    DeadlinePassed,
    /// The pass that these queries were part of failed.
    #[error("the engine failed in this pass")]
    EngineFailed,
    /// There is no engine any more.
    #[error("the engine is gone")]
    EngineGone,
}

impl QueueHandle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(Arc::new(CallersEnd(shared)))
    }

    fn shared(&self) -> &Shared {
        &self.0.0
    }

    /// Waits for the answers to some queries. Dropping the future abandons them: what has not been
    /// searched by then never will be. To be called on a runtime of tokio.
    ///
    /// # Errors
    /// At once if the queue is full; later if the deadline passes or the engine fails.
    pub async fn submit(
        &self,
        queries: Vec<Query>,
        deadline: Instant,
    ) -> Result<Answer, SubmitError> {
        self.ask(queries, deadline).await
    }

    /// As [`submit`](Self::submit), for queries that take a full pass. They wait in a lane of their own and
    /// take as many places of the queue as they have vectors.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub async fn full_pass(
        &self,
        queries: Vec<FullPassQuery>,
        deadline: Instant,
    ) -> Result<FullPassAnswers, SubmitError> {
        self.ask(queries, deadline).await
    }

    async fn ask<Q: HasLane>(
        &self,
        queries: Vec<Q>,
        deadline: Instant,
    ) -> Result<Q::Answer, SubmitError> {
        if queries.is_empty() {
            return Ok(Q::Answer::default());
        }
        let places = self.shared().places(&queries);
        let (job, answer) = job(queries, deadline, places);
        self.shared().admit(job)?;
        self.wait(answer).await
    }

    /// As [`submit`](Self::submit), through the place that is kept for readiness checks. Only one
    /// may be under way: a second takes the place of the first.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), but never because the queue is full.
    pub async fn submit_probe(
        &self,
        query: Query,
        deadline: Instant,
    ) -> Result<Answer, SubmitError> {
        let (probe, answer) = job(vec![query], deadline, 0);
        self.shared().admit_probe(probe)?;
        self.wait(answer).await
    }

    /// Places that are taken, by searches and by full passes, and how many there are for both.
    pub fn places(&self) -> ([u32; 2], u32) {
        self.shared().taken_and_capacity()
    }

    /// How many callers have gone without their answer.
    pub fn hung_up(&self) -> u64 {
        self.shared().hung_up()
    }

    async fn wait<A>(
        &self,
        answer: oneshot::Receiver<Result<A, JobError>>,
    ) -> Result<A, SubmitError> {
        let mut caller = Caller { shared: self.shared(), is_answered: false };
        // No timer of its own: `watch_deadlines` has one for all.
        let answer = answer.await;
        caller.is_answered = true;
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(JobError::DeadlinePassed)) => Err(SubmitError::DeadlinePassed),
            Ok(Err(JobError::EngineFailed)) => Err(SubmitError::EngineFailed),
            // The engine thread ended with the job in its hands.
            Err(_) => Err(SubmitError::EngineGone),
        }
    }
}

/// A job of the caller that asks now, and where its answer will come.
fn job<Q: Ask>(
    queries: Vec<Q>,
    deadline: Instant,
    places: u32,
) -> (Job<Q>, oneshot::Receiver<Result<Q::Answer, JobError>>) {
    let (reply, answer) = oneshot::channel();
    let (entered, home) = (Instant::now(), runtime::Handle::current());
    (Job { queries, deadline, entered, reply: Some(reply), home, places }, answer)
}

/// Somebody who waits. Dropped after what it waits for, so a job that it counts as abandoned is seen
/// to be.
struct Caller<'a> {
    shared: &'a Shared,
    is_answered: bool,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.shared.hang_up();
        }
    }
}

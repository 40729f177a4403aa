use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use contract::{FullPassQuery, Query};
use tokio::sync::oneshot;

use super::engine_state::EngineState;
use super::job::{Answer, Ask, FullPassAnswers, Job};
use super::shared::Shared;
use super::state::HasLane;
use super::statistics::QueueStatistics;
use super::sync::Home;
use crate::account::Account;

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
    /// The pass that these queries were part of failed.
    #[error("the engine failed in this pass")]
    EngineFailed,
    /// The engine failed and there is no other yet.
    #[error("the engine is being restarted")]
    EngineRestarting {
        /// When the next attempt should have come to its end.
        retry_after: Duration,
    },
    /// There is no engine any more, and will be none.
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
    /// At once if the deadline has passed, the queue is full or there is no working engine; later if the deadline
    /// passes or the engine fails.
    pub async fn submit(
        &self,
        account: &Arc<Account>,
        queries: Vec<Query>,
        deadline: Instant,
    ) -> Result<Answer, SubmitError> {
        let mut answer = self.ask(account, queries, deadline).await?;
        if !answer.unproven.is_empty() {
            // Rare; so it must not make the future of every request larger.
            Box::pin(self.prove(account, &mut answer, deadline)).await?;
        }
        Ok(answer)
    }

    /// Asks by full passes for what a search could not answer.
    async fn prove(
        &self,
        account: &Arc<Account>,
        answer: &mut Answer,
        deadline: Instant,
    ) -> Result<(), SubmitError> {
        let (places, unproven): (Vec<usize>, Vec<Query>) =
            std::mem::take(&mut answer.unproven).into_iter().unzip();
        let queries = unproven.iter().map(FullPassQuery::of_search).collect();
        let proved = self.full_pass(account, queries, deadline).await?;
        for (place, proved) in places.into_iter().zip(proved.answers) {
            answer.hits[place] = proved.hits;
        }
        answer.queued += proved.queued;
        answer.engine += proved.engine;
        Ok(())
    }

    /// As [`submit`](Self::submit), for queries that take a full pass. They wait in a lane of their own and
    /// take as many places of the queue as they have vectors.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub async fn full_pass(
        &self,
        account: &Arc<Account>,
        queries: Vec<FullPassQuery>,
        deadline: Instant,
    ) -> Result<FullPassAnswers, SubmitError> {
        self.ask(account, queries, deadline).await
    }

    async fn ask<Q: HasLane>(
        &self,
        account: &Arc<Account>,
        queries: Vec<Q>,
        deadline: Instant,
    ) -> Result<Q::Answer, SubmitError> {
        if queries.is_empty() {
            return Ok(Q::Answer::default());
        }
        let now = Instant::now();
        // Before the places: who has no time left would not be helped by asking again.
        if now >= deadline {
            return Err(self.too_late());
        }
        let places = self.shared().places(&queries);
        let (job, answer) = job(queries, deadline, now);
        self.shared().admit(job, account, places)?;
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
        let now = Instant::now();
        if now >= deadline {
            return Err(self.too_late());
        }
        let (probe, answer) = job(vec![query], deadline, now);
        self.shared().admit_probe(probe)?;
        self.wait(answer).await
    }

    fn too_late(&self) -> SubmitError {
        self.shared().statistics.deadline_passed.fetch_add(1, Ordering::Relaxed);
        SubmitError::DeadlinePassed
    }

    /// How the engine is.
    pub fn engine_state(&self) -> EngineState {
        self.shared().engine_state()
    }

    /// What the queue and its engine have done so far.
    pub fn statistics(&self) -> QueueStatistics {
        self.shared().statistics()
    }

    async fn wait<A>(
        &self,
        answer: oneshot::Receiver<Result<A, SubmitError>>,
    ) -> Result<A, SubmitError> {
        let mut caller = Caller { shared: self.shared(), is_answered: false };
        // No timer of its own: the queue's `watch` has one for all.
        let answer = answer.await;
        caller.is_answered = true;
        // The engine thread ended with the job in its hands.
        answer.unwrap_or(Err(SubmitError::EngineGone))
    }
}

/// A job of the caller that asks now, and where its answer will come.
fn job<Q: Ask>(
    queries: Vec<Q>,
    deadline: Instant,
    entered: Instant,
) -> (Job<Q>, oneshot::Receiver<Result<Q::Answer, SubmitError>>) {
    let (reply, answer) = oneshot::channel();
    let home = Home::current();
    (Job { queries, deadline, entered, reply: Some(reply), home, slots: None }, answer)
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

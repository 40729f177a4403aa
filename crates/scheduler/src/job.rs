use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use contract::{FullPassAnswer, FullPassQuery, Hit, Query};
use tokio::sync::oneshot;

use super::SubmitError;
use super::statistics::Statistics;
use super::sync::Home;
use crate::account::Slots;

/// What the engine can be asked: one kind of queries for each kind of its passes. Each kind waits in a lane
/// of its own.
pub(super) trait Ask: Sized + Send + 'static {
    /// What answers one query.
    type Found: Send + 'static;
    /// What comes back for a job of them.
    type Answer: Default + Send + 'static;

    /// How many places of the queue one query takes: its part of a pass's work.
    fn places(&self) -> usize;

    /// A job's answer: what was found for each of its queries.
    fn answer(
        queries: Vec<Self>,
        found: Vec<Self::Found>,
        queued: Duration,
        engine: Duration,
    ) -> Self::Answer;
}

/// What one request asks of the engine: some queries, answered together.
pub(super) struct Job<Q: Ask> {
    pub(super) queries: Vec<Q>,
    /// After this nobody waits any more.
    pub(super) deadline: Instant,
    /// When the job entered the queue.
    pub(super) entered: Instant,
    /// Where the answer goes; `None` once the caller has been told that its time is over.
    pub(super) reply: Option<Reply<Q>>,
    /// Where the caller waits: its answer is handed out there.
    pub(super) home: Home,
    /// Its slots in the queue. A probe has none.
    pub(super) slots: Option<Slots>,
}

impl<Q: Ask> Job<Q> {
    /// How many slots of the queue it has.
    pub(super) fn places(&self) -> u32 {
        self.slots.as_ref().map_or(0, Slots::number)
    }

    /// Whose it is. A probe is nobody's.
    pub(super) fn caller(&self) -> Option<u64> {
        self.slots.as_ref().map(Slots::caller)
    }

    /// Whether nobody waits for the answer.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}

/// Where a caller's answer goes.
pub(super) type Reply<Q> = oneshot::Sender<Result<<Q as Ask>::Answer, SubmitError>>;

/// Sends it, and counts what went wrong. Whoever hung up does not hear this, nor is it counted.
pub(super) fn tell<Q: Ask>(
    reply: Option<Reply<Q>>,
    result: Result<Q::Answer, SubmitError>,
    statistics: &Statistics,
) {
    let Some(reply) = reply else { return };
    let counter = match &result {
        Ok(_) => None,
        Err(SubmitError::DeadlinePassed) => Some(&statistics.deadline_passed),
        Err(_) => Some(&statistics.failed),
    };
    if reply.send(result).is_ok()
        && let Some(counter) = counter
    {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a job of searches comes back with.
#[derive(Debug, Default)]
pub struct Answer {
    /// For each query, in order, its neighbours, best first.
    pub hits: Vec<Vec<Hit>>,
    /// From entering the queue to the start of the first pass.
    pub queued: Duration,
    /// In passes of the engine.
    pub engine: Duration,
    /// Queries that a search pass could not answer, each with its place in `hits`. Empty once
    /// [`submit`](super::QueueHandle::submit) has asked for them by full passes.
    pub(super) unproven: Vec<(usize, Query)>,
}

impl Ask for Query {
    /// `None`: a search pass can't answer it, see [`Engine::search_meanwhile`](contract::Engine::search_meanwhile).
    type Found = Option<Vec<Hit>>;
    type Answer = Answer;

    fn places(&self) -> usize {
        1
    }

    fn answer(
        queries: Vec<Self>,
        found: Vec<Option<Vec<Hit>>>,
        queued: Duration,
        engine: Duration,
    ) -> Answer {
        let mut unproven = Vec::new();
        let mut hits = Vec::with_capacity(found.len());
        for (place, (query, found)) in queries.into_iter().zip(found).enumerate() {
            if found.is_none() {
                unproven.push((place, query));
            }
            hits.push(found.unwrap_or_default());
        }
        Answer { hits, queued, engine, unproven }
    }
}

/// What a job of full-pass queries comes back with.
#[derive(Debug, Default)]
pub struct FullPassAnswers {
    /// For each query, in order, what was found.
    pub answers: Vec<FullPassAnswer>,
    /// From entering the queue to the start of the first pass.
    pub queued: Duration,
    /// In passes of the engine.
    pub engine: Duration,
}

impl Ask for FullPassQuery {
    type Found = FullPassAnswer;
    type Answer = FullPassAnswers;

    /// One for each vector that rows are compared with: that is the work.
    fn places(&self) -> usize {
        self.scoring().vectors().len()
    }

    fn answer(
        _: Vec<Self>,
        answers: Vec<FullPassAnswer>,
        queued: Duration,
        engine: Duration,
    ) -> FullPassAnswers {
        FullPassAnswers { answers, queued, engine }
    }
}

//! The queue in front of a model's engine: searches and full passes, as lanes of one scheduler.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::workload::{Classify, Costs, Expand, FullPass, Search, SearchResponse, TermsOfText};
use contract::{Engine, Expansion, FullPassAnswer, FullPassQuery, Hit, Query, Term, TokenText};
use scheduler::account::Account;
use scheduler::{Counted, Lane, LaneStatistics, Scheduler, StartError};
use tokio::runtime;

pub use scheduler::{
    Answered, DeviceState, DeviceThreads, EngineLost, JobTimes, NotRetired, PassTimes,
    ReplicaState, Replicas, SubmitError, Timeline, Until,
};

/// Bounds of the queue and of its engine.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Slots: plain queries that may wait or be in work at the same time. Others take as many as
    /// they usually cost.
    pub capacity_queries: u32,
    /// Queries that one search pass takes at most; the engine may prefer fewer.
    pub max_batch_queries: usize,
    /// How often an engine that fails is made again within a minute; failed attempts count.
    pub engine_max_restarts: u32,
    /// How long a pass, or making the engine again, may take before the engine is given up.
    pub engine_hang_timeout: Duration,
    /// How long a pass may take while another replica works, which is then asked instead. At most
    /// `engine_hang_timeout`.
    pub engine_hang_timeout_beside_others: Duration,
    /// How long an engine's thread without work looks for some before it sleeps. Good for callers
    /// that ask one question after the other, and costs a core that time.
    pub linger: Duration,
}

/// The callers' end of the queue. Clones share it; when the last is gone the engine's thread ends.
#[derive(Clone)]
pub struct QueueHandle {
    search: Lane<Search>,
    full_pass: Lane<FullPass>,
    classify: Lane<Classify>,
    expand: Lane<Expand>,
}

/// What was counted since the start, and what waits now.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueStatistics {
    /// Of searches.
    pub searches: LaneStatistics,
    /// Of full passes.
    pub full_passes: LaneStatistics,
    /// Of classified texts.
    pub classifications: LaneStatistics,
    /// Of expansions: of parts of texts, of a few tokens each.
    pub expansions: LaneStatistics,
    /// Of all together.
    pub counted: Counted,
}

/// Starts a thread for each of these makers, makes an engine on each, waits for those that `until`
/// names, and returns both ends: the queue to put jobs in and the threads to join in the end.
/// Callers may wait on any runtime; their deadlines are watched on `timer`. If an engine fails, its
/// maker is called again. `within` bounds the wait.
///
/// # Errors
/// If a thread can't be started or an engine that is waited for can't be made.
pub fn start<F, E>(
    limits: Limits,
    timer: &runtime::Handle,
    until: Until,
    within: Option<Duration>,
    makers: Vec<F>,
) -> Result<(QueueHandle, DeviceThreads), StartError<E>>
where
    F: FnMut() -> Result<Box<dyn Engine>, E> + Send + 'static,
    E: Display + Send + 'static,
{
    let (scheduler, queue, costs) = lanes(limits);
    Ok((queue, scheduler.start(timer, until, within, telling(&costs, makers))?))
}

/// A scheduler with all lanes, and the costs that admission counts.
fn lanes(limits: Limits) -> (Scheduler<dyn Engine>, QueueHandle, Costs) {
    let mut scheduler = Scheduler::new(scheduler::Limits {
        capacity_slots: limits.capacity_queries,
        max_restarts: limits.engine_max_restarts,
        hang_timeout: limits.engine_hang_timeout,
        hang_timeout_beside_others: limits.engine_hang_timeout_beside_others,
        linger: limits.linger,
    });
    let costs = Costs::new(limits.capacity_queries);
    let max_batch = limits.max_batch_queries;
    let search = scheduler.lane(Search { max_batch, costs: costs.clone() });
    let full_pass = scheduler.lane(FullPass { costs: costs.clone() });
    let classify = scheduler.lane(Classify);
    let expand = scheduler.lane(Expand { max_batch, costs: costs.clone() });
    (scheduler, QueueHandle { search, full_pass, classify, expand }, costs)
}

/// The same makers, each of which tells what requests cost its engine.
fn telling<F, E>(
    costs: &Costs,
    makers: Vec<F>,
) -> Vec<impl FnMut() -> Result<Box<dyn Engine>, E> + Send + 'static>
where
    F: FnMut() -> Result<Box<dyn Engine>, E> + Send + 'static,
{
    let maker = |mut make: F| {
        let costs = costs.clone();
        move || {
            let engine = make()?;
            costs.set(engine.usual_costs());
            Ok(engine)
        }
    };
    makers.into_iter().map(maker).collect()
}

impl QueueHandle {
    /// Waits for the neighbours of some queries, best first. Dropping the future abandons them:
    /// queries that have not been searched by then never will be. Notes in the timeline, if there
    /// is one, when jobs enter the queue, and their passes.
    ///
    /// # Errors
    /// Immediately if the deadline has passed, the queue is full or there is no working engine;
    /// later if the deadline passes or the engine fails.
    #[inline]
    pub async fn submit(
        &self,
        account: &Arc<Account>,
        queries: Vec<Query>,
        deadline: Instant,
        timeline: Option<&Arc<Timeline>>,
    ) -> Result<Answered<Vec<Hit>>, SubmitError> {
        let answered = self.search.submit(account, queries, deadline, timeline).await?;
        let (mut answer, unproven) = split(answered);
        if !unproven.is_empty() {
            // Boxed, because it is rare and must not make the future of every request larger.
            Box::pin(self.prove(account, unproven, &mut answer, deadline, timeline)).await?;
        }
        Ok(answer)
    }

    /// Answers by full passes the queries that a search could not prove.
    async fn prove(
        &self,
        account: &Arc<Account>,
        unproven: Vec<(usize, Query)>,
        answer: &mut Answered<Vec<Hit>>,
        deadline: Instant,
        timeline: Option<&Arc<Timeline>>,
    ) -> Result<(), SubmitError> {
        let queries = unproven.iter().map(|(_, query)| FullPassQuery::of_search(query)).collect();
        let proved = self.full_pass(account, queries, deadline, timeline).await?;
        for ((index, _), proved) in unproven.into_iter().zip(proved.responses) {
            answer.responses[index] = proved.hits;
        }
        answer.queued += proved.queued;
        answer.device += proved.device;
        Ok(())
    }

    /// As [`submit`](Self::submit), for queries that take a full pass. They wait in a lane of their
    /// own.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub async fn full_pass(
        &self,
        account: &Arc<Account>,
        queries: Vec<FullPassQuery>,
        deadline: Instant,
        timeline: Option<&Arc<Timeline>>,
    ) -> Result<Answered<FullPassAnswer>, SubmitError> {
        self.full_pass.submit(account, queries, deadline, timeline).await
    }

    /// As [`submit`](Self::submit), for the class scores of some texts. They wait in a lane of
    /// their own.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub async fn classify(
        &self,
        account: &Arc<Account>,
        texts: Vec<TokenText>,
        deadline: Instant,
        timeline: Option<&Arc<Timeline>>,
    ) -> Result<Answered<Vec<f64>>, SubmitError> {
        self.classify.submit(account, texts, deadline, timeline).await
    }

    /// As [`submit`](Self::submit), for the terms of some texts, best first. They wait in a lane of
    /// their own.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub async fn expand(
        &self,
        account: &Arc<Account>,
        texts: Vec<Expansion>,
        deadline: Instant,
        timeline: Option<&Arc<Timeline>>,
    ) -> Result<Answered<Vec<Term>>, SubmitError> {
        let (parts, terms) = self.expand.workload().parts(texts);
        let Answered { queued, device, .. } =
            self.expand.submit(account, parts, deadline, timeline).await?;
        let responses = terms.into_iter().map(TermsOfText::take).collect();
        Ok(Answered { responses, queued, device })
    }

    /// As [`submit`](Self::submit), through the slot that is kept for readiness checks. Only one
    /// may be under way: a second takes the slot of the first.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), but never because the queue is full.
    pub async fn submit_probe(
        &self,
        query: Query,
        deadline: Instant,
    ) -> Result<Answered<Vec<Hit>>, SubmitError> {
        let (mut answer, unproven) = split(self.search.probe(query, deadline).await?);
        for (index, query) in unproven {
            let full_pass = FullPassQuery::of_search(&query);
            let mut proved = self.full_pass.probe(full_pass, deadline).await?;
            let proved = proved.responses.pop();
            answer.responses[index] = proved.map(|found| found.hits).unwrap_or_default();
        }
        Ok(answer)
    }

    /// As [`submit_probe`](Self::submit_probe), for a text.
    ///
    /// # Errors
    /// As [`submit_probe`](Self::submit_probe).
    pub async fn classify_probe(
        &self,
        text: TokenText,
        deadline: Instant,
    ) -> Result<Vec<f64>, SubmitError> {
        let answered = self.classify.probe(text, deadline).await?;
        Ok(answered.responses.into_iter().next().unwrap_or_default())
    }

    /// The state of all engines together.
    pub fn engine_state(&self) -> DeviceState {
        self.search.state()
    }

    /// The state of each engine.
    pub fn replicas(&self) -> Vec<ReplicaState> {
        self.search.replicas()
    }

    /// What the queue and its engines have done so far.
    pub fn statistics(&self) -> QueueStatistics {
        QueueStatistics {
            searches: self.search.statistics(),
            full_passes: self.full_pass.statistics(),
            classifications: self.classify.statistics(),
            expansions: self.expand.statistics(),
            counted: self.search.counted(),
        }
    }
}

/// What was found, and the queries that a search can't answer, with their indices.
#[inline]
fn split(found: Answered<SearchResponse>) -> (Answered<Vec<Hit>>, Vec<(usize, Query)>) {
    let Answered { responses, queued, device } = found;
    let mut unproven = Vec::new();
    let hits = responses.into_iter().enumerate().map(|(index, found)| match found {
        SearchResponse::Hits(hits) => hits,
        SearchResponse::Unproven(query) => {
            unproven.push((index, *query));
            Vec::new()
        }
    });
    let responses = hits.collect();
    (Answered { responses, queued, device }, unproven)
}

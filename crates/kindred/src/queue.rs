//! The queue in front of a model's engine: searches and full passes, as lanes of one scheduler.

use std::fmt::Display;
use std::time::{Duration, Instant};

use contract::workload::{Classify, Costs, Expand, FullPass, Search, SearchResponse};
use contract::{Engine, FullPassQuery, Hit, Query, TokenText};
use scheduler::{Counted, Lane, LaneStatistics, Scheduler, StartError};
use tokio::runtime;

pub use scheduler::{
    Answered, DeviceState, DeviceThreads, EngineLost, JobTimes, Limits, NotRetired, PassTimes,
    ReplicaState, Replicas, SubmitError, Timeline, Until,
};

/// The callers' end of the queue. Clones share it; when the last is gone the engine's thread ends.
#[derive(Clone)]
pub struct QueueHandle {
    pub(crate) search: Lane<Search>,
    pub(crate) full_pass: Lane<FullPass>,
    pub(crate) classify: Lane<Classify>,
    pub(crate) expand: Lane<Expand>,
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
/// maker is called again. `within` bounds the wait. A search pass takes at most `max_batch` queries;
/// the engine may prefer fewer.
///
/// # Errors
/// If a thread can't be started or an engine that is waited for can't be made.
pub fn start<F, E>(
    limits: Limits,
    max_batch: usize,
    timer: &runtime::Handle,
    until: Until,
    within: Option<Duration>,
    makers: Vec<F>,
) -> Result<(QueueHandle, DeviceThreads), StartError<E>>
where
    F: FnMut() -> Result<Box<dyn Engine>, E> + Send + 'static,
    E: Display + Send + 'static,
{
    let mut scheduler = Scheduler::<dyn Engine>::new(limits);
    let costs = Costs::new(limits.capacity_slots);
    let search = scheduler.lane(Search { max_batch, costs: costs.clone() });
    let full_pass = scheduler.lane(FullPass { costs: costs.clone() });
    let classify = scheduler.lane(Classify);
    let expand = scheduler.lane(Expand { max_batch, costs: costs.clone() });
    let telling = |mut make: F| {
        let costs = costs.clone();
        move || {
            let engine = make()?;
            costs.set(engine.usual_costs());
            Ok::<_, E>(engine)
        }
    };
    // Each tells admission what requests cost its engine.
    let makers = makers.into_iter().map(telling).collect();
    let queue = QueueHandle { search, full_pass, classify, expand };
    Ok((queue, scheduler.start(timer, until, within, makers)?))
}

impl QueueHandle {
    /// Searches through the slot that is kept for readiness checks. Only one may be under way: a
    /// second takes the slot of the first.
    ///
    /// # Errors
    /// If there is no working engine, the deadline passes or the engine fails.
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
pub(crate) fn split(found: Answered<SearchResponse>) -> (Answered<Vec<Hit>>, Vec<(usize, Query)>) {
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

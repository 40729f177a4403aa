//! Checked queries through the queue and what comes back.

use std::time::{Duration, Instant};

use contract::{FullPassQuery, Hit, Query, RankedRow};

use super::ApiError;
use super::answer::{Neighbors, Notes};
use super::aside::{Work, goes_on, stage};
use super::explain::Explanation;
use super::fold_case::Fold;
use super::formula::Ask;
use super::request::{Explain, Prepared};
use super::server_timing::Timing;
use crate::models::{Call, ServedModel};
use crate::workers::Patience;
use kindred::queue::SubmitError;
use scheduler::account::Held;

/// How many times as many hits are asked for when those that came, folded, were too few.
const GROWTH: usize = 4;

/// What was found for one query.
#[derive(Debug)]
pub(super) struct Found {
    hits: Vec<Hit>,
    with_vectors: bool,
    notes: Notes,
    explanation: Option<Box<Explanation>>,
}

impl Found {
    /// As it is to be written.
    pub(super) fn neighbors<'a>(&'a self, served: &'a ServedModel) -> Neighbors<'a> {
        Neighbors {
            served,
            hits: &self.hits,
            with_vectors: self.with_vectors,
            notes: &self.notes,
            explanation: self.explanation.as_deref(),
        }
    }

    fn set_inputs(&mut self, inputs: Vec<RankedRow>) {
        if let Some(explanation) = &mut self.explanation {
            explanation.inputs = inputs;
        }
    }
}

/// Asks one query. What it was found and how long that took.
pub(super) async fn search_one(
    call: &Call,
    prepared: Prepared,
    deadline: Instant,
    room: &mut Option<Held>,
) -> Result<(Found, Timing), ApiError> {
    let (query, with_vectors, notes) = match prepared {
        // The plain case, by the hundred thousand.
        Prepared { ask: Ask::Search(query), with_vectors, notes, fold: None, explain: None } => {
            (query, with_vectors, notes)
        }
        prepared => {
            let (mut found, timing) =
                Box::pin(search(call, vec![prepared], deadline, room)).await?;
            return Ok((found.pop().expect("one for each query"), timing));
        }
    };
    let answered = call.queue.submit(call.account(), vec![query], deadline).await;
    let mut answer = submitted(call, answered)?;
    let hits = answer.hits.pop().expect("the engine answers every query");
    let found = Found { hits, with_vectors, notes, explanation: None };
    Ok((found, Timing { queue: answer.queued, engine: answer.engine, ..Timing::default() }))
}

/// Asks all of them together. What was found for each, in their order, and how long that took.
pub(super) async fn search(
    call: &Call,
    prepared: Vec<Prepared>,
    deadline: Instant,
    room: &mut Option<Held>,
) -> Result<(Vec<Found>, Timing), ApiError> {
    let mut round = Round::default();
    let mut folding = Vec::new();
    let mut found = Vec::with_capacity(prepared.len());
    for (place, prepared) in prepared.into_iter().enumerate() {
        let Prepared { ask, with_vectors, notes, fold, explain } = prepared;
        if let Some(fold) = fold {
            folding.push(Folding { place, ask: ask.clone(), fold: *fold });
        }
        round.ask_for_hits(place, ask);
        let explanation = explain.map(|explain| {
            let Explain { formula, inputs } = *explain;
            if let Some(inputs) = inputs {
                round.full_passes.push((Goal::Inputs(place), inputs));
            }
            Box::new(Explanation { formula, inputs: Vec::new() })
        });
        found.push(Found { hits: Vec::new(), with_vectors, notes, explanation });
    }
    let mut timing = round.answer(call, deadline, &mut found).await?;
    while !folding.is_empty() {
        let asked = folding.into_iter().map(|one| {
            let hits = std::mem::take(&mut found[one.place].hits);
            (one, hits)
        });
        let asked: Vec<(Folding, Vec<Hit>)> = asked.collect();
        let hits: usize = asked.iter().map(|(_, hits)| hits.len()).sum();
        if let Some(room) = room {
            // Later rounds ask for more than was counted at first.
            room.set(room.bytes().max((hits * size_of::<Hit>()) as u64));
        }
        let served = call.served().clone();
        let fold = move |patience: &Patience| fold_all(&served, asked, patience);
        // A word in lower case, and looked for twice.
        let folded = stage(call, Work::of_writing(4 * hits), deadline, fold).await?;
        let mut round = Round::default();
        folding = Vec::new();
        for folded in folded {
            match folded {
                Folded::Done(place, kept) => found[place].hits = kept,
                Folded::TooFew(one) => {
                    let ask = one.ask.clone().with_k(one.ask.k().saturating_mul(GROWTH));
                    round.ask_for_hits(one.place, ask.clone());
                    folding.push(Folding { ask, ..one });
                }
            }
        }
        let more = round.answer(call, deadline, &mut found).await?;
        timing.engine += more.engine;
    }
    Ok((found, timing))
}

/// A query whose hits are to be folded, and which is asked for more of them until enough are left.
struct Folding {
    place: usize,
    ask: Ask,
    fold: Fold,
}

/// What became of a query's hits.
enum Folded {
    /// Its answer: enough, or all that there is.
    Done(usize, Vec<Hit>),
    /// It has to be asked for more of them.
    TooFew(Folding),
}

/// What is left of each query's hits. What is done is dropped here: it may have a thousand words to leave out.
fn fold_all(
    served: &ServedModel,
    asked: Vec<(Folding, Vec<Hit>)>,
    patience: &Patience,
) -> Result<Vec<Folded>, ApiError> {
    let folded = asked.into_iter().map(|(one, hits)| {
        goes_on(patience)?;
        let kept = one.fold.keep(served.model.words(), &hits);
        let is_done = kept.len() == one.fold.k || hits.len() < one.ask.k();
        Ok(if is_done { Folded::Done(one.place, kept) } else { Folded::TooFew(one) })
    });
    folded.collect()
}

/// Queries of both kinds that go to the queue together.
#[derive(Default)]
struct Round {
    searches: Vec<(usize, Query)>,
    full_passes: Vec<(Goal, FullPassQuery)>,
}

/// What a full pass is for: the hits of the query in this place, or how its words rank.
enum Goal {
    Hits(usize),
    Inputs(usize),
}

impl Round {
    fn ask_for_hits(&mut self, place: usize, ask: Ask) {
        match ask {
            Ask::Search(query) => self.searches.push((place, query)),
            Ask::FullPass(query) => self.full_passes.push((Goal::Hits(place), *query)),
        }
    }

    /// Puts the answers where they belong.
    async fn answer(
        self,
        call: &Call,
        deadline: Instant,
        found: &mut [Found],
    ) -> Result<Timing, ApiError> {
        let (places, queries): (Vec<_>, Vec<_>) = self.searches.into_iter().unzip();
        let (goals, full_passes): (Vec<_>, Vec<_>) = self.full_passes.into_iter().unzip();
        let (queue, account) = (&call.queue, call.account());
        let searched = async { submitted(call, queue.submit(account, queries, deadline).await) };
        let passed =
            async { submitted(call, queue.full_pass(account, full_passes, deadline).await) };
        let (searched, passed) = tokio::try_join!(searched, passed)?;
        for (place, hits) in places.into_iter().zip(searched.hits) {
            found[place].hits = hits;
        }
        for (goal, answer) in goals.into_iter().zip(passed.answers) {
            match goal {
                Goal::Hits(place) => found[place].hits = answer.hits,
                Goal::Inputs(place) => found[place].set_inputs(answer.ranks),
            }
        }
        Ok(Timing {
            queue: searched.queued.max(passed.queued),
            engine: searched.engine + passed.engine,
            ..Timing::default()
        })
    }
}

/// Rounded up, and not so many that a client gives up.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + 1).min(60)
}

/// What the queue said, or the error for it.
pub(super) fn submitted<T>(call: &Call, answer: Result<T, SubmitError>) -> Result<T, ApiError> {
    answer.map_err(|e| match e {
        SubmitError::Full { retry_after, .. } => ApiError::QueueFull {
            reason: e.to_string(),
            retry_after_seconds: whole_seconds(retry_after),
        },
        SubmitError::EngineRestarting { retry_after } => {
            ApiError::EngineRestarting { retry_after_seconds: whole_seconds(retry_after) }
        }
        SubmitError::DeadlinePassed => ApiError::DeadlinePassed,
        SubmitError::EngineFailed => ApiError::EngineFailed,
        SubmitError::EngineGone if call.service().is_draining() => ApiError::Draining,
        SubmitError::EngineGone => ApiError::EngineGone,
    })
}

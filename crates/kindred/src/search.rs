//! From prepared queries to what was found, in as many rounds through the queue as picking the
//! neighbours among the hits needs.

use std::mem;

use contract::{FullPassQuery, Hit, Query};

use crate::asking::{Asking, Times};
use crate::question::{Explanation, Included, Next, Notes, Pick, Prepared};
use crate::queue::SubmitError;
use crate::rows::Rows;

/// What was found for one query.
#[derive(Debug)]
pub struct SearchResult {
    /// The neighbours, best first.
    pub hits: Vec<Hit>,
    /// The parts of each neighbour in the answer.
    pub included: Included,
    /// What the answer says of the words that were asked for.
    pub notes: Notes,
    /// What explains the scores, if that was asked for.
    pub explanation: Option<Box<Explanation>>,
}

/// A search for several queries together. Each [`round`](Self::round) asks the open queries. While
/// it returns hits to pick from, the caller does so on a thread where that delays nobody, gives the
/// neighbours [back](Self::take) and runs another round.
///
/// A single query whose hits are all neighbours, without explanation, needs none of this: see
/// [`Asking::search`].
pub struct Search {
    /// The open queries, with their indices.
    searches: Vec<(usize, Query)>,
    /// The same, for the ranks of their own words.
    ranks: Vec<(usize, FullPassQuery)>,
    /// Open queries whose neighbours no search has found.
    full_passes: Vec<(usize, FullPassQuery)>,
    picking: Vec<Picking>,
    found: Vec<SearchResult>,
    /// `None` before the first round.
    times: Option<Times>,
}

/// A query of whose hits not all are neighbours; it is asked again for more until enough are.
struct Picking {
    index: usize,
    query: Query,
    pick: Pick,
}

impl Search {
    /// A search for these queries.
    pub fn new(prepared: Vec<Prepared>) -> Self {
        let (mut searches, mut all_ranks, mut picking) = (Vec::new(), Vec::new(), Vec::new());
        let mut found = Vec::with_capacity(prepared.len());
        for (index, prepared) in prepared.into_iter().enumerate() {
            let Prepared { query, included, notes, pick, explanation, ranks } = prepared;
            if let Some(pick) = pick {
                picking.push(Picking { index, query: query.clone(), pick: *pick });
            }
            searches.push((index, query));
            all_ranks.extend(ranks.map(|ranks| (index, *ranks)));
            let hits = Vec::new();
            found.push(SearchResult { hits, included, notes, explanation });
        }
        let (ranks, full_passes) = (all_ranks, Vec::new());
        Self { searches, ranks, full_passes, picking, found, times: None }
    }

    /// Asks the open queries. `Some`: hits to pick from before the next round. `None`: the search
    /// is done.
    ///
    /// # Errors
    /// If the queue is full, the deadline passes or the engine fails.
    pub async fn round(&mut self, asking: Asking<'_>) -> Result<Option<ToPick>, SubmitError> {
        if self.searches.is_empty() && self.ranks.is_empty() && self.full_passes.is_empty() {
            return Ok(None);
        }
        let found = &mut self.found;
        let (searched, queries): (Vec<_>, Vec<_>) = self.searches.drain(..).unzip();
        let (ranked, mut full_passes): (Vec<_>, Vec<_>) = self.ranks.drain(..).unzip();
        let (proved, others): (Vec<_>, Vec<_>) = self.full_passes.drain(..).unzip();
        full_passes.extend(others);
        let (hits, answers, times) = asking.both(queries, full_passes).await?;
        let mut answers = answers.into_iter();
        for (index, hits) in searched.into_iter().zip(hits) {
            found[index].hits = hits;
        }
        for (index, answer) in ranked.into_iter().zip(answers.by_ref()) {
            if let Some(explanation) = &mut found[index].explanation {
                explanation.inputs = answer.ranks;
            }
        }
        for (index, answer) in proved.into_iter().zip(answers) {
            found[index].hits = answer.hits;
        }
        match &mut self.times {
            Some(all) => all.engine += times.engine,
            none => *none = Some(times),
        }
        let with_hits = self.picking.drain(..).map(|one| {
            let hits = mem::take(&mut found[one.index].hits);
            (one, hits)
        });
        let to_pick: Vec<_> = with_hits.collect();
        Ok((!to_pick.is_empty()).then_some(ToPick(to_pick)))
    }

    /// Takes the neighbours back. Queries with too few of them are open again.
    pub fn take(&mut self, picked: Picked) {
        for one in picked.0 {
            match one {
                Ok((index, neighbors)) => self.found[index].hits = neighbors,
                Err(mut one) => {
                    match one.pick.next(&one.query) {
                        Next::Search(k) => {
                            one.query.k = k;
                            self.searches.push((one.index, one.query.clone()));
                        }
                        Next::FullPass(query) => self.full_passes.push((one.index, *query)),
                    }
                    self.picking.push(one);
                }
            }
        }
    }

    /// What was found for each query, in their order, and where the time went.
    pub fn done(self) -> (Vec<SearchResult>, Times) {
        (self.found, self.times.unwrap_or_default())
    }
}

/// Hits of which some are neighbours.
pub struct ToPick(Vec<(Picking, Vec<Hit>)>);

/// The neighbours of each query, with its index: enough, or all that there are. Or a query that has
/// to be asked again for more.
pub struct Picked(Vec<Result<(usize, Vec<Hit>), Picking>>);

impl ToPick {
    /// How many hits: each takes at most a word to lower case and two look-ups.
    pub fn hits(&self) -> usize {
        self.0.iter().map(|(_, hits)| hits.len()).sum()
    }

    /// Picks each query's neighbours. `go_on` is asked before each query; its error ends the work.
    /// Finished queries are dropped here: they may have a thousand words to exclude.
    ///
    /// # Errors
    /// As `go_on` says.
    pub fn pick<E>(self, model: &dyn Rows, go_on: impl Fn() -> Result<(), E>) -> Result<Picked, E> {
        let picked = self.0.into_iter().map(|(one, hits)| {
            go_on()?;
            let neighbors = one.pick.of(model, &hits);
            let is_done = neighbors.len() == one.pick.k || hits.len() < one.query.k;
            Ok(if is_done { Ok((one.index, neighbors)) } else { Err(one) })
        });
        picked.collect::<Result<_, E>>().map(Picked)
    }
}

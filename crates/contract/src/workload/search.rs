//! Searches as a workload: one pass answers its queries, in one slice.

use super::{Costs, PassError, Slice, Workload};
use crate::{Engine, Hit, Query};

/// Searches. Costs are counted in plain queries (k = 10, all rows).
#[derive(Debug, Clone)]
pub struct Search {
    /// Maximum cost of one pass; the engine may prefer less.
    pub max_batch: usize,
    /// What a search costs at admission.
    pub costs: Costs,
}

/// What a search found for one query.
#[derive(Debug, Clone)]
pub enum SearchResponse {
    /// Its best rows, best first.
    Hits(Vec<Hit>),
    /// Nothing yet: see
    /// [`SearchEngine::search_overlapped`](crate::SearchEngine::search_overlapped). A full pass
    /// answers the query.
    Unproven(Box<Query>),
}

impl Workload for Search {
    type Device = dyn Engine;
    type Request = Query;
    type Response = SearchResponse;
    type Gathered = ();
    type Pass = ();

    fn name(&self) -> &'static str {
        "a search"
    }

    fn slots(&self, query: &Query) -> usize {
        self.costs.search(query)
    }

    fn cost(&self, engine: &Self::Device, query: &Query) -> usize {
        engine.search_cost(query)
    }

    fn room(&self, engine: &Self::Device, waiting: usize) -> usize {
        engine.preferred_batch(waiting).min(self.max_batch).max(1)
    }

    fn run(
        &self,
        engine: &mut Self::Device,
        queries: &[&Query],
        (): &mut (),
        slice: Slice<'_>,
    ) -> Result<Option<Vec<SearchResponse>>, PassError> {
        Ok(Some(responses(engine.search_overlapped(queries, slice.meanwhile)?, queries)))
    }

    fn start(
        &self,
        engine: &mut Self::Device,
        queries: &[&Query],
        _: bool,
    ) -> Result<bool, PassError> {
        Ok(engine.start_search(queries)?)
    }

    fn finish(
        &self,
        engine: &mut Self::Device,
        queries: &[&Query],
    ) -> Result<Vec<SearchResponse>, PassError> {
        Ok(responses(engine.finish_search(queries)?, queries))
    }
}

/// As many as the engine found; the scheduler fails a pass in which some are missing.
fn responses(found: Vec<Option<Vec<Hit>>>, queries: &[&Query]) -> Vec<SearchResponse> {
    let one = |(found, query): (Option<Vec<Hit>>, &&Query)| match found {
        Some(hits) => SearchResponse::Hits(hits),
        None => SearchResponse::Unproven(Box::new((*query).clone())),
    };
    found.into_iter().zip(queries).map(one).collect()
}

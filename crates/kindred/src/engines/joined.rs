//! The GPU's engine with the CPU's full scan beside it.

use contract::{
    Engine, EngineDescription, EngineError, FullPassPart, FullPassQuery, Hit, Query, QueryBatch,
};
use cpu_core::FullScanEngine;

/// An engine that searches and counts ranks, such as the GPU's, and the host's full scan, which makes all other full passes
/// for it. Both are exact, so their answers are the same.
pub(super) struct Joined {
    search: Box<dyn Engine>,
    host: FullScanEngine,
    full_pass_queries: u64,
}

impl Joined {
    /// Both for the same model.
    pub(super) fn new(search: Box<dyn Engine>, host: FullScanEngine) -> Self {
        Self { search, host, full_pass_queries: 0 }
    }
}

impl Engine for Joined {
    fn description(&self) -> EngineDescription {
        self.search.description()
    }

    fn preferred_batch(&self, waiting: usize) -> usize {
        self.search.preferred_batch(waiting)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.search.counters();
        counters.push(("full_pass_queries", self.full_pass_queries));
        counters
    }

    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
        let found = self.search_overlapped(batch, &mut || ())?;
        batch.complete(found, |rest| self.host.search(rest))
    }

    fn search_overlapped(
        &mut self,
        batch: &QueryBatch<'_>,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        self.search.search_overlapped(batch, meanwhile)
    }

    fn overlaps(&self) -> bool {
        self.search.overlaps()
    }

    fn start_search(&mut self, batch: &QueryBatch<'_>) -> Result<bool, EngineError> {
        self.search.start_search(batch)
    }

    fn wait_until_almost_over(&mut self) -> Result<(), EngineError> {
        self.search.wait_until_almost_over()
    }

    fn finish_search(
        &mut self,
        batch: &QueryBatch<'_>,
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        self.search.finish_search(batch)
    }

    fn search_cost(&self, query: &Query) -> usize {
        self.search.search_cost(query)
    }

    fn full_pass_vectors(&self) -> usize {
        self.search.full_pass_vectors()
    }

    fn full_pass_cost(&self, query: &FullPassQuery) -> usize {
        self.search.full_pass_cost(query)
    }

    fn count_ranks(
        &mut self,
        parts: &mut [FullPassPart],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), EngineError> {
        self.search.count_ranks(parts, meanwhile)
    }

    fn start_ranks(&mut self, queries: &[&FullPassQuery]) -> Result<bool, EngineError> {
        self.search.start_ranks(queries)
    }

    fn finish_ranks(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassPart>, EngineError> {
        self.search.finish_ranks(queries)
    }

    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        let next = self.host.full_pass_part(parts, from, go_on)?;
        if next.is_none() {
            let by_host = parts.iter().filter(|part| !part.is_answered());
            self.full_pass_queries += by_host.count() as u64;
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contract::{Filter, FullPassQuery, QueryVector, Row, Scoring};
    use model_store::ModelStore;

    use super::*;

    /// Finds row 7 for every query, before and after anything else.
    struct SearchOnly;

    impl Engine for SearchOnly {
        fn description(&self) -> EngineDescription {
            EngineDescription { name: "search-only", detail: String::new() }
        }

        fn preferred_batch(&self, waiting: usize) -> usize {
            waiting / 2
        }

        fn overlaps(&self) -> bool {
            true
        }

        fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
            Ok(vec![vec![Hit { row: Row(7), score: 1.0 }]; batch.len()])
        }
    }

    #[test]
    fn the_one_searches_and_the_other_makes_full_passes() {
        let rows = [("a", &[1.0f32, 0.0][..]), ("b", &[1.0, 1.0]), ("c", &[0.0, 1.0])];
        let model = Arc::new(ModelStore::from_rows("three", 2, rows).unwrap());
        let table = model.table();
        let scoring = Scoring::three_cos_mul(&table, &[Row(0)], &[]).unwrap();
        let full = FullPassQuery::new(scoring, 1, Filter::excluding(vec![Row(0)]), vec![Row(2)]);
        let alone = SearchOnly.full_pass(&[&full]).unwrap_err();
        assert_eq!(alone, EngineError::SearchOnly("search-only"));

        let host = FullScanEngine::new(model.clone(), 1).unwrap();
        let mut joined = Joined::new(Box::new(SearchOnly), host);
        let answer = joined.full_pass(&[&full]).unwrap().remove(0);
        assert_eq!((answer.hits[0].row, answer.ranks[0].rank), (Row(1), Some(2)));
        assert_eq!(joined.counters(), [("full_pass_queries", 1)]);
        let query = Query::new(&table, QueryVector::Row(Row(0)), 1, Filter::default()).unwrap();
        let found = joined.search(&std::iter::once(&query).collect()).unwrap();
        assert_eq!(found[0][0].row, Row(7));
        assert_eq!((joined.preferred_batch(8), joined.description().name), (4, "search-only"));
        assert!(joined.overlaps());
    }
}

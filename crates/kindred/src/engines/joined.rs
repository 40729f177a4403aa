//! The GPU's engine with the CPU's full scan beside it.

use std::sync::Arc;

use contract::{
    Engine, EngineDescription, EngineError, FullPassPart, FullPassQuery, Hit, Query, QueryBatch,
    UsualCosts,
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

    fn usual_costs(&self) -> Option<Arc<dyn UsualCosts>> {
        self.search.usual_costs()
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

    use contract::workload::{FullPass, Slice};
    use contract::{Filter, FullPassAnswer, FullPassQuery, QueryVector, Row, Scoring, Workload};
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

    /// Says of every ranked row, for queries without hits, that 41 rows are before it.
    struct CountsRanks(Arc<ModelStore>);

    impl CountsRanks {
        fn answer(&self, part: &mut FullPassPart) {
            if part.query().k() == 0 {
                let rows = part.distinct_ranked().len();
                part.answer_ranks(&self.0.table(), &vec![0.25; rows], &vec![41; rows]);
            }
        }
    }

    impl Engine for CountsRanks {
        fn description(&self) -> EngineDescription {
            EngineDescription { name: "counts-ranks", detail: String::new() }
        }

        fn preferred_batch(&self, waiting: usize) -> usize {
            waiting
        }

        fn search(&mut self, _: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
            unreachable!("nobody searches")
        }

        fn count_ranks(
            &mut self,
            parts: &mut [FullPassPart],
            meanwhile: &mut dyn FnMut(),
        ) -> Result<(), EngineError> {
            parts.iter_mut().for_each(|part| self.answer(part));
            meanwhile();
            Ok(())
        }

        fn start_ranks(&mut self, queries: &[&FullPassQuery]) -> Result<bool, EngineError> {
            Ok(queries.len() > 1)
        }

        fn finish_ranks(
            &mut self,
            queries: &[&FullPassQuery],
        ) -> Result<Vec<FullPassPart>, EngineError> {
            let parts = queries.iter().map(|&query| FullPassPart::new(query.clone()));
            let mut parts: Vec<FullPassPart> = parts.collect();
            parts.iter_mut().for_each(|part| self.answer(part));
            Ok(parts)
        }
    }

    #[test]
    fn the_host_makes_full_passes_only_for_what_the_device_has_not_counted() {
        let rows = [("a", &[1.0f32, 0.0][..]), ("b", &[1.0, 1.0]), ("c", &[0.0, 1.0])];
        let model = Arc::new(ModelStore::from_rows("three", 2, rows).unwrap());
        let ranked = |k, row| {
            let scoring = Scoring::cosine(&model.table(), QueryVector::Row(Row(0))).unwrap();
            FullPassQuery::new(scoring, k, Filter::excluding(vec![Row(0)]), vec![Row(row)])
        };
        let queries = [ranked(0, 2), ranked(1, 2), ranked(0, 1)];
        let queries: Vec<&FullPassQuery> = queries.iter().collect();
        let host = FullScanEngine::new(model.clone(), 1).unwrap();
        let mut joined = Joined::new(Box::new(CountsRanks(model.clone())), host);
        let ranks = |answers: Vec<FullPassAnswer>| -> Vec<Option<u32>> {
            answers.iter().map(|answer| answer.ranks[0].rank).collect()
        };
        let expected = [Some(42), Some(2), Some(42)];
        assert_eq!(ranks(joined.full_pass(&queries).unwrap()), expected);
        assert_eq!(joined.counters(), [("full_pass_queries", 1)]);

        // As the scheduler runs them: in slices, and started.
        let (mut handed_out, mut state) = (0, <FullPass as Workload>::Pass::default());
        let slice = Slice { go_on: &|| true, meanwhile: &mut || handed_out += 1 };
        let engine: &mut dyn Engine = &mut joined;
        let workload = FullPass::default();
        let answers = workload.run(engine, &queries, &mut state, slice).unwrap();
        assert_eq!(ranks(answers.expect("one slice")), expected);
        assert!(handed_out > 0);
        assert_eq!(workload.start(engine, &queries[..1]), Ok(false));
        assert_eq!(workload.start(engine, &queries), Ok(true));
        assert_eq!(ranks(workload.finish(engine, &queries).unwrap()), expected);
    }
}

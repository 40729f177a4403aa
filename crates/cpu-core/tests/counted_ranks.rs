//! Full passes of an engine that counts some ranks by itself, as a GPU does: it scores rows only
//! for the others.

use std::sync::Arc;

use contract::workload::{FullPass, Slice};
use contract::{
    Device, Engine, EngineDescription, EngineError, Filter, FullPassAnswer, FullPassEngine,
    FullPassPart, FullPassQuery, HeadEngine, Hit, Query, QueryVector, Row, Scoring, SearchEngine,
    Workload,
};
use cpu_core::FullScanEngine;
use model_store::ModelStore;

/// Says of every ranked row, for queries without hits, that 41 rows are before it. Everything else
/// is the full scan's.
struct CountsRanks {
    model: Arc<ModelStore>,
    rest: FullScanEngine,
    /// Queries of full passes that it did not count.
    scored: usize,
}

impl CountsRanks {
    fn answer(&self, part: &mut FullPassPart) {
        if part.query().k == 0 {
            let rows = part.distinct_ranked().len();
            part.answer_ranks(&self.model.table(), &vec![0.25; rows], &vec![41; rows]);
        }
    }
}

impl Device for CountsRanks {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: "counts-ranks", detail: String::new() }
    }
}

impl SearchEngine for CountsRanks {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting
    }

    fn search(&mut self, _: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        unreachable!("nobody searches")
    }
}

impl FullPassEngine for CountsRanks {
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        parts.iter_mut().filter(|part| !part.is_answered()).for_each(|part| self.answer(part));
        let next = self.rest.full_pass_part(parts, from, go_on)?;
        if next.is_none() {
            self.scored += parts.iter().filter(|part| !part.is_answered()).count();
        }
        Ok(next)
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

impl HeadEngine for CountsRanks {}

fn ranks(answers: Vec<FullPassAnswer>) -> Vec<Option<u32>> {
    answers.iter().map(|answer| answer.ranks[0].rank).collect()
}

#[test]
fn only_what_the_device_has_not_counted_is_scored() {
    let rows = [("a", &[1.0f32, 0.0][..]), ("b", &[1.0, 1.0]), ("c", &[0.0, 1.0])];
    let model = Arc::new(ModelStore::from_rows("three", 2, rows).unwrap());
    let ranked = |k, row| {
        let scoring = Scoring::vector(&model.table(), QueryVector::Row(Row(0))).unwrap();
        FullPassQuery::new(scoring, k, Filter::excluding(vec![Row(0)]), vec![Row(row)])
    };
    let queries = [ranked(0, 2), ranked(1, 2), ranked(0, 1)];
    let queries: Vec<&FullPassQuery> = queries.iter().collect();
    let rest = FullScanEngine::new(model.clone(), 1).unwrap();
    let mut engine = CountsRanks { model: model.clone(), rest, scored: 0 };
    let expected = [Some(42), Some(2), Some(42)];
    assert_eq!(ranks(engine.full_pass(&queries).unwrap()), expected);
    assert_eq!(engine.scored, 1);

    // As the scheduler runs them: in slices, and started.
    let (mut handed_out, mut state) = (0, <FullPass as Workload>::Pass::default());
    let slice = Slice { go_on: &|| true, meanwhile: &mut || handed_out += 1 };
    let device: &mut dyn Engine = &mut engine;
    let workload = FullPass::default();
    let answers = workload.run(device, &queries, &mut state, slice).unwrap();
    assert_eq!(ranks(answers.expect("one slice")), expected);
    assert!(handed_out > 0);
    assert!(!workload.start(device, &queries[..1], false).unwrap());
    assert!(!workload.start(device, &queries, true).unwrap(), "it is long");
    assert!(workload.start(device, &queries, false).unwrap());
    assert_eq!(ranks(workload.finish(device, &queries).unwrap()), expected);
}

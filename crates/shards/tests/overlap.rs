//! Searches that are started before the last one is over: the same answers, also if some shards
//! can't start.

use std::collections::VecDeque;
use std::sync::Arc;

use contract::{
    Device, Engine, EngineDescription, EngineError, Filter, FullPassEngine, HasTable, HeadEngine,
    Hit, Query, QueryVector, Row, RowSet, SearchEngine,
};
use cpu_core::ReferenceEngine;
use model_store::ModelStore;
use shards::{Shards, split_evenly};

use crate::support::{bits, model};

/// How many searches a device has under way at most.
const MOST: usize = 2;

/// Keeps the rules of started searches, and starts only some: at most [`MOST`], and none of those
/// that the random numbers refuse.
struct Overlapping {
    engine: ReferenceEngine,
    started: VecDeque<Vec<Vec<Hit>>>,
    random: fastrand::Rng,
    /// In percent.
    refuses: u32,
}

type Found = Result<Vec<Option<Vec<Hit>>>, EngineError>;

impl Device for Overlapping {
    fn description(&self) -> EngineDescription {
        self.engine.description()
    }

    fn overlaps(&self) -> bool {
        true
    }
}

impl SearchEngine for Overlapping {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        assert!(self.started.is_empty(), "a search was started and not finished");
        self.engine.search(batch)
    }

    fn start_search(&mut self, batch: &[&Query]) -> Result<bool, EngineError> {
        assert!(!batch.is_empty());
        if self.started.len() == MOST || self.random.u32(0..100) < self.refuses {
            return Ok(false);
        }
        self.started.push_back(self.engine.search(batch)?);
        Ok(true)
    }

    fn finish_search(&mut self, batch: &[&Query]) -> Found {
        let found = self.started.pop_front().expect("a search was started");
        assert_eq!(found.len(), batch.len(), "the batch of the first start");
        Ok(found.into_iter().map(Some).collect())
    }
}

impl FullPassEngine for Overlapping {}

impl HeadEngine for Overlapping {}

fn shards(of: &Arc<ModelStore>, count: usize, refuses: u32) -> Shards {
    let make =
        move |index: usize, table: Arc<dyn HasTable>| -> Result<Box<dyn Engine>, EngineError> {
            let random = fastrand::Rng::with_seed(index as u64);
            let (engine, started) = (ReferenceEngine::new(table), VecDeque::new());
            Ok(Box::new(Overlapping { engine, started, random, refuses }))
        };
    Shards::new(of.clone(), split_evenly(of.rows(), count), make).unwrap()
}

/// Some queries; the limit of some leaves shards without any row, and some batches leave shards
/// without any query.
fn batch(of: &ModelStore, random: &mut fastrand::Rng) -> Vec<Query> {
    let limits = [None, Some(1), Some(20), Some(of.rows() as u32)];
    let only_first = random.bool();
    let query = |_| {
        let row = Row(random.u32(0..of.rows() as u32));
        let first_rows = if only_first { Some(1) } else { random.choice(limits).flatten() };
        let filter = Filter::of(RowSet::all().limited(first_rows));
        Query::new(&of.table(), QueryVector::Row(row), 5, filter).unwrap()
    };
    (0..6).map(query).collect()
}

#[test]
fn started_searches_have_the_answers_of_one_engine_whichever_shards_can_start() {
    let mut random = fastrand::Rng::with_seed(3);
    let rows: Vec<Vec<f32>> =
        (0..90).map(|_| (0..4).map(|_| random.f32() - 0.5).collect()).collect();
    let of = Arc::new(model(4, &rows));
    let mut whole = ReferenceEngine::new(of.clone());
    for (count, refuses) in [(1, 0), (2, 0), (3, 0), (2, 30), (4, 30), (3, 90), (3, 100)] {
        let mut shards = shards(&of, count, refuses);
        assert!(shards.overlaps());
        let mut waiting: VecDeque<Vec<Query>> = VecDeque::new();
        let mut starts = 0;
        for turn in 0..300 {
            let asked = batch(&of, &mut random);
            let of_asked: Vec<&Query> = asked.iter().collect();
            let is_started = shards.start_search(&of_asked).unwrap();
            starts += usize::from(is_started);
            shards.wait_until_almost_over().unwrap();
            // As a worker does: one that is not started runs when those before it are finished.
            let most = if is_started && random.bool() { 1 } else { 0 };
            while waiting.len() > most {
                let before = waiting.pop_front().unwrap();
                let batch: Vec<&Query> = before.iter().collect();
                let found = shards.finish_search(&batch).unwrap();
                let found: Vec<Vec<Hit>> = found.into_iter().map(Option::unwrap).collect();
                assert_eq!(bits(&found), bits(&whole.search(&batch).unwrap()), "{count} {turn}");
            }
            if is_started {
                waiting.push_back(asked);
            } else {
                assert_eq!(
                    bits(&shards.search(&of_asked).unwrap()),
                    bits(&whole.search(&of_asked).unwrap())
                );
            }
        }
        assert_eq!(starts == 0, refuses == 100, "{count} {refuses}: {starts}");
    }
}

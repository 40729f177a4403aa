//! What an engine does, counted from outside, on its own thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use model_store::{
    Engine, EngineDescription, EngineError, FullPassAnswer, FullPassQuery, Hit, QueryBatch,
};

use super::counter::{Counter, Durations};
use super::{EngineFigures, Histogram, LaneFigures};

/// Bounds of batch sizes: powers of two up to 1024. The bucket behind them is for larger ones.
const BATCH_BOUNDS: usize = 11;

/// What was counted of an engine and of the jobs in front of it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct EngineRecord {
    searches: Lane,
    full_passes: Lane,
    counters: Mutex<Vec<(&'static str, u64)>>,
    faults: Faults,
}

#[derive(Debug, Default)]
struct Lane {
    passes: Counter,
    queries: Counter,
    batch: [Counter; BATCH_BOUNDS + 1],
    seconds: Durations,
}

/// Written by callers, so not in the engine thread's cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Faults {
    refused: AtomicU64,
    late: AtomicU64,
    failed: AtomicU64,
}

impl EngineRecord {
    /// A job was refused because the queue was full.
    pub fn refused(&self) {
        self.faults.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A job's deadline passed before it was answered.
    pub fn late(&self) {
        self.faults.late.fetch_add(1, Ordering::Relaxed);
    }

    /// A job's pass failed.
    pub fn failed(&self) {
        self.faults.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn note(&self, lane: &Lane, queries: usize, took: Duration, engine: &dyn Engine) {
        lane.passes.add(1);
        lane.queries.add(queries as u64);
        let bucket = queries.max(1).next_power_of_two().trailing_zeros() as usize;
        lane.batch[bucket.min(BATCH_BOUNDS)].add(1);
        lane.seconds.note(took);
        *self.counters.lock().expect("nothing panics while it holds this lock") = engine.counters();
    }

    /// What is known so far; of the model and the queue, others know more.
    pub fn figures(&self) -> EngineFigures {
        let lane = |name, lane: &Lane| {
            let bounds = (0..BATCH_BOUNDS).map(|power| f64::from(1_u32 << power));
            let counts = lane.batch.iter().map(Counter::get);
            let buckets = bounds.chain([f64::INFINITY]).zip(counts).collect();
            let queries = lane.queries.get();
            LaneFigures {
                lane: name,
                passes: lane.passes.get(),
                queries,
                batch: Histogram { buckets, sum: queries as f64 },
                pass_seconds: Histogram::of([&lane.seconds]),
                places_taken: 0,
            }
        };
        let lanes = [lane("search", &self.searches), lane("full_pass", &self.full_passes)];
        let faults = &self.faults;
        EngineFigures {
            lanes,
            refused: faults.refused.load(Ordering::Relaxed),
            late: faults.late.load(Ordering::Relaxed),
            failed: faults.failed.load(Ordering::Relaxed),
            counters: self
                .counters
                .lock()
                .expect("nothing panics while it holds this lock")
                .clone(),
            ..EngineFigures::default()
        }
    }
}

/// The same engine, whose passes are counted. Only one engine at a time may write to a record.
pub fn measured(engine: Box<dyn Engine>, record: Arc<EngineRecord>) -> Box<dyn Engine> {
    Box::new(Measured { engine, record })
}

struct Measured {
    engine: Box<dyn Engine>,
    record: Arc<EngineRecord>,
}

impl Engine for Measured {
    fn description(&self) -> EngineDescription {
        self.engine.description()
    }

    fn preferred_batch(&self, waiting: usize) -> usize {
        self.engine.preferred_batch(waiting)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.engine.counters()
    }

    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
        self.search_meanwhile(batch, &mut || ())
    }

    fn search_meanwhile(
        &mut self,
        batch: &QueryBatch<'_>,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<Hit>>, EngineError> {
        let started = Instant::now();
        let found = self.engine.search_meanwhile(batch, meanwhile);
        self.record.note(&self.record.searches, batch.len(), started.elapsed(), &*self.engine);
        found
    }

    fn full_pass(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassAnswer>, EngineError> {
        let started = Instant::now();
        let found = self.engine.full_pass(queries);
        let (lane, took) = (&self.record.full_passes, started.elapsed());
        self.record.note(lane, queries.len(), took, &*self.engine);
        found
    }
}

#[cfg(test)]
mod tests {
    use cpu_core::{FullScanEngine, Options};
    use model_store::{Filter, ModelStore, Query, QueryVector, Row, Scoring};

    use super::*;

    #[test]
    fn passes_are_counted_by_lane_and_size() {
        let rows = [("a", &[1.0f32, 0.0][..]), ("b", &[1.0, 1.0]), ("c", &[0.0, 1.0])];
        let model = Arc::new(ModelStore::from_rows("three", 2, rows).unwrap());
        let table = model.table();
        let record = Arc::new(EngineRecord::default());
        let engine = cpu_core::CpuEngine::new(model.clone(), Options::default()).unwrap();
        let mut engine = measured(Box::new(engine), record.clone());
        let query = Query::new(&table, QueryVector::Row(Row(0)), 1, Filter::default()).unwrap();
        for size in [1, 2, 3, 1024, 1025] {
            let batch = vec![&query; size].into_iter().collect();
            assert_eq!(engine.search(&batch).unwrap().len(), size);
        }
        let scoring = Scoring::three_cos_mul(&table, &[Row(0)], &[]).unwrap();
        let full = FullPassQuery::new(scoring, 1, Filter::default(), Vec::new());
        engine.full_pass(&[&full, &full]).unwrap();

        let figures = record.figures();
        let [search, full] = &figures.lanes;
        assert_eq!((search.passes, search.queries), (5, 1 + 2 + 3 + 1024 + 1025));
        assert_eq!((full.passes, full.queries), (1, 2));
        let counts: Vec<(f64, u64)> =
            search.batch.buckets.iter().filter(|(_, count)| *count > 0).copied().collect();
        assert_eq!(counts, [(1.0, 1), (2.0, 1), (4.0, 1), (1024.0, 1), (f64::INFINITY, 1)]);
        assert_eq!((search.pass_seconds.count(), full.pass_seconds.count()), (5, 1));
        assert!(figures.counters.contains(&("full_pass_queries", 2)), "{:?}", figures.counters);
    }

    #[test]
    fn a_measured_engine_is_the_same_to_its_owner() {
        let model = Arc::new(ModelStore::from_rows("one", 1, [("a", &[1.0f32][..])]).unwrap());
        let plain = FullScanEngine::new(model, 1).unwrap();
        let (name, batch) = (plain.description(), plain.preferred_batch(100));
        let engine = measured(Box::new(plain), Arc::default());
        assert_eq!((engine.description(), engine.preferred_batch(100)), (name, batch));
    }
}

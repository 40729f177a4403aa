//! Tables, queries and comparisons that the tests share.

use std::sync::Arc;

use contract::{Filter, Hit, Metric, Query, QueryVector, Row, RowSet, SearchEngine};
use cpu_core::{FullScanEngine, ReferenceEngine};
use gpu_core::Options;
use gpu_core::search::{CudaEngine, Paths};
use model_store::ModelStore;

/// A stream of random numbers that is the same in every run.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A number in [-1, 1).
    pub(crate) fn real(&mut self) -> f32 {
        (self.next() >> 29) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub(crate) fn vector(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.real()).collect()
    }
}

pub(crate) fn model(dim: usize, rows: &[Vec<f32>]) -> Arc<ModelStore> {
    let words: Vec<String> = (0..rows.len()).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(String::as_str).zip(rows.iter().map(Vec::as_slice));
    Arc::new(ModelStore::from_rows("test", dim, rows).unwrap())
}

/// The same under the dot product, with these biases.
pub(crate) fn model_under_dot(
    dim: usize,
    rows: &[Vec<f32>],
    biases: Option<&[f32]>,
) -> Arc<ModelStore> {
    let words: Vec<String> = (0..rows.len()).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(String::as_str).zip(rows.iter().map(Vec::as_slice));
    Arc::new(ModelStore::from_rows_under_dot("test", dim, rows, biases).unwrap())
}

/// Every path to an answer on this device.
pub(crate) fn all_paths() -> Vec<(&'static str, Paths)> {
    let paths = Paths { certified_from_rows: 0, ..Paths::default() };
    vec![
        ("default", Paths::default()),
        ("int4 and int8", paths),
        ("int8", Paths { int4: false, ..paths }),
        ("portable int8", Paths { int4: false, portable: true, ..paths }),
        ("float32", Paths { int8: false, ..paths }),
        ("float64", Paths { int8: false, float32: false, ..paths }),
    ]
}

pub(crate) fn engine(model: &Arc<ModelStore>, paths: Paths) -> CudaEngine {
    CudaEngine::new(model.clone(), Options::default(), paths).unwrap()
}

/// Queries of every kind: rows and vectors, any k of `ks`, filters.
pub(crate) fn queries(
    model: &ModelStore,
    count: usize,
    ks: &[usize],
    numbers: &mut Numbers,
) -> Vec<Query> {
    let rows = model.rows();
    let mut queries = Vec::new();
    while queries.len() < count {
        let vector = if numbers.below(3) == 0 {
            QueryVector::from(numbers.vector(model.dim()))
        } else {
            QueryVector::Row(Row(numbers.below(rows) as u32))
        };
        let excluded = match numbers.below(4) {
            0 => 0,
            1 | 2 => 1,
            _ => numbers.below(6),
        };
        let excluded: Vec<Row> = (0..excluded).map(|_| Row(numbers.below(rows) as u32)).collect();
        let now_and_then = |numbers: &mut Numbers| numbers.below(6) == 0;
        // All fields are named: a new one does not compile until it is generated here.
        let filter = Filter {
            rows: RowSet::all()
                .less(excluded)
                .limited(now_and_then(numbers).then(|| 1 + numbers.below(rows) as u32)),
            min_score: now_and_then(numbers).then(|| f64::from(numbers.real())),
            max_score: now_and_then(numbers).then(|| f64::from(numbers.real())),
        };
        let k = ks[numbers.below(ks.len())];
        // A zero row makes no query.
        queries.extend(Query::new(&model.table(), vector, k, filter));
    }
    queries
}

pub(crate) fn bits(answers: &[Vec<Hit>]) -> Vec<Vec<(u32, u64)>> {
    answers.iter().map(|hits| hits.iter().map(|h| (h.row.0, h.score.to_bits())).collect()).collect()
}

pub(crate) fn reference(model: &Arc<ModelStore>, queries: &[Query]) -> Vec<Vec<(u32, u64)>> {
    let batch: Vec<&Query> = queries.iter().collect();
    // cpu-core's own tests compare this engine with the reference.
    if model.rows() * model.dim() * queries.len() > 20_000_000 {
        bits(&FullScanEngine::new(model.clone(), 0).unwrap().search(&batch).unwrap())
    } else {
        bits(&ReferenceEngine::new(model.clone()).search(&batch).unwrap())
    }
}

/// Compares every path with the reference: all queries in one batch, then some alone.
pub(crate) fn check(what: &str, model: &Arc<ModelStore>, queries: &[Query]) {
    let expected = reference(model, queries);
    for (name, paths) in all_paths() {
        // Under the dot product there is no 4-bit table, and no float32 score comes first.
        if model.metric() == Metric::Dot && ["int4 and int8", "float32"].contains(&name) {
            continue;
        }
        let mut engine = engine(model, paths);
        let batch: Vec<&Query> = queries.iter().collect();
        let found = bits(&engine.search(&batch).unwrap());
        assert_eq!(found.len(), expected.len(), "{what}, {name}");
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(
                found,
                expected,
                "{what}, {name}, query {i} of {}: {:?}",
                queries.len(),
                queries[i]
            );
        }
        for (i, query) in queries.iter().enumerate().take(6) {
            let alone = bits(&engine.search(&[query]).unwrap());
            assert_eq!(alone[0], expected[i], "{what}, {name}, query {i} alone: {query:?}");
        }
    }
}

//! The metric `dot`, on tables designed to break its certificate, against the reference on the CPU.

use std::sync::Arc;

use contract::{
    Filter, FullPassEngine, FullPassQuery, Query, QueryVector, Row, Scoring, SearchEngine,
};
use cpu_core::FullScanEngine;
use gpu_core::driver::Gpu;
use gpu_core::search::Paths;
use model_store::ModelStore;

use crate::support::{Numbers, check, engine, model_under_dot};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("dot_usual_rows_are_certified", usual_rows_are_certified as fn()),
        ("dot_norms_over_12_orders_of_magnitude", norms_over_12_orders_of_magnitude),
        ("dot_huge_biases", huge_biases),
        ("dot_negative_maxima", negative_maxima),
        ("dot_rows_and_queries_of_zeros", rows_and_queries_of_zeros),
        ("dot_subnormals_and_extremes", subnormals_and_extremes),
        ("dot_limits_that_are_tiny_or_scores", limits_that_are_tiny_or_scores),
        ("dot_ranks_and_very_many_hits", ranks_and_very_many_hits),
    ]
}

const ROWS: usize = 2500;

fn table(
    dim: usize,
    biases: Option<&[f32]>,
    mut make: impl FnMut(usize) -> Vec<f32>,
) -> Arc<ModelStore> {
    let rows: Vec<Vec<f32>> = (0..ROWS).map(&mut make).collect();
    model_under_dot(dim, &rows, biases)
}

/// Nearest words of words: without limits, and within limits that are scores.
fn words(model: &ModelStore, k: usize) -> Vec<Query> {
    let table = model.table();
    let ask = |row: usize| {
        let vector = QueryVector::Row(Row(row as u32));
        let plain = Query::new(&table, vector.clone(), k, Filter::default()).unwrap();
        let scores = [row / 2, row / 3].map(|row| plain.score(&table, Row(row as u32)));
        let mut filter = Filter::excluding(vec![Row(row as u32)]);
        (filter.min_score, filter.max_score) = (scores[0], scores[1]);
        [plain, Query::new(&table, vector, k, filter).unwrap()]
    };
    (0..30).map(|i| i * model.rows() / 31).flat_map(ask).collect()
}

fn attack(what: &str, model: &Arc<ModelStore>) {
    let queries: Vec<Query> = [1, 10, 200].into_iter().flat_map(|k| words(model, k)).collect();
    check(what, model, &queries);
}

fn usual_rows_are_certified() {
    for dim in [64, 300, 320, 400] {
        let mut numbers = Numbers::new(31);
        let biases: Vec<f32> = (0..ROWS).map(|_| numbers.real()).collect();
        for biases in [None, Some(&biases[..])] {
            let model = table(dim, biases, |_| numbers.vector(dim));
            // Beside another one, tables are derived in smaller parts.
            let _other = biases.map(|_| Gpu::open(None).unwrap());
            attack("usual rows", &model);
            let mut engine = engine(&model, Paths { certified_from_rows: 0, ..Paths::default() });
            let queries: Vec<Query> = words(&model, 10);
            engine.search(&queries.iter().collect::<Vec<_>>()).unwrap();
            let counted = engine.counters();
            assert_eq!((counted.exact, counted.fallbacks), (0, 0), "{counted:?}");
            assert!(counted.candidates < 900 * counted.certified, "{counted:?}");
        }
    }
}

fn norms_over_12_orders_of_magnitude() {
    let mut numbers = Numbers::new(32);
    let mut norm = || 10f32.powf(6.0 * numbers.real());
    let norms: Vec<f32> = (0..ROWS).map(|_| norm()).collect();
    let biases: Vec<f32> = (0..ROWS).map(|row| norm() * norms[row].signum()).collect();
    for biases in [None, Some(&biases[..])] {
        let mut numbers = Numbers::new(33);
        let model =
            table(50, biases, |row| numbers.vector(50).iter().map(|x| x * norms[row]).collect());
        attack("norms over 12 orders of magnitude", &model);
    }
}

fn huge_biases() {
    for size in [1e3, 1e10, 3e38] {
        // Many with the same, so that only the dot product tells them apart, and rounding may hide
        // it.
        let mut numbers = Numbers::new(34);
        let biases: Vec<f32> =
            (0..ROWS).map(|row| if row % 3 == 0 { size } else { size * numbers.real() }).collect();
        let model = table(40, Some(&biases), |_| numbers.vector(40));
        attack("huge biases", &model);
    }
}

fn negative_maxima() {
    // No score is above zero, and neither empty slots nor rows past the end may count as better.
    let mut numbers = Numbers::new(35);
    let biases: Vec<f32> = (0..ROWS).map(|_| -500.0 - numbers.real()).collect();
    for biases in [None, Some(&biases[..])] {
        let model = table(33, biases, |_| numbers.vector(33).iter().map(|x| x.abs()).collect());
        let table = model.table();
        let opposite = QueryVector::from(vec![-1.0; 33]);
        let query = Query::new(&table, opposite, 10, Filter::default());
        check("a query opposite to all rows", &model, &[query.unwrap()]);
        attack("negative maxima", &model);
    }
}

fn rows_and_queries_of_zeros() {
    let biases: Vec<f32> = (0..ROWS).map(|row| if row % 8 < 4 { 0.0 } else { -0.25 }).collect();
    for biases in [None, Some(&biases[..])] {
        let mut numbers = Numbers::new(36);
        let model =
            table(20, biases, |row| if row % 4 == 0 { vec![0.0; 20] } else { numbers.vector(20) });
        attack("rows of zeros", &model);
        attack("only rows of zeros", &table(20, biases, |_| vec![0.0; 20]));
    }
}

fn subnormals_and_extremes() {
    let scales = [f32::from_bits(1), 1e-40, 1e-20, 1.0, 1e20, 3e38];
    // All of them, and only the smallest: then the unit is tiny, too.
    for scales in [&scales[..], &scales[..2]] {
        let mut numbers = Numbers::new(37);
        let mut number = |row: usize| {
            let scale = scales[row % scales.len()];
            let tiny = f32::from_bits((numbers.next() % 3) as u32);
            if scale < 1e-44 { tiny } else { numbers.real() * scale }
        };
        let biases: Vec<f32> = (0..ROWS).map(&mut number).collect();
        for biases in [None, Some(&biases[..])] {
            let model = table(50, biases, |row| (0..50).map(|_| number(row)).collect());
            attack("subnormals and extremes", &model);
        }
    }
}

fn limits_that_are_tiny_or_scores() {
    let mut numbers = Numbers::new(38);
    // Few distinct numbers: many scores are equal, and many are zero.
    for size in [1e-30f32, 1.0, 1e30] {
        let model = table(16, None, |_| {
            (0..16).map(|_| size * [0.0, 0.0, 1.0, -1.0][numbers.below(4)]).collect()
        });
        let table = model.table();
        let step = f64::from(size) * f64::from(size);
        let (least, above) = (f64::from_bits(1), step.next_up());
        let limits = [least, -least, 0.0, step, above, step.next_down(), -step, 1e300, -1e300];
        let mut queries = Vec::new();
        for (row, minimum) in (0..).zip(limits) {
            for maximum in [None, Some(-minimum), Some(3.0 * step)] {
                for k in [1, 10, 200, 5000] {
                    let mut filter = Filter::default();
                    (filter.min_score, filter.max_score) = (Some(minimum), maximum);
                    queries
                        .push(Query::new(&table, QueryVector::Row(Row(row)), k, filter).unwrap());
                }
            }
        }
        check("limits", &model, &queries);
    }
}

fn ranks_and_very_many_hits() {
    let mut numbers = Numbers::new(39);
    let biases: Vec<f32> = (0..ROWS).map(|row| (row % 7) as f32).collect();
    for biases in [None, Some(&biases[..])] {
        let model = table(30, biases, |_| numbers.vector(30));
        let table = model.table();
        let ask = |row: u32| {
            let scoring = Scoring::vector(&table, QueryVector::Row(Row(row))).unwrap();
            let ranked = (0..40).map(|i| Row((row * 31 + i * 61) % ROWS as u32)).collect();
            FullPassQuery::new(scoring, row as usize % 3 * ROWS, Filter::default(), ranked)
        };
        let queries: Vec<FullPassQuery> = (0..12).map(ask).collect();
        let queries: Vec<&FullPassQuery> = queries.iter().collect();
        let expected = FullScanEngine::new(model.clone(), 0).unwrap().full_pass(&queries).unwrap();
        let found = engine(&model, Paths::default()).full_pass(&queries).unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
    }
}

//! Tests rows that the sample of a certified pass must not count: excluded rows, rows of norm zero,
//! and rows beyond a query's limit. If they counted, the floor would rise above the scores of the
//! answer.

use std::sync::Arc;

use crate::support::{bits, certified, expected, model};
use contract::{Filter, Query, QueryVector, Row, RowSet, SearchEngine};
use cpu_core::{FirstLook, InstructionSet, Paths};
use model_store::ModelStore;

/// Rows enough for the largest sample: 64 strips of 32 rows are a 16th of them.
const ROWS: usize = 33_000;
const DIM: usize = 8;

/// A vector at this cosine to the first axis, and otherwise in a direction of its own.
fn at_cosine(cosine: f32, row: usize) -> Vec<f32> {
    let mut vector: Vec<f32> = (0..DIM).map(|i| ((row * 31 + i * 7 + 3) as f32).sin()).collect();
    vector[0] = 0.0;
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let across = (1.0 - cosine * cosine).sqrt() / norm;
    vector.iter_mut().for_each(|x| *x *= across);
    vector[0] = cosine;
    vector
}

fn axis() -> QueryVector {
    QueryVector::from((0..DIM).map(|i| f32::from(u8::from(i == 0))).collect::<Vec<f32>>())
}

/// Checks the same query for each `k`, all in one batch and the first alone. A large `k` gets no
/// floor from the sample.
fn holds(model: &Arc<ModelStore>, filter: &Filter, ks: &[usize]) {
    let queries: Vec<Query> = ks
        .iter()
        .map(|&k| Query::new(&model.table(), axis(), k, filter.clone()).unwrap())
        .collect();
    let expected = expected(model, &queries.iter().collect::<Vec<_>>());
    for instructions in InstructionSet::available() {
        for first_look in [FirstLook::FourBits, FirstLook::EightBits] {
            let paths = Paths { first_look: Some(first_look), ..Paths::default() };
            let mut engine = certified(model, 2, instructions, paths);
            let together = engine.search(&queries.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(bits(&together), expected, "{instructions}, {first_look:?}");
            let alone = engine.search(&queries[..1].iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(bits(&alone), expected[..1], "{instructions}, {first_look:?}");
            assert_eq!(engine.counted().fallbacks, 0, "the pass itself has the answers");
            assert_eq!(engine.counted().certified, ks.len() as u64 + 1);
        }
    }
}

#[test]
fn rows_that_are_left_out_may_be_the_best_of_all() {
    for every in [32 * 47 + 1, 1000, 1723] {
        let left_out = |row: usize| row.is_multiple_of(every);
        let cosine = |row| if left_out(row) { 0.99 } else { 0.3 * (row as f32).sin() };
        let rows: Vec<_> = (0..ROWS).map(|row| at_cosine(cosine(row), row)).collect();
        let left_out = (0..ROWS as u32).filter(|&row| left_out(row as usize)).map(Row).collect();
        holds(&Arc::new(model(DIM, &rows)), &Filter::excluding(left_out), &[1, 2, 5, 40, 3]);
    }
}

#[test]
fn rows_of_norm_zero_are_no_bound_where_all_scores_are_negative() {
    let row = |row: usize| match row % 3 {
        0 => at_cosine(-0.2 - 0.7 * (row as f32 / ROWS as f32), row),
        _ => vec![0.0; DIM],
    };
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    holds(&Arc::new(model(DIM, &rows)), &Filter::default(), &[1, 10, 24, 25]);
}

#[test]
fn rows_past_a_querys_limit_are_not_its_own() {
    let cosine = |row: usize| 0.9 * (row as f32 / ROWS as f32);
    let rows: Vec<_> = (0..ROWS).map(|row| at_cosine(cosine(row), row)).collect();
    let model = Arc::new(model(DIM, &rows));
    for first_rows in [1000, 20_000, ROWS as u32 - 1] {
        holds(&model, &Filter::of(RowSet::first(first_rows)), &[1, 3, 10, 24]);
    }
}

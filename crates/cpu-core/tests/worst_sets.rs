//! Sets that are chosen to make the certificate dear: their threshold lies where scores are dense,
//! so a first look at 4 bits rules out little. The work is counted, not timed: docs/filters.md has
//! times.

use std::sync::Arc;

use crate::support::{bits, expected, model, model_under_dot};
use contract::{Filter, Query, QueryVector, Row, RowBitmap, RowSet, SearchEngine};
use cpu_core::{CpuEngine, FirstLook, InstructionSet, Options, Paths};
use model_store::ModelStore;
use model_store::synth::split_mix;

const ROWS: usize = 33_000;
const DIM: usize = 48;

/// The sum of four numbers in [-0.5, 0.5) that look random.
fn number(index: usize) -> f32 {
    let part = |i: usize| (split_mix((4 * index + i) as u64) >> 40) as f32 / (1u64 << 24) as f32;
    (0..4).map(part).sum::<f32>() - 2.0
}

fn rows() -> Vec<Vec<f32>> {
    (0..ROWS).map(|row| (0..DIM).map(|i| number(row * DIM + i)).collect()).collect()
}

/// The rows by their scores for a query, the worst first.
fn by_score(model: &ModelStore, query: &Query) -> Vec<Row> {
    let score = |row: &Row| query.score(&model.table(), *row).unwrap_or(f64::NEG_INFINITY);
    let mut rows: Vec<Row> = (0..ROWS as u32).map(Row).collect();
    rows.sort_by(|a, b| score(a).total_cmp(&score(b)));
    rows
}

/// Queries for `k` neighbours among parts of the rows, in the order of their scores.
fn queries(model: &ModelStore, row: u32, k: usize) -> Vec<(&'static str, Query)> {
    let query =
        |filter: Filter| Query::new(&model.table(), QueryVector::Row(Row(row)), k, filter).unwrap();
    let ordered = by_score(model, &query(Filter::default()));
    let part = |(name, from, to): (&'static str, f64, f64)| {
        let [from, to] = [from, to].map(|part| (part * ROWS as f64) as usize);
        let members = ordered[from..to].iter().copied();
        let bitmap = RowBitmap::of_rows(members, ROWS, model.version());
        (name, query(Filter::of(RowSet::of(Arc::new(bitmap)))))
    };
    let parts = [
        ("the worst tenth", 0.0, 0.1),
        ("the worst half", 0.0, 0.5),
        ("the worst 70 %", 0.0, 0.7),
        ("the worst 90 %", 0.0, 0.9),
        ("the worst 99 %", 0.0, 0.99),
        ("the middle tenth", 0.45, 0.55),
        ("the best half", 0.5, 1.0),
    ];
    let all = ("all rows", query(Filter::default()));
    parts.into_iter().map(part).chain([all]).collect()
}

/// Rows that a query looked at twice, and rows that it scored.
fn work(engine: &mut CpuEngine, query: &Query, expected: &[(u32, u64)]) -> [usize; 2] {
    let before = engine.counted();
    let found = bits(&engine.search(&[query]).unwrap());
    let now = engine.counted();
    assert_eq!(found[0], expected);
    assert_eq!(now.certified - before.certified, 1, "the pass itself has the answer");
    let looks = (now.second_looks - before.second_looks) as usize;
    [looks, (now.survivors - before.survivors) as usize]
}

/// A second look takes as long as the first look at about six rows, and a score as long as at
/// twenty. With the table by rows, both planes of the query rule out more.
#[test]
fn a_set_that_is_worst_for_the_query_takes_little_more_work() {
    let of_rows = Arc::new(model(DIM, &rows()));
    let biases: Vec<f32> = (0..ROWS).map(|row| number(row + 77) / 4.0).collect();
    let under_dot = Arc::new(model_under_dot(DIM, &rows(), Some(&biases)));
    for (model, row, k) in
        [(&of_rows, 5, 10), (&of_rows, 777, 1), (&of_rows, 9_999, 100), (&under_dot, 7, 10)]
    {
        let queries = queries(model, row, k);
        let expected = expected(model, &queries.iter().map(|(_, query)| query).collect::<Vec<_>>());
        for instructions in InstructionSet::available() {
            for by_rows in [false, true] {
                // Or a full scan would score these few components in less time.
                let paths = Paths { always_certify: true, ..Paths::default() };
                let instructions = Some(instructions);
                let options =
                    Options { threads: 1, instructions, paths, by_rows, ..Options::default() };
                let mut engine = CpuEngine::new(model.clone(), options).unwrap();
                engine.wait_for_tables();
                for ((name, query), expected) in queries.iter().zip(&expected) {
                    let [looks, scored] = work(&mut engine, query, expected);
                    let what = format!("{instructions:?}, {by_rows}, {k} of {name}");
                    let most_scored = if by_rows { ROWS / 20 } else { ROWS / 10 };
                    assert!(looks <= ROWS / 20, "{looks} second looks: {what}");
                    assert!(scored <= most_scored, "{scored} scored: {what}");
                }
            }
        }
    }
}

/// Without this, the test above would prove nothing.
#[test]
fn looking_at_4_bits_alone_would_rule_out_little_of_these_sets() {
    let model = Arc::new(model(DIM, &rows()));
    let queries = queries(&model, 5, 10);
    let expected = expected(&model, &queries.iter().map(|(_, query)| query).collect::<Vec<_>>());
    let first_look = Some(FirstLook::FourBits);
    let paths = Paths { always_certify: true, first_look, ..Paths::default() };
    let options = Options { threads: 1, paths, ..Options::default() };
    let mut engine = CpuEngine::new(model.clone(), options).unwrap();
    engine.wait_for_tables();
    for ((name, query), expected) in queries.iter().zip(&expected) {
        let [looks, _] = work(&mut engine, query, expected);
        if ["the worst half", "the worst 70 %", "the worst 90 %"].contains(name) {
            assert!(looks > ROWS / 8, "{looks} second looks: {name}");
        }
    }
}

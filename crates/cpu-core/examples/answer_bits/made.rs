//! Tables and queries made of whole numbers, the same everywhere.

use std::error::Error;

use contract::analogy::{WeightedWord, analogy_sum};
use contract::{Filter, FullPassQuery, Metric, Query, QueryVector, Row, Scoring};
use model_store::ModelStore;
use model_store::synth::split_mix;

/// The number `part` of the query or row `index`, for this purpose.
pub(crate) fn random(purpose: u64, index: usize, part: usize) -> u64 {
    split_mix(split_mix(purpose << 32 | index as u64) ^ part as u64)
}

/// A number in [−1, 1) with 24 bits.
fn number(purpose: u64, index: usize, part: usize) -> f32 {
    (random(purpose, index, part) >> 40) as f32 / (1u32 << 23) as f32 - 1.0
}

pub(crate) fn numbers(purpose: u64, count: usize, size: f32) -> Vec<f32> {
    (0..count).map(|i| number(purpose, i, 0) * size).collect()
}

/// Random rows; some are repeated, so that scores tie, and some are zero.
pub(crate) fn model(
    metric: Metric,
    (rows, dim): (usize, usize),
) -> Result<ModelStore, Box<dyn Error>> {
    let row = |index: usize| -> Vec<f32> {
        let source = if index % 11 == 10 { index / 2 } else { index };
        let size = if source % 97 == 5 { 0.0 } else { 1.0 + (source % 4) as f32 };
        (0..dim).map(|i| size * (number(1, source, i) + number(2, source % 40, i))).collect()
    };
    let words: Vec<String> = (0..rows).map(|index| format!("w{index}")).collect();
    let vectors: Vec<Vec<f32>> = (0..rows).map(row).collect();
    let rows = words.iter().map(String::as_str).zip(vectors.iter().map(Vec::as_slice));
    let biases = numbers(3, words.len(), 4.0);
    Ok(match metric {
        Metric::Cosine => ModelStore::from_rows("random", dim, rows)?,
        Metric::Dot => ModelStore::from_rows_under_dot("random", dim, rows, Some(&biases))?,
    })
}

/// A random score: of a row, a vector, an analogy or, under cosine, a formula; and its rows.
fn scoring(model: &ModelStore, index: usize) -> Option<(Scoring, Vec<Row>)> {
    let table = model.table();
    let row = |part: usize| Row((random(4, index, part) % model.rows() as u64) as u32);
    let rows: Vec<Row> = (0..5).map(row).collect();
    let formulas = if table.metric() == Metric::Cosine { 2 } else { 0 };
    let scoring = match random(5, index, 0) % (4 + formulas) {
        0 => Scoring::vector(&table, QueryVector::Row(rows[0])).ok()?,
        1 => {
            let vector: Vec<f32> = (0..model.dim()).map(|i| number(6, index, i)).collect();
            Scoring::vector(&table, vector.into()).ok()?
        }
        2 | 3 => {
            let word = |(&row, weight)| WeightedWord { row, weight };
            let words: Vec<_> = rows.iter().zip([-1.0, 1.0, 1.0, 0.3]).map(word).collect();
            Scoring::vector(&table, analogy_sum(&table, &words).ok()?.vector.into()).ok()?
        }
        4 => {
            let positive = 1 + (random(5, index, 1) % 3) as usize;
            Scoring::three_cos_mul(&table, &rows[..positive], &rows[positive..4]).ok()?
        }
        _ => Scoring::pair_direction(&table, rows[1], rows[2], rows[0]).ok()?,
    };
    Some((scoring, rows))
}

/// Every second query leaves rows out: its own, those past a number, or some by their scores.
fn filter(model: &ModelStore, scoring: &Scoring, rows: &[Row], index: usize) -> Filter {
    let choice = random(7, index, 0);
    if choice.is_multiple_of(2) {
        return Filter::default();
    }
    let mut filter =
        if choice & 2 == 0 { Filter::excluding(rows.to_vec()) } else { Filter::default() };
    let some = |bit: u64| choice & bit != 0;
    let limit = some(4).then_some((random(7, index, 1) % model.rows() as u64) as u32);
    filter.rows = filter.rows.limited(limit);
    let score_of = |row: &Row| scoring.score_of_row(&model.table(), *row);
    filter.min_score = if some(8) { score_of(&rows[3]) } else { None };
    filter.max_score = if some(16) { score_of(&rows[4]) } else { None };
    filter
}

pub(crate) fn searches(model: &ModelStore, count: usize) -> Vec<Query> {
    let query = |index: usize| {
        let (scoring, rows) = scoring(model, index)?;
        let k = [1, 5, 10, 10, 10, 50, 100, 1000][(random(8, index, 0) % 8) as usize];
        let filter = filter(model, &scoring, &rows, index);
        Some(Query::by(scoring, k, filter))
    };
    (0..).filter_map(query).take(count).collect()
}

pub(crate) fn ranks(model: &ModelStore, count: usize) -> Vec<FullPassQuery> {
    let query = |index: usize| {
        let (scoring, rows) = scoring(model, index)?;
        let k = (random(8, index, 1) % 20) as usize;
        let filter = filter(model, &scoring, &rows, index);
        Some(FullPassQuery::new(scoring, k, filter, rows))
    };
    (0..).filter_map(query).take(count).collect()
}

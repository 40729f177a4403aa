//! Checks an engine before it is used, with a few queries whose answers a plain loop over the first
//! rows computes by the contract's formula.

use contract::{
    Engine, EngineError, Filter, FullPassEngine, FullPassQuery, Hit, Metric, Query, QueryVector,
    RankedRow, Ranking, Row, RowSet, Scoring, ScoringVector, SearchEngine, Table,
};
use model_store::ModelStore;
use tracing::debug;

/// Rows that the plain loop scores, at most.
const SAMPLE_ROWS: usize = 2000;
/// Components that it scores, at most, if rows are long.
const SAMPLE_COMPONENTS: usize = 1 << 20;
/// An engine that searches in the memory of this machine is not asked about all rows of a table
/// with more components (64 MB): they may still be on the disk, and a start must not wait for them.
const ALL_ROWS_COMPONENTS: usize = 1 << 24;
const K: usize = 10;

/// Passes that a self-check makes of an engine.
pub const SELF_CHECK_PASSES: u64 = 4;

/// What an engine should have answered, and did not.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongAnswer(String);

/// Asks the engine, in [`SELF_CHECK_PASSES`] passes, and compares to the last bit: one search
/// alone; one batch of searches that differ in vector, `k` and filter; one full pass; one for
/// ranks, which devices count by themselves. Takes milliseconds. If the model has no rows, or all
/// are zero, there is nothing to check.
///
/// # Errors
/// The first answer that is wrong.
pub fn self_check(engine: &mut dyn Engine, model: &ModelStore) -> Result<(), WrongAnswer> {
    let table = model.table();
    let name = engine.description().name;
    if table.rows() == 0 {
        return Ok(());
    }
    let sample = SAMPLE_ROWS.min(SAMPLE_COMPONENTS / table.dim()).clamp(1, table.rows());
    let can_be_asked = |row| table.metric() == Metric::Dot || table.norm(row) > 0.0;
    let rows: Vec<Row> =
        (0..table.rows() as u32).map(Row).filter(|&row| can_be_asked(row)).take(5).collect();
    let [first, ..] = rows[..] else { return Ok(()) };
    let on_a_device = name == "cuda";
    let all_rows = on_a_device || table.components().len() <= ALL_ROWS_COMPONENTS;
    let check = Check { name, table, sample };

    let alone = check.query(first, K, None, all_rows);
    check.search(engine, &[alone])?;
    let last = *rows.last().expect("there is a first");
    let batch: Vec<Query> = rows
        .iter()
        .enumerate()
        .flat_map(|(index, &row)| {
            [check.query(row, K - index, None, all_rows), check.query(row, K, Some(0.25), false)]
        })
        .chain([check.between(first, last, all_rows)])
        .collect();
    check.search(engine, &batch)?;
    let filter = check.filter(first, None, false);
    if let Ok(scoring) = Scoring::three_cos_mul(&table, &[first], &[last]) {
        let query = FullPassQuery::new(scoring, K, filter.clone(), vec![last]);
        check.full_pass(engine, &query, [first, last])?;
    }
    let scoring = Scoring::vector(&table, QueryVector::Row(first)).expect("it is not zero");
    check.full_pass(engine, &FullPassQuery::new(scoring, 0, filter, rows), [first, last])?;
    debug!(engine = name, rows = sample, "the engine passed its self-check");
    Ok(())
}

struct Check<'a> {
    name: &'static str,
    table: Table<'a>,
    /// The plain loop scores this many rows, from the first.
    sample: usize,
}

impl Check<'_> {
    fn filter(&self, excluded: Row, min_score: Option<f64>, all_rows: bool) -> Filter {
        let limit = (!all_rows).then_some(self.sample as u32);
        let rows = RowSet::all().limited(limit).less(vec![excluded]);
        Filter { rows, min_score, max_score: None }
    }

    fn query(&self, row: Row, k: usize, min_score: Option<f64>, all_rows: bool) -> Query {
        let filter = self.filter(row, min_score, all_rows);
        Query::new(&self.table, QueryVector::Row(row), k, filter).expect("the row is not zero")
    }

    /// A query by components: the first row, and a little of another.
    fn between(&self, first: Row, last: Row, all_rows: bool) -> Query {
        let (a, b) = (self.table.row(first), self.table.row(last));
        let mixed = a.iter().zip(b).map(|(a, b)| a * 0.75 + b * 0.125).collect::<Vec<f32>>();
        let filter = self.filter(first, None, all_rows);
        let query = Query::new(&self.table, mixed.into(), K, filter);
        // Too small or too large for float32: the row as it is.
        query.unwrap_or_else(|_| self.query(first, K, None, all_rows))
    }

    fn search(&self, engine: &mut dyn SearchEngine, queries: &[Query]) -> Result<(), WrongAnswer> {
        let batch: Vec<&Query> = queries.iter().collect();
        let found = engine.search(&batch).map_err(|e| self.failed(e))?;
        for (index, query) in queries.iter().enumerate() {
            let score = |row| query.score(&self.table, row);
            let asked = || match query.ranking() {
                Ranking::Vector(ScoringVector { vector: QueryVector::Row(row), .. }) => {
                    format!("the {} nearest neighbours of row {row}", query.k)
                }
                Ranking::Vector(_) => format!("the {} nearest neighbours of a vector", query.k),
                Ranking::Formula(_) => format!("the {} best rows by a formula", query.k),
            };
            let found = found.get(index).map_or(&[][..], Vec::as_slice);
            self.compare(found, &query.filter, query.k, score, asked)?;
        }
        Ok(())
    }

    /// Checks a full pass over the sample: the best rows for row `a` minus row `b`, and ranks among
    /// the neighbours of row `a`.
    fn full_pass(
        &self,
        engine: &mut dyn FullPassEngine,
        query: &FullPassQuery,
        [a, b]: [Row; 2],
    ) -> Result<(), WrongAnswer> {
        let found = engine.full_pass(&[query]).map_err(|e| self.failed(e))?;
        let found = found.into_iter().next().unwrap_or_default();
        let score = |row| query.score(&self.table, row);
        let asked = || format!("the {} best rows for row {a} minus row {b}", query.k);
        self.compare(&found.hits, &query.filter, query.k, score, asked)?;
        let ranked = self.ranked(&query.filter, score);
        for (index, &row) in query.ranked.iter().enumerate() {
            let rank = ranked.iter().position(|hit| hit.row == row).map(|index| index as u32 + 1);
            let expected = RankedRow { row, score: score(row), rank };
            let found = found.ranks.get(index);
            if found != Some(&expected) {
                let asked = format!("the rank of row {row} among the neighbours of row {a}");
                let found = found.map_or_else(|| "nothing".into(), |found| format!("{found:?}"));
                return Err(self.differs(asked, format!("{expected:?}"), found));
            }
        }
        Ok(())
    }

    /// The sample's hits, best first.
    fn ranked(&self, filter: &Filter, score: impl Fn(Row) -> Option<f64>) -> Vec<Hit> {
        let mut hits: Vec<Hit> = (0..self.sample as u32)
            .map(Row)
            .filter_map(|row| score(row).map(|score| Hit { row, score }))
            .filter(|hit| filter.admits(hit.row, hit.score))
            .collect();
        hits.sort();
        hits
    }

    /// If the query is limited to the sample, the sample's best hits are the answer. Otherwise each
    /// hit must be right and in order, and no row of the sample may be missing.
    fn compare(
        &self,
        found: &[Hit],
        filter: &Filter,
        k: usize,
        score: impl Fn(Row) -> Option<f64>,
        asked: impl Fn() -> String,
    ) -> Result<(), WrongAnswer> {
        let differs = |expected: &[Hit]| self.differs(asked(), in_words(expected), in_words(found));
        let sample = self.ranked(filter, &score);
        if filter.row_limit(self.table.rows()) <= self.sample {
            let expected = &sample[..k.min(sample.len())];
            return if found == expected { Ok(()) } else { Err(differs(expected)) };
        }
        for (index, hit) in found.iter().enumerate() {
            let is_right = hit.row.index() < self.table.rows()
                && score(hit.row) == Some(hit.score)
                && filter.admits(hit.row, hit.score)
                && (index == 0 || found[index - 1] < *hit);
            if !is_right {
                let real = (hit.row.index() < self.table.rows()).then(|| score(hit.row)).flatten();
                let real = real.map(|score| Hit { row: hit.row, score });
                return Err(differs(real.as_slice()));
            }
        }
        // A row is missing if it is better than the worst hit, or if there are fewer than `k` hits.
        let worst = found.last().filter(|_| found.len() >= k);
        let missing = |hit: &&Hit| worst.is_none_or(|worst| *hit < worst) && !found.contains(hit);
        match sample.iter().find(missing) {
            Some(missing) => Err(differs(&[*missing])),
            None => Ok(()),
        }
    }

    fn differs(&self, asked: String, expected: String, found: String) -> WrongAnswer {
        WrongAnswer(format!(
            "the engine {} gave a wrong answer in its self-check and is not used: asked for \
             {asked}, it found {found}, but the formula gives {expected}; check the machine's \
             memory and device, or try another --device",
            self.name
        ))
    }

    fn failed(&self, error: EngineError) -> WrongAnswer {
        let name = self.name;
        WrongAnswer(format!(
            "the self-check of the engine {name} got no answer, so it is not used: {error}"
        ))
    }
}

fn in_words(hits: &[Hit]) -> String {
    let words: Vec<String> =
        hits.iter().map(|hit| format!("row {} with {}", hit.row, hit.score)).collect();
    if words.is_empty() { "nothing".into() } else { words.join(", ") }
}

#[cfg(test)]
mod tests;

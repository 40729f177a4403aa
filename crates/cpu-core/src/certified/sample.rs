//! Samples a few strips from all over the table before a pass, for initial floors.
//!
//! Without them, most candidates in a small table are found while floors rise from nothing.

use contract::{FilterParts, Query, Ranking, Row, Table, TopK};

use super::bounds::{Threshold, round_down};
use super::columns::Column;
use super::kernels::{Purpose, Space, Strips};
use super::layout::{STRIP_BLOCKS, STRIP_ROWS};
use super::query::PreparedQueries;
use super::score::{ROWS, Scorer};
use super::tables::Tables;
use crate::InstructionSet;
use crate::row_limits::count_covering;

/// The sample: a 16th of the strips, at most 64, in runs of four.
const PART: usize = 16;
const RUN: usize = 4;
const RUNS: usize = 16;

/// Rows at the same position in their strips form a group, of which the sample finds the best bound. The floor is one
/// of the highest of these bounds.
const RANKS: usize = 24;

/// The score of a sample that guesses extrapolate from: the very best ones say little about the others.
const RELIABLE_RANK: usize = 8;

/// What is sampled: the queries of a pass, sorted by the number of rows that they cover, descending.
#[derive(Clone, Copy)]
pub(super) struct Sampled<'a> {
    pub(super) queries: &'a [&'a Query],
    /// Their columns, query by query.
    pub(super) columns: &'a [Column<'a>],
    pub(super) prepared: &'a PreparedQueries,
    pub(super) table: Table<'a>,
}

/// What a sample says of a query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Findings {
    /// A lower bound of the `k`-th best score, or minus infinity.
    pub(super) floor: f32,
    /// A guess of the `k`-th best score by a formula.
    pub(super) likely: Option<f64>,
}

/// What a sample says of each query.
pub(super) fn sample(
    tables: &Tables,
    instructions: InstructionSet,
    Sampled { queries, columns, prepared, table }: Sampled<'_>,
) -> Vec<Findings> {
    let nothing = Findings { floor: f32::NEG_INFINITY, likely: None };
    let mut findings = vec![nothing; queries.len()];
    let layout = tables.layout;
    let sampled = count_covering(layout.rows.saturating_sub(1), queries, layout.rows);
    let queries = &queries[..sampled];
    let columns = &columns[..columns.partition_point(|column| column.query < sampled)];
    // Excluded rows may be the best of their groups. So may rows above a maximum score, any number of them: then the
    // sample says nothing.
    let rank = |query: &Query| {
        let FilterParts { excluded, first_rows: _, min_score: _, max_score } =
            query.filter().parts();
        if max_score.is_some() { usize::MAX } else { query.k().saturating_add(excluded.len()) }
    };
    let strips = layout.rows / STRIP_ROWS;
    let runs = (strips / (PART * RUN)).min(RUNS);
    let is_sampled = |query: &&Query| match query.ranking() {
        Ranking::Cosine(_) => rank(query) <= RANKS,
        Ranking::Formula(_) => query.filter().parts().max_score.is_none(),
    };
    if runs == 0 || !queries.iter().any(is_sampled) {
        return findings;
    }
    let strip_lines = STRIP_BLOCKS * layout.block_lines();
    let run = |run: usize| {
        let first = run * strips / runs;
        let lines = first * strip_lines..(first + RUN) * strip_lines;
        let (high, low) = (&tables.high()[lines.clone()], Some(&tables.low()[lines]));
        (first, Strips { high, low, layout })
    };
    let mut space = Space::new(layout, columns.len());
    let mut best = vec![[f32::NEG_INFINITY; STRIP_ROWS]; columns.len()];
    let bounds = &prepared.bounds[..columns.len()];
    let mut thresholds: Vec<Threshold> =
        bounds.iter().map(|bounds| bounds.first.threshold(f32::NEG_INFINITY)).collect();
    for (_, strips) in (0..runs).map(run) {
        let (asked, purpose) = (prepared.first(&thresholds), Purpose::Sample(&mut best));
        instructions.scan(strips, asked, &mut space, purpose);
    }
    for (((column, bounds), threshold), best) in
        columns.iter().zip(bounds).zip(&mut thresholds).zip(&mut best)
    {
        let query = &queries[column.query];
        threshold.offset = f32::INFINITY;
        if !is_sampled(query) {
            continue;
        }
        let rank = if column.is_query() { rank(query) } else { RANKS };
        let (_, bound, _) = best.select_nth_unstable_by(rank - 1, |a, b| b.total_cmp(a));
        if !column.is_query() {
            *threshold = bounds.first.threshold(bounds.first.of_sample(*bound));
        } else if *bound > 0.0 {
            // Rows of norm zero are never neighbours, and have a bound of zero.
            findings[column.query].floor = bounds.first.of_sample(*bound);
        }
    }
    // A bound of the dot product with a half-space's normal is no bound of a formula's score. So the rows with the
    // highest ones are found again, and scored.
    if columns.iter().any(|column| !column.is_query()) {
        let mut found = Vec::new();
        let mut rows: Vec<Vec<Row>> = vec![Vec::new(); queries.len()];
        for (first, strips) in (0..runs).map(run) {
            let purpose = Purpose::Find(&mut found);
            instructions.scan(strips, prepared.first(&thresholds), &mut space, purpose);
            for flagged in found.drain(..) {
                let strip = (first + flagged.strip as usize) * STRIP_ROWS;
                let in_strip = (0..STRIP_ROWS).filter(|row| flagged.rows >> row & 1 == 1);
                let in_table = in_strip.map(|row| strip + row).filter(|&row| row < layout.rows);
                rows[columns[flagged.query as usize].query]
                    .extend(in_table.map(|row| Row(row as u32)));
            }
        }
        let size = runs * RUN * STRIP_ROWS;
        for ((query, findings), mut rows) in queries.iter().zip(&mut findings).zip(rows) {
            rows.sort_unstable();
            rows.dedup();
            if let (Ranking::Formula(scoring), false) = (query.ranking(), rows.is_empty()) {
                let best = best_scores(query, &rows, table, instructions);
                if let Some(&score) = best.get(query.k() - 1) {
                    findings.floor = round_down(score);
                }
                let rank = best.len().min(RELIABLE_RANK);
                let score = rank.checked_sub(1).map(|index| best[index]);
                findings.likely = score.map(|score| {
                    scoring.extrapolate(score, [rank, size], [query.k(), layout.rows])
                });
            }
        }
    }
    findings
}

/// The best scores of these rows, descending: at least as many as the query asks for, or all that pass the filter.
fn best_scores(
    query: &Query,
    rows: &[Row],
    table: Table<'_>,
    instructions: InstructionSet,
) -> Vec<f64> {
    let mut best = TopK::new(query.k().max(RANKS));
    let mut scorer = Scorer::new(query, table, instructions);
    for some in rows.chunks(ROWS) {
        scorer.hits(some.iter().copied()).for_each(|hit| best.push(hit));
    }
    best.into_sorted().into_iter().map(|hit| hit.score).collect()
}

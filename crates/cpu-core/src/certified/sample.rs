//! Samples a few strips from all over the table before a pass, for initial floors.
//!
//! Without them, most candidates in a small table are found while floors rise from nothing.

use std::ops::Range;

use contract::{Filter, Query, Ranking, Row, RowSetParts, Table, TopK};

use super::bounds::{Threshold, round_down};
use super::columns::Column;
use super::kernels::{GROUP_QUERIES, Purpose, Scan, Space, Strips};
use super::layout::{STRIP_BLOCKS, STRIP_ROWS};
use super::query::PreparedQueries;
use super::score::{Scorer, with_later};
use super::tables::Tables;
use crate::InstructionSet;
use crate::threads::Workers;

/// The sample: a 16th of the strips, at most 64, in runs of four.
const PART: usize = 16;
const RUN: usize = 4;
const RUNS: usize = 16;

/// Rows at the same position in their strips form a group, of which the sample finds the best
/// bound. The floor is one of the highest of these bounds.
const RANKS: usize = 24;

/// The score of a sample that guesses extrapolate from: the very best ones say little about the
/// others.
const RELIABLE_RANK: usize = 8;

/// What is sampled: the queries of a pass, sorted by the number of rows that they cover,
/// descending.
#[derive(Clone, Copy)]
pub(super) struct Sampled<'a> {
    pub(super) queries: &'a [&'a Query],
    /// The first n cover all rows. Others are not sampled.
    pub(super) of_all_rows: usize,
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
pub(super) fn sample(tables: &Tables, workers: Workers<'_>, sampled: Sampled<'_>) -> Vec<Findings> {
    let Sampled { queries, columns, .. } = sampled;
    let nothing = Findings { floor: f32::NEG_INFINITY, likely: None };
    let mut findings = vec![nothing; queries.len()];
    let layout = tables.layout;
    let queries = &queries[..sampled.of_all_rows];
    let strips = layout.rows / STRIP_ROWS;
    let runs = (strips / (PART * RUN)).min(RUNS);
    if runs == 0 || !queries.iter().any(|query| sampled.is_sampled(query)) {
        return findings;
    }
    let mut parts = Vec::new();
    let (mut first, mut first_column, mut rest) = (0, 0, &mut findings[..queries.len()]);
    while !rest.is_empty() {
        // A group of columns, and what its last query has more.
        let last = columns.get(first_column + GROUP_QUERIES - 1);
        let end = last.map_or(queries.len(), |column| queries.len().min(column.query + 1));
        let end_column = columns.partition_point(|column| column.query < end);
        let (findings, later) = rest.split_at_mut(end - first);
        parts.push((first..end, first_column..end_column, findings));
        (first, first_column, rest) = (end, end_column, later);
    }
    workers.share(parts, |parts| {
        for (some, in_columns, findings) in parts {
            sampled.sample(tables, workers.instructions, runs, some, in_columns, findings);
        }
    });
    findings
}

/// A sample counts only the members of a bitmap that has at least this part of all rows. Of smaller
/// ones it has too few.
const LARGE_PART: usize = 2;
/// With fewer columns, a sample of strips takes longer than scores of some members.
const MANY: usize = 8;

impl Sampled<'_> {
    /// The rank of the row in the sample whose bound is the floor. Excluded rows may be the best of
    /// their groups. So may rows above a maximum score, any number of them: then the sample says
    /// nothing. Nor of small bitmaps, or if so few queries share it that some members say it sooner.
    fn rank(&self, query: &Query) -> usize {
        let Filter { ref rows, min_score: _, max_score } = query.filter;
        // Queries with a limit are not sampled.
        let RowSetParts { limit: _, bitmap, excluded } = rows.parts();
        let is_useful = bitmap.is_none_or(|bitmap| {
            self.columns.len() >= MANY && bitmap.len() >= bitmap.rows() / LARGE_PART
        });
        match max_score {
            None if is_useful => query.k.saturating_add(excluded.len()),
            _ => usize::MAX,
        }
    }

    fn is_sampled(&self, query: &Query) -> bool {
        match query.ranking() {
            Ranking::Vector(_) => self.rank(query) <= RANKS,
            Ranking::Formula(_) => {
                query.filter.max_score.is_none() && query.filter.rows.bitmap().is_none()
            }
        }
    }

    /// Finds out what that many runs of strips say of some consecutive queries, which have these
    /// columns.
    fn sample(
        self,
        tables: &Tables,
        instructions: InstructionSet,
        runs: usize,
        some: Range<usize>,
        in_columns: Range<usize>,
        findings: &mut [Findings],
    ) {
        let Self { prepared, table, .. } = self;
        let (first_query, first_column) = (some.start, in_columns.start);
        let (queries, columns) = (&self.queries[some], &self.columns[in_columns]);
        let layout = tables.layout;
        let strips = layout.rows / STRIP_ROWS;
        let strip_lines = STRIP_BLOCKS * layout.block_lines();
        let strips_from = |first: usize, count: usize| {
            let lines = first * strip_lines..(first + count) * strip_lines;
            let (high, low) = (&tables.high()[lines.clone()], Some(&tables.low()[lines]));
            Strips { high, low, layout }
        };
        let firsts = (0..runs).map(|run| run * strips / runs);
        let mut space = Space::new(layout, columns.len());
        let mut best = vec![[f32::NEG_INFINITY; STRIP_ROWS]; columns.len()];
        let bounds = &prepared.bounds[first_column..][..columns.len()];
        let mut thresholds: Vec<Threshold> =
            bounds.iter().map(|bounds| bounds.first.threshold(f32::NEG_INFINITY)).collect();
        let bitmap = |column: &Column<'_>| queries[column.query - first_query].filter.rows.bitmap();
        let have_bitmaps = columns.iter().any(|column| bitmap(column).is_some());
        let mut of_strip = best.clone();
        for first in firsts.clone() {
            let asked = prepared.planes(first_column, &thresholds);
            if !have_bitmaps {
                let (strips, purpose) = (strips_from(first, RUN), Purpose::Sample(&mut best));
                instructions.run(Scan { strips, asked, space: &mut space, purpose });
                continue;
            }
            // Rows outside of a bitmap do not count.
            for strip in first..first + RUN {
                of_strip.fill([f32::NEG_INFINITY; STRIP_ROWS]);
                let (strips, purpose) = (strips_from(strip, 1), Purpose::Sample(&mut of_strip));
                instructions.run(Scan { strips, asked, space: &mut space, purpose });
                for ((column, best), own) in columns.iter().zip(&mut best).zip(&of_strip) {
                    let members = bitmap(column).map_or(u32::MAX, |set| set.strip(strip));
                    for (row, (best, own)) in best.iter_mut().zip(own).enumerate() {
                        if members >> row & 1 == 1 {
                            *best = best.max(*own);
                        }
                    }
                }
            }
        }
        for (((column, bounds), threshold), best) in
            columns.iter().zip(bounds).zip(&mut thresholds).zip(&mut best)
        {
            let query = queries[column.query - first_query];
            threshold.offset = f32::INFINITY;
            if !self.is_sampled(query) {
                continue;
            }
            let rank = if column.is_query() { self.rank(query) } else { RANKS };
            let (_, bound, _) = best.select_nth_unstable_by(rank - 1, |a, b| b.total_cmp(a));
            if !column.is_query() {
                *threshold = bounds.first.threshold(bounds.first.of_sample(*bound));
            } else if *bound > 0.0 {
                // Rows of norm zero are never neighbours, and have a bound of zero.
                findings[column.query - first_query].floor = bounds.first.of_sample(*bound);
            }
        }
        // A bound of the dot product with a half-space's normal is no bound of a formula's score.
        // So the rows with the highest ones are found again, and scored.
        if columns.iter().all(|column| column.is_query()) {
            return;
        }
        let mut found = Vec::new();
        let mut rows: Vec<Vec<Row>> = vec![Vec::new(); queries.len()];
        for first in firsts {
            let asked = prepared.planes(first_column, &thresholds);
            let (strips, purpose) = (strips_from(first, RUN), Purpose::Find(&mut found));
            instructions.run(Scan { strips, asked, space: &mut space, purpose });
            for flagged in found.drain(..) {
                let strip = (first + flagged.strip as usize) * STRIP_ROWS;
                let in_strip = (0..STRIP_ROWS).filter(|row| flagged.rows >> row & 1 == 1);
                let in_table = in_strip.map(|row| strip + row).filter(|&row| row < layout.rows);
                rows[columns[flagged.query as usize].query - first_query]
                    .extend(in_table.map(|row| Row(row as u32)));
            }
        }
        let size = runs * RUN * STRIP_ROWS;
        for ((query, findings), mut rows) in queries.iter().zip(findings).zip(rows) {
            rows.sort_unstable();
            rows.dedup();
            if let (Ranking::Formula(scoring), false) = (query.ranking(), rows.is_empty()) {
                let best = best_scores(query, &rows, table, instructions);
                if let Some(&score) = best.get(query.k - 1) {
                    findings.floor = round_down(score);
                }
                let rank = best.len().min(RELIABLE_RANK);
                let score = rank.checked_sub(1).map(|index| best[index]);
                findings.likely = score
                    .map(|score| scoring.extrapolate(score, [rank, size], [query.k, layout.rows]));
            }
        }
    }
}

/// The best scores of these rows, descending: at least as many as the query asks for, or all that
/// pass the filter.
pub(super) fn best_scores(
    query: &Query,
    rows: &[Row],
    table: Table<'_>,
    instructions: InstructionSet,
) -> Vec<f64> {
    let mut best = TopK::new(query.k.max(RANKS));
    let mut scorer = Scorer::new(query, table, instructions);
    for (some, later) in with_later(rows) {
        scorer.hits(some.iter().copied(), later.iter().copied()).for_each(|hit| best.push(hit));
    }
    best.into_sorted().into_iter().map(|hit| hit.score).collect()
}

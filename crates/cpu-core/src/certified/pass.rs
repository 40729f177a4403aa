//! One certified pass over the derived table: finds the candidates of each query. The state of its
//! threads is in `worker`.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use contract::certificate::Unit;
use contract::{Filter, Query, Ranking, RowBitmap, Table};

use super::bounds::{round_down, round_up};
use super::columns::{self, Column};
use super::floor::Floor;
use super::layout::STRIP_ROWS;
use super::members;
use super::query::PreparedQueries;
use super::rescore::Candidate;
use super::row_table::RowTable;
use super::sample::{self, Findings, Sampled};
use super::tables::Tables;
use crate::InstructionSet;
use crate::threads::Workers;

/// Maximum number of strips per task: 1024 rows. The first tasks are smaller, because thresholds
/// rise between tasks, starting from nothing.
const TASK_STRIPS: RangeInclusive<usize> = 1..=32;

/// The size of a task, as a fraction of the strips before it.
const TASK_PART: usize = 4;

/// How much of every row of the derived table a scan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstLook {
    /// Only the high halves: half the bytes, for passes bound by memory.
    FourBits,
    /// All 8 bits: far fewer rows need a second comparison.
    EightBits,
}

/// A query's maximum score, between two float32. Rows above it can't be in the answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ceiling {
    /// A row whose upper bound is at most this has at most the maximum score. NaN if no row has.
    pub(crate) within: f32,
    /// A row whose lower bound is above this has more than the maximum score.
    pub(crate) above: f32,
}

impl Ceiling {
    fn of(query: &Query, unit: Unit) -> Self {
        // No product of unit vectors is above 1, so a maximum of 1 or more is no limit, though a
        // bound may be a little higher.
        match query.filter.max_score {
            Some(max) if max.is_nan() || unit.at_least(max) < 1.0 => {
                Self { within: round_down(unit.at_least(max)), above: round_up(unit.at_most(max)) }
            }
            _ => Self { within: f32::INFINITY, above: f32::INFINITY },
        }
    }
}

/// The rows of a set that all queries of a pass share, which can be looked at one by one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members<'a> {
    /// The bitmap of the row sets of all of its queries.
    pub(super) bitmap: &'a RowBitmap,
    pub(super) table: &'a RowTable,
}

impl Members<'_> {
    /// Rows of the table that have about as many members as a strip has rows.
    pub(super) fn rows_of_strip(self) -> usize {
        STRIP_ROWS * self.bitmap.rows().div_ceil(self.bitmap.len().max(1))
    }
}

/// The way in which a pass looks at rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(super) first: FirstLook,
    /// Whether a thread looks in another way while high halves rule out too few rows.
    pub(super) may_change: bool,
    /// `None`: queries have different sets, or there is no table by rows.
    pub(super) members: Option<Members<'a>>,
    /// Whether only members are looked at, and no strips.
    pub(super) only_members: bool,
}

/// The state shared by all threads of a pass.
pub(crate) struct Pass<'a> {
    pub(super) tables: &'a Tables,
    pub(super) instructions: InstructionSet,
    pub(super) look: Look<'a>,
    /// Sorted by the number of rows that they cover, most first, so that the queries of a task are
    /// always a prefix.
    pub(super) queries: &'a [&'a Query],
    /// The number of rows that each covers.
    pub(super) row_limits: Vec<usize>,
    /// The vectors that are scanned for, query by query.
    pub(super) columns: Vec<Column<'a>>,
    /// The columns of query `i` are those from `first_columns[i]` up to `first_columns[i + 1]`.
    pub(super) first_columns: Vec<usize>,
    pub(super) table: Table<'a>,
    pub(super) prepared: PreparedQueries,
    pub(super) floors: Vec<Floor>,
    pub(super) ceilings: Vec<Ceiling>,
    /// What bounds, floors and ceilings are measured in, `[queries]`.
    pub(super) units: Vec<Unit>,
    /// Queries with too many candidates: they have no certificate.
    pub(super) failed: Vec<AtomicBool>,
    /// Maximum number of a query's candidates per thread.
    pub(super) room: usize,
    next_strip: AtomicUsize,
    pub(super) second_looks: AtomicU64,
    pub(super) scored: AtomicU64,
}

impl<'a> Pass<'a> {
    /// `queries` are sorted by the number of rows that they cover, descending.
    pub(crate) fn new(
        tables: &'a Tables,
        workers: Workers<'_>,
        look: Look<'a>,
        queries: &'a [&'a Query],
        mut columns: Vec<Column<'a>>,
        table: Table<'a>,
        room: usize,
    ) -> Self {
        let units: Vec<Unit> =
            queries.iter().map(|query| tables.lift.unit(query.vectors()[0].norm)).collect();
        let floor = |((query, unit), sampled): ((&&Query, &Unit), Findings)| {
            // The other fields apply where candidates are taken and rescored.
            let Filter { rows: _, min_score, max_score: _ } = query.filter;
            let least = min_score.map_or(f64::NEG_INFINITY, |min| unit.at_least(min));
            // With a minimum of NaN nothing passes; the filter itself ensures that.
            let least = if least.is_nan() { f32::NEG_INFINITY } else { round_down(least) };
            Floor::new(query.k, least.max(sampled.floor))
        };
        let mut prepared = PreparedQueries::new(&columns, tables, workers);
        let mut first_columns: Vec<usize> = (0..queries.len())
            .map(|i| columns.partition_point(|column| column.query < i))
            .collect();
        first_columns.push(columns.len());
        let limit = |query: &&Query| query.filter.row_limit(tables.layout.rows);
        let row_limits: Vec<usize> = queries.iter().map(limit).collect();
        let of_all_rows = row_limits.partition_point(|&limit| limit >= tables.layout.rows);
        let what = Sampled { queries, of_all_rows, columns: &columns, prepared: &prepared, table };
        let mut sampled = sample::sample(tables, workers, what);
        // The first tasks of members are as small as a sample of them.
        if !look.only_members {
            members::sample(queries, &units, table, workers, &mut sampled);
        }
        let mut changed = vec![false; columns.len()];
        for (index, (query, found)) in queries.iter().zip(&sampled).enumerate() {
            if let (Ranking::Formula(scoring), Some(likely)) = (query.ranking(), found.likely) {
                let range = first_columns[index]..first_columns[index + 1];
                changed[range.clone()].fill(true);
                let better = columns::of_formula(index, scoring, Some(likely), &table);
                columns.splice(range, better);
            }
        }
        prepared.prepare(|column| changed[column], &columns, tables, workers);
        Self {
            tables,
            instructions: workers.instructions,
            look,
            queries,
            row_limits,
            columns,
            first_columns,
            table,
            prepared,
            floors: queries.iter().zip(&units).zip(sampled).map(floor).collect(),
            ceilings: queries
                .iter()
                .zip(&units)
                .map(|(query, &unit)| Ceiling::of(query, unit))
                .collect(),
            units,
            failed: queries.iter().map(|_| AtomicBool::new(false)).collect(),
            room,
            next_strip: AtomicUsize::new(0),
            second_looks: AtomicU64::new(0),
            scored: AtomicU64::new(0),
        }
    }

    pub(super) fn columns_of(&self, query: usize) -> Range<usize> {
        self.first_columns[query]..self.first_columns[query + 1]
    }

    /// Takes the next strips, of this many in total.
    pub(super) fn next_task(&self, strips: usize) -> Option<(usize, usize)> {
        let end = |first: usize| {
            let size = (first / TASK_PART).clamp(*TASK_STRIPS.start(), *TASK_STRIPS.end());
            (first < strips).then(|| strips.min(first + size))
        };
        let taken = self.next_strip.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end);
        taken.ok().and_then(|first| Some((first, end(first)?)))
    }

    /// The rows that may reach a query's last floor, from what each thread found; `None` if they
    /// were too many.
    pub(crate) fn candidates(
        &self,
        query: usize,
        found: &[Vec<Vec<Candidate>>],
    ) -> Option<Vec<Candidate>> {
        if self.failed[query].load(Ordering::Relaxed) {
            return None;
        }
        let floor = self.floors[query].get();
        let of_query = found.iter().flat_map(|found| &found[query]);
        Some(of_query.filter(|candidate| candidate.upper >= floor).copied().collect())
    }
}

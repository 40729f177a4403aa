//! One certified pass over the derived table: finds the candidates of each query.
//!
//! A sample gives the first floors. Threads take tasks of strips. A strip is unpacked and multiplied by the first
//! planes of all queries, and the sums are compared with the queries' thresholds. The few rows that may be among a
//! query's best are candidates. If only their high halves were read, they are first compared again, with all 8 bits and
//! both planes. The remaining candidates raise the floor for all threads.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use contract::{FilterParts, Query, Ranking, Row, Table};

use super::bounds::{Threshold, round_down, round_up};
use super::columns::{self, Column};
use super::floor::Floor;
use super::kernels::{Flagged, Purpose, Space, Strips};
use super::layout::{BLOCK_ROWS, Line, RowScale, STRIP_BLOCKS, STRIP_ROWS, Sums};
use super::query::{PreparedBounds, PreparedQueries};
use super::sample::{self, Findings, Sampled};
use super::score::{ROWS, Scorer};
use super::tables::Tables;
use crate::InstructionSet;
use crate::row_limits::count_covering;

/// Maximum number of strips per task: 1024 rows. The first tasks are smaller, because thresholds rise between tasks,
/// starting from nothing.
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

/// A row that may be in a query's answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) row: Row,
    /// An upper bound on its score.
    pub(crate) upper: f32,
}

/// A query's maximum score, between two float32. Rows above it can't be in the answer.
#[derive(Debug, Clone, Copy)]
struct Ceiling {
    /// A row whose upper bound is at most this has at most the maximum score. NaN if no row has.
    within: f32,
    /// A row whose lower bound is above this has more than the maximum score.
    above: f32,
}

impl Ceiling {
    fn of(query: &Query) -> Self {
        // No cosine is above 1, so a maximum of 1 or more is no limit, though a bound may be a little higher.
        match query.filter().parts().max_score {
            Some(max) if max.is_nan() || max < 1.0 => {
                Self { within: round_down(max), above: round_up(max) }
            }
            _ => Self { within: f32::INFINITY, above: f32::INFINITY },
        }
    }
}

/// Maximum number of rows above their query's maximum score that a thread takes, per candidate that it has room for.
/// Beyond this, a scan of all rows is better, because it can be cut into slices.
const ABOVE_PER_CANDIDATE: usize = 8;

/// The state shared by all threads of a pass.
pub(crate) struct Pass<'a> {
    tables: &'a Tables,
    instructions: InstructionSet,
    first_look: FirstLook,
    /// Sorted by the number of rows that they cover, most first, so that the queries of a task are always a prefix.
    queries: &'a [&'a Query],
    /// The vectors that are scanned for, query by query.
    columns: Vec<Column<'a>>,
    /// The columns of query `i` are those from `first_columns[i]` up to `first_columns[i + 1]`.
    first_columns: Vec<usize>,
    table: Table<'a>,
    prepared: PreparedQueries,
    floors: Vec<Floor>,
    ceilings: Vec<Ceiling>,
    /// Queries with too many candidates: they have no certificate.
    failed: Vec<AtomicBool>,
    /// Maximum number of a query's candidates per thread.
    room: usize,
    next_strip: AtomicUsize,
    second_looks: AtomicU64,
    scored: AtomicU64,
}

/// The result of a pass.
pub(crate) struct Outcome {
    /// For each query, the rows that may reach its last floor; `None` if they were too many.
    pub(crate) candidates: Vec<Option<Vec<Candidate>>>,
    /// Rows that were scored by formulas of several cosines.
    pub(crate) scored: u64,
    pub(crate) second_looks: u64,
}

impl<'a> Pass<'a> {
    /// `queries` are sorted by the number of rows that they cover, descending.
    pub(crate) fn new(
        tables: &'a Tables,
        instructions: InstructionSet,
        first_look: FirstLook,
        queries: &'a [&'a Query],
        mut columns: Vec<Column<'a>>,
        table: Table<'a>,
        room: usize,
    ) -> Self {
        let floor = |(query, sampled): (&&Query, Findings)| {
            // The other fields apply where candidates are taken and rescored.
            let FilterParts { excluded: _, first_rows: _, min_score, max_score: _ } =
                query.filter().parts();
            let least = min_score.unwrap_or(f64::NEG_INFINITY);
            // With a minimum of NaN nothing passes; the filter itself ensures that.
            let least = if least.is_nan() { f32::NEG_INFINITY } else { round_down(least) };
            Floor::new(query.k(), least.max(sampled.floor))
        };
        let mut prepared = PreparedQueries::new(&columns, tables, instructions);
        let mut first_columns: Vec<usize> = (0..queries.len())
            .map(|i| columns.partition_point(|column| column.query < i))
            .collect();
        first_columns.push(columns.len());
        let what = Sampled { queries, columns: &columns, prepared: &prepared, table };
        let sampled = sample::sample(tables, instructions, what);
        let mut changed = Vec::new();
        for (index, (query, found)) in queries.iter().zip(&sampled).enumerate() {
            if let (Ranking::Formula(scoring), Some(likely)) = (query.ranking(), found.likely) {
                let range = first_columns[index]..first_columns[index + 1];
                changed.extend(range.clone());
                let better = columns::of_formula(index, scoring, Some(likely), &table);
                columns.splice(range, better);
            }
        }
        prepared.prepare(&changed, &columns, tables, instructions);
        Self {
            tables,
            instructions,
            first_look,
            queries,
            columns,
            first_columns,
            table,
            prepared,
            floors: queries.iter().zip(sampled).map(floor).collect(),
            ceilings: queries.iter().map(|query| Ceiling::of(query)).collect(),
            failed: queries.iter().map(|_| AtomicBool::new(false)).collect(),
            room,
            next_strip: AtomicUsize::new(0),
            second_looks: AtomicU64::new(0),
            scored: AtomicU64::new(0),
        }
    }

    fn columns_of(&self, query: usize) -> Range<usize> {
        self.first_columns[query]..self.first_columns[query + 1]
    }

    fn row_limit(&self, query: usize) -> usize {
        self.queries[query].filter().row_limit(self.tables.layout.rows)
    }

    /// One thread's share: takes tasks until none are left. Returns the candidates of each query.
    pub(crate) fn run_tasks(&self) -> Vec<Vec<Candidate>> {
        let rows = self.queries.first().map_or(0, |_| self.row_limit(0));
        let strips = rows.div_ceil(STRIP_ROWS);
        let mut worker = Worker::new(self);
        loop {
            let Some((first, end)) = self.next_task(strips) else {
                self.second_looks.fetch_add(worker.second_looks, Ordering::Relaxed);
                self.scored
                    .fetch_add(worker.scored.iter().sum::<usize>() as u64, Ordering::Relaxed);
                return worker.candidates;
            };
            let active = count_covering(first * STRIP_ROWS, self.queries, self.tables.layout.rows);
            worker.refresh_thresholds(active);
            worker.scan(first, end, active);
        }
    }

    /// Takes the next strips, of this many in total.
    fn next_task(&self, strips: usize) -> Option<(usize, usize)> {
        let end = |first: usize| {
            let size = (first / TASK_PART).clamp(*TASK_STRIPS.start(), *TASK_STRIPS.end());
            (first < strips).then(|| strips.min(first + size))
        };
        let taken = self.next_strip.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end);
        taken.ok().and_then(|first| Some((first, end(first)?)))
    }

    /// Merges the threads' results.
    pub(crate) fn finish(self, threads: Vec<Vec<Vec<Candidate>>>) -> Outcome {
        let mut all: Vec<Vec<Candidate>> = self.queries.iter().map(|_| Vec::new()).collect();
        for candidates in threads {
            for (all, candidates) in all.iter_mut().zip(candidates) {
                all.extend(candidates);
            }
        }
        let candidates = all
            .into_iter()
            .zip(&self.floors)
            .zip(&self.failed)
            .map(|((mut candidates, floor), failed)| {
                let floor = floor.get();
                candidates.retain(|candidate| candidate.upper >= floor);
                (!failed.load(Ordering::Relaxed)).then_some(candidates)
            })
            .collect();
        let (second_looks, scored) = (self.second_looks.into_inner(), self.scored.into_inner());
        Outcome { candidates, scored, second_looks }
    }
}

/// The state of one thread.
struct Worker<'a> {
    pass: &'a Pass<'a>,
    /// The floors that this thread last saw, `[queries]`, and the thresholds derived from them, `[columns]`.
    floors: Vec<f32>,
    thresholds: Vec<Threshold>,
    candidates: Vec<Vec<Candidate>>,
    space: Space,
    found: Vec<Flagged>,
    /// The lower bounds of each query's new candidates.
    lower_bounds: Vec<Vec<f32>>,
    /// Rows of each query that were above its maximum score.
    above: Vec<usize>,
    second_looks: u64,
    /// For each query with a formula: rows that a half-space may contain, and the means to score them.
    unscored: Vec<Vec<Row>>,
    scorers: Vec<Option<Scorer<'a>>>,
    /// For each query, the number of rows scored by its formula.
    scored: Vec<usize>,
}

impl<'a> Worker<'a> {
    fn new(pass: &'a Pass<'a>) -> Self {
        let queries = pass.queries.len();
        let floors: Vec<f32> = pass.floors.iter().map(Floor::get).collect();
        let thresholds = pass.columns.iter().zip(&pass.prepared.bounds);
        let threshold = |(column, bounds): (&Column<'_>, &PreparedBounds)| {
            bounds.first.threshold(column.floor(floors[column.query]))
        };
        Self {
            pass,
            thresholds: thresholds.map(threshold).collect(),
            unscored: vec![Vec::new(); queries],
            scorers: pass.queries.iter().map(|_| None).collect(),
            scored: vec![0; queries],
            floors,
            candidates: vec![Vec::new(); queries],
            space: Space::new(pass.tables.layout, pass.columns.len()),
            found: Vec::new(),
            lower_bounds: vec![Vec::new(); queries],
            above: vec![0; queries],
            second_looks: 0,
        }
    }

    /// Takes over floors that other threads have raised.
    fn refresh_thresholds(&mut self, active: usize) {
        for query in 0..active {
            self.refresh_threshold(query);
        }
    }

    fn refresh_threshold(&mut self, query: usize) {
        let floor = self.pass.floors[query].get();
        if floor > self.floors[query] {
            self.floors[query] = floor;
            for column in self.pass.columns_of(query) {
                let floor = self.pass.columns[column].floor(floor);
                let bounds = &self.pass.prepared.bounds[column].first;
                self.thresholds[column] = bounds.threshold(floor);
            }
        }
    }

    /// Scans strips for the first `active` queries, then compares the rows found again.
    fn scan(&mut self, first: usize, end: usize, active: usize) {
        let Pass { tables, instructions, first_look, prepared, .. } = self.pass;
        let layout = tables.layout;
        let strip_lines = STRIP_BLOCKS * layout.block_lines();
        let lines = first * strip_lines..end * strip_lines;
        let low = match first_look {
            FirstLook::FourBits => None,
            FirstLook::EightBits => Some(&tables.low()[lines.clone()]),
        };
        let strips = Strips { high: &tables.high()[lines], low, layout };
        let columns = self.pass.first_columns[active];
        let asked = prepared.first(&self.thresholds[..columns]);
        let purpose = Purpose::Find(&mut self.found);
        instructions.scan(strips, asked, &mut self.space, purpose);
        let found = std::mem::take(&mut self.found);
        for looked_at in &found {
            let column = looked_at.query as usize;
            if let Some(low) = low {
                let scales = |b| {
                    &low[(looked_at.strip as usize * STRIP_BLOCKS + b) * layout.block_lines()
                        + layout.lines()]
                };
                let strip = first + looked_at.strip as usize;
                self.take(column, strip, [scales(0), scales(1)], looked_at);
                continue;
            }
            for b in 0..STRIP_BLOCKS {
                let rows = looked_at.rows >> (b * BLOCK_ROWS) & 0xffff;
                if rows != 0 {
                    let block = (first + looked_at.strip as usize) * STRIP_BLOCKS + b;
                    self.compare_fully(column, block, rows);
                }
            }
        }
        for query in 0..active {
            self.score_unscored(query);
            if low.is_some() {
                self.end_look(query);
            }
        }
        self.found = found;
        self.found.clear();
    }

    /// Accepts rows of a strip as candidates if the scan has read all 8 bits. A second comparison could only add the
    /// rest of the query's bits, which costs more than scoring the few rows that the last floor leaves.
    fn take(
        &mut self,
        column: usize,
        strip: usize,
        scales: [&Line; STRIP_BLOCKS],
        found: &Flagged,
    ) {
        let pass = self.pass;
        let query = pass.columns[column].query;
        if pass.failed[query].load(Ordering::Relaxed) {
            return;
        }
        let filter = pass.queries[query].filter();
        let bounds = &pass.prepared.bounds[column].first;
        let is_query = pass.columns[column].is_query();
        let limit = pass.row_limit(query);
        for (b, &scales) in scales.iter().enumerate() {
            let block = strip * STRIP_BLOCKS + b;
            let mut rows = found.rows >> (b * BLOCK_ROWS) & 0xffff;
            while rows != 0 {
                let r = rows.trailing_zeros() as usize;
                rows &= rows - 1;
                let row = block * BLOCK_ROWS + r;
                let scale = RowScale::at(scales, r);
                // A step of zero: a row of norm zero.
                if row >= limit || scale.step() == 0.0 || filter.excludes(Row(row as u32)) {
                    continue;
                }
                if !is_query {
                    self.unscored[query].push(Row(row as u32));
                    continue;
                }
                let bound = found.bounds[b * BLOCK_ROWS + r];
                self.admit(query, row, bounds.of_scan(bound, scale.residual()));
            }
        }
    }

    /// Compares some rows of a block again, with all 8 bits and both planes of a query. Bit `r` of `rows` stands for
    /// the block's row `r`.
    fn compare_fully(&mut self, column: usize, block: usize, mut rows: u32) {
        let pass = self.pass;
        let query = pass.columns[column].query;
        if pass.failed[query].load(Ordering::Relaxed) {
            return;
        }
        let whole = pass.tables.block(block);
        let mut sums = [Sums::ZERO; 2];
        let planes = pass.prepared.both(column);
        pass.instructions.both_planes(whole, planes, &mut self.space, &mut sums);

        let filter = pass.queries[query].filter();
        let bounds = &pass.prepared.bounds[column].both;
        let is_query = pass.columns[column].is_query();
        let column_floor = pass.columns[column].floor(self.floors[query]);
        let limit = pass.row_limit(query);
        while rows != 0 {
            let r = rows.trailing_zeros() as usize;
            rows &= rows - 1;
            let row = block * BLOCK_ROWS + r;
            let scale = RowScale::at(whole.scales, r);
            // A step of zero: a row of norm zero.
            if row >= limit || scale.step() == 0.0 || filter.excludes(Row(row as u32)) {
                continue;
            }
            self.second_looks += 1;
            let sum = PreparedQueries::joined([sums[0].0[r], sums[1].0[r]]) - bounds.bias;
            let score = sum as f64 * bounds.step * f64::from(scale.step());
            let error = bounds.error(scale.residual());
            let upper = round_up(score + error);
            if is_query {
                self.admit(query, row, [round_down(score - error), upper]);
            } else if upper.is_nan() || upper >= column_floor {
                self.unscored[query].push(Row(row as u32));
            }
        }
        if is_query {
            self.end_look(query);
        }
    }

    /// Scores the rows that a half-space of the query may contain. Scores that reach the floor make candidates, and
    /// raise it.
    fn score_unscored(&mut self, query: usize) {
        if self.unscored[query].is_empty() {
            return;
        }
        let pass = self.pass;
        let mut rows = std::mem::take(&mut self.unscored[query]);
        // Several half-spaces may contain the same row.
        rows.sort_unstable();
        rows.dedup();
        let asked = pass.queries[query];
        for some in rows.chunks(ROWS) {
            if pass.failed[query].load(Ordering::Relaxed) {
                break;
            }
            let scorer = self.scorers[query]
                .get_or_insert_with(|| Scorer::new(asked, pass.table, pass.instructions));
            for (&row, &score) in some.iter().zip(scorer.score(some.iter().copied())) {
                let upper = round_up(score);
                if score.is_nan()
                    || upper < self.floors[query]
                    || !asked.filter().admits(row, score)
                {
                    continue;
                }
                self.candidates[query].push(Candidate { row, upper });
                let lower = round_down(score);
                if lower > self.floors[query] {
                    self.lower_bounds[query].push(lower);
                }
            }
            self.scored[query] += some.len();
            self.end_look(query);
            if self.scored[query] > pass.room {
                self.give_up(query);
            }
        }
        rows.clear();
        self.unscored[query] = rows;
    }

    /// Makes a row a candidate unless its bounds rule it out. The filter has been checked, except for the score. Only
    /// rows that are surely admitted raise the floor.
    #[inline]
    fn admit(&mut self, query: usize, row: usize, [lower, upper]: [f32; 2]) {
        let ceiling = self.pass.ceilings[query];
        // Not `upper >= floor`: NaN keeps the row.
        if upper < self.floors[query] {
            return;
        }
        if lower > ceiling.above {
            self.above[query] += 1;
            return;
        }
        self.candidates[query].push(Candidate { row: Row(row as u32), upper });
        if lower > self.floors[query] && upper <= ceiling.within {
            self.lower_bounds[query].push(lower);
        }
    }

    /// Raises the query's floor by the new candidates, and makes room for more.
    fn end_look(&mut self, query: usize) {
        let pass = self.pass;
        if !self.lower_bounds[query].is_empty() {
            pass.floors[query].offer(self.lower_bounds[query].drain(..));
            self.refresh_threshold(query);
        }
        if self.candidates[query].len() > pass.room {
            self.make_room(query);
        }
        if self.above[query] > ABOVE_PER_CANDIDATE * pass.room {
            self.give_up(query);
        }
    }

    /// Drops candidates whose upper bounds are below the floor. If too many are left, the query has no certificate
    /// and needs no more candidates.
    fn make_room(&mut self, query: usize) {
        let floor = self.floors[query];
        self.candidates[query].retain(|candidate| candidate.upper >= floor);
        if self.candidates[query].len() > self.pass.room / 2 {
            self.give_up(query);
        }
    }

    /// Marks the query as without a certificate, so that it looks at no more rows.
    fn give_up(&mut self, query: usize) {
        self.pass.failed[query].store(true, Ordering::Relaxed);
        self.candidates[query] = Vec::new();
        self.above[query] = 0;
        self.floors[query] = f32::INFINITY;
        for column in self.pass.columns_of(query) {
            self.thresholds[column].offset = f32::INFINITY;
        }
    }
}

//! One certified pass over the derived table: finds the candidates of each query.
//!
//! A sample gives the first floors. Threads take tasks of strips. A strip is unpacked and multiplied by the first
//! planes of all queries, and the sums are compared with the queries' thresholds. The few rows that may be among a
//! query's best are candidates. If only their high halves were read, they are first compared again, with all 8 bits and
//! both planes. The remaining candidates raise the floor for all threads.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use contract::{FilterParts, Query, Row};

use super::bounds::{Threshold, round_down, round_up};
use super::floor::Floor;
use super::kernels::{Flagged, Purpose, Space, Strips};
use super::layout::{BLOCK_ROWS, Line, RowScale, STRIP_BLOCKS, STRIP_ROWS, Sums};
use super::query::PreparedQueries;
use super::sample;
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
    prepared: PreparedQueries,
    floors: Vec<Floor>,
    ceilings: Vec<Ceiling>,
    /// Queries with too many candidates: they have no certificate.
    failed: Vec<AtomicBool>,
    /// Maximum number of a query's candidates per thread.
    room: usize,
    next_strip: AtomicUsize,
    second_looks: AtomicU64,
}

/// The result of a pass.
pub(crate) struct Outcome {
    /// For each query, the rows that may reach its last floor; `None` if they were too many.
    pub(crate) candidates: Vec<Option<Vec<Candidate>>>,
    pub(crate) second_looks: u64,
}

impl<'a> Pass<'a> {
    /// `queries` are sorted by the number of rows that they cover, descending.
    pub(crate) fn new(
        tables: &'a Tables,
        instructions: InstructionSet,
        first_look: FirstLook,
        queries: &'a [&'a Query],
        prepared: PreparedQueries,
        room: usize,
    ) -> Self {
        let floor = |(query, sampled): (&&Query, f32)| {
            // The other fields apply where candidates are taken and rescored.
            let FilterParts { excluded: _, first_rows: _, min_score, max_score: _ } =
                query.filter().parts();
            let least = min_score.unwrap_or(f64::NEG_INFINITY);
            // With a minimum of NaN nothing passes; the filter itself ensures that.
            let least = if least.is_nan() { f32::NEG_INFINITY } else { round_down(least) };
            Floor::new(query.k(), least.max(sampled))
        };
        let sampled = sample::floors(tables, instructions, queries, &prepared);
        Self {
            tables,
            instructions,
            first_look,
            queries,
            prepared,
            floors: queries.iter().zip(sampled).map(floor).collect(),
            ceilings: queries.iter().map(|query| Ceiling::of(query)).collect(),
            failed: queries.iter().map(|_| AtomicBool::new(false)).collect(),
            room,
            next_strip: AtomicUsize::new(0),
            second_looks: AtomicU64::new(0),
        }
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
        Outcome { candidates, second_looks: self.second_looks.into_inner() }
    }
}

/// The state of one thread.
struct Worker<'a> {
    pass: &'a Pass<'a>,
    /// The floors that this thread last saw, and the thresholds derived from them.
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
}

impl<'a> Worker<'a> {
    fn new(pass: &'a Pass<'a>) -> Self {
        let queries = pass.queries.len();
        let floors: Vec<f32> = pass.floors.iter().map(Floor::get).collect();
        let thresholds = pass.prepared.bounds.iter().zip(&floors);
        Self {
            pass,
            thresholds: thresholds.map(|(bounds, &floor)| bounds.first.threshold(floor)).collect(),
            floors,
            candidates: vec![Vec::new(); queries],
            space: Space::new(pass.tables.layout, queries),
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
            self.thresholds[query] = self.pass.prepared.bounds[query].first.threshold(floor);
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
        let asked = prepared.first(&self.thresholds[..active]);
        let purpose = Purpose::Find(&mut self.found);
        instructions.scan(strips, asked, &mut self.space, purpose);
        let found = std::mem::take(&mut self.found);
        for looked_at in &found {
            if let Some(low) = low {
                let scales = |b| {
                    &low[(looked_at.strip as usize * STRIP_BLOCKS + b) * layout.block_lines()
                        + layout.lines()]
                };
                let strip = first + looked_at.strip as usize;
                self.take(looked_at.query as usize, strip, [scales(0), scales(1)], looked_at);
                continue;
            }
            for b in 0..STRIP_BLOCKS {
                let rows = looked_at.rows >> (b * BLOCK_ROWS) & 0xffff;
                if rows != 0 {
                    let block = (first + looked_at.strip as usize) * STRIP_BLOCKS + b;
                    self.compare_fully(looked_at.query as usize, block, rows);
                }
            }
        }
        if low.is_some() {
            for query in 0..active {
                self.end_look(query);
            }
        }
        self.found = found;
        self.found.clear();
    }

    /// Accepts rows of a strip as candidates if the scan has read all 8 bits. A second comparison could only add the
    /// rest of the query's bits, which costs more than scoring the few rows that the last floor leaves.
    fn take(&mut self, query: usize, strip: usize, scales: [&Line; STRIP_BLOCKS], found: &Flagged) {
        let pass = self.pass;
        if pass.failed[query].load(Ordering::Relaxed) {
            return;
        }
        let filter = pass.queries[query].filter();
        let bounds = &pass.prepared.bounds[query].first;
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
                let bound = found.bounds[b * BLOCK_ROWS + r];
                self.admit(query, row, bounds.of_scan(bound, scale.residual()));
            }
        }
    }

    /// Compares some rows of a block again, with all 8 bits and both planes of a query. Bit `r` of `rows` stands for
    /// the block's row `r`.
    fn compare_fully(&mut self, query: usize, block: usize, mut rows: u32) {
        let pass = self.pass;
        if pass.failed[query].load(Ordering::Relaxed) {
            return;
        }
        let whole = pass.tables.block(block);
        let mut sums = [Sums::ZERO; 2];
        let planes = pass.prepared.both(query);
        pass.instructions.both_planes(whole, planes, &mut self.space, &mut sums);

        let filter = pass.queries[query].filter();
        let bounds = &pass.prepared.bounds[query].both;
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
            self.admit(query, row, [round_down(score - error), round_up(score + error)]);
        }
        self.end_look(query);
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
        self.thresholds[query].offset = f32::INFINITY;
    }
}

//! One thread of a certified pass: its share of the strips, and the candidates that it finds there.

mod gather;

use std::sync::atomic::Ordering;

use contract::Row;

use gather::positions;

use crate::certified::bounds::{Threshold, round_down, round_up};
use crate::certified::columns::Column;
use crate::certified::floor::Floor;
use crate::certified::kernels::{BothPlanes, Flagged, Purpose, Scan, Space, Strips};
use crate::certified::layout::{BLOCK_ROWS, RowScale, STRIP_BLOCKS, STRIP_ROWS, Sums};
use crate::certified::pass::{FirstLook, Look, Members, Pass};
use crate::certified::query::{PreparedBounds, PreparedQueries};
use crate::certified::rescore::Candidate;
use crate::certified::sample::best_scores;
use crate::certified::score::{Scorer, with_later};

/// Maximum number of rows above their query's maximum score that a thread takes, per candidate that
/// it has room for. Beyond this, a scan of all rows is better, because it can be cut into slices.
const ABOVE_PER_CANDIDATE: usize = 8;

/// The same for any room. Each such row takes some 250 ns, so a query with a low maximum would take
/// as long as a full pass, and no other query of its pass would be answered before.
pub(super) const MOST_ABOVE: usize = 2048;

/// If second looks are more than this part of the rows of a task, the next ones read all 8 bits at
/// once: those of the members if possible, otherwise of all rows. Reading the other half of a row
/// takes as long as a sixteenth of a second look.
const DENSE: u64 = 16;

/// For this many times as many strips; then high halves are tried again. Each time in vain, for
/// twice as many, up to a limit.
const DENSE_STRIPS: std::ops::RangeInclusive<usize> = 8..=128;

/// Members that are more than this part of all rows take longer to read than all rows.
const MOST_MEMBERS: f64 = 0.75;

/// Strips between the one whose rows are prefetched and the one whose rows are compared again.
const FOUND_AHEAD: usize = 4;

/// One thread's share of a pass: takes tasks until none are left. Returns the candidates of each
/// query.
pub(super) fn run_tasks(pass: &Pass<'_>) -> Vec<Vec<Candidate>> {
    let end = pass.row_limits.first().copied().unwrap_or(0);
    // Where members are few, a task has as many of them, and not of rows, as any other.
    let only_members = pass.look.members.filter(|_| pass.look.only_members);
    let part = only_members.map_or(STRIP_ROWS, Members::rows_of_strip);
    let mut worker = Worker::new(pass);
    while let Some((first, last)) = pass.next_task(end.div_ceil(part)) {
        let rows = first * part..last * part;
        let active = pass.row_limits.partition_point(|&limit| limit > rows.start);
        if let Some(members) = only_members {
            (0..active).for_each(|query| worker.refresh_threshold(query));
            worker.gather(members, rows, active);
            continue;
        }
        if !pass.queries[..active].iter().any(|query| query.filter.rows.meets(rows.clone())) {
            continue;
        }
        // Floors that other threads have raised.
        (0..active).for_each(|query| worker.refresh_threshold(query));
        match worker.look_at(last - first) {
            LookAt::Members(members) => worker.gather(members, rows, active),
            LookAt::Strips(first_look) => worker.scan(first, last, first_look, active),
        }
    }
    pass.second_looks.fetch_add(worker.second_looks, Ordering::Relaxed);
    let scored: u64 = worker.formulas.iter().flatten().map(|rows| rows.scored as u64).sum();
    pass.scored.fetch_add(scored, Ordering::Relaxed);
    worker.finish()
}

/// If a thread has found this many candidates of a query, and this many for each hit, the best of
/// them are scored, and again when there are this many times as many. A score is a higher floor
/// than a lower bound.
const SCORED_FROM: usize = 256;
const SCORED_FROM_PER_HIT: usize = 16;
const SCORED_AGAIN: usize = 4;

/// The rows that a thread looks at in a task.
enum LookAt<'a> {
    /// Only members, with all bits.
    Members(Members<'a>),
    Strips(FirstLook),
}

/// The state of one thread.
struct Worker<'a> {
    pass: &'a Pass<'a>,
    /// The floors that this thread last saw, `[queries]`, and the thresholds derived from them,
    /// `[columns]`.
    floors: Vec<f32>,
    thresholds: Vec<Threshold>,
    /// For each query, the rows that may be in its answer.
    candidates: Vec<Vec<Candidate>>,
    space: Space,
    found: Vec<Flagged>,
    /// The members of a task.
    members: Vec<Row>,
    again: gather::Again,
    /// The number of candidates of each query when the best of them are scored.
    scored_from: Vec<usize>,
    /// The lower bounds of each query's new candidates.
    lower_bounds: Vec<Vec<f32>>,
    /// Rows of each query that were above its maximum score.
    above: Vec<usize>,
    second_looks: u64,
    /// The number of strips to look at in another way, because scores are dense at the threshold.
    dense_strips: usize,
    /// The factor by which a task's strips are multiplied to become the next `dense_strips`.
    dense_again: usize,
    /// For each query: `None` if it has no formula, or no half-space of it has contained a row yet.
    formulas: Vec<Option<Box<FormulaRows<'a>>>>,
}

/// The rows that may be in the half-spaces of a query's formula.
struct FormulaRows<'a> {
    unscored: Vec<Row>,
    scorer: Scorer<'a>,
    /// The number of rows scored so far.
    scored: usize,
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
            formulas: pass.queries.iter().map(|_| None).collect(),
            floors,
            candidates: vec![Vec::new(); queries],
            scored_from: vec![SCORED_FROM; queries],
            space: Space::new(pass.tables.layout, pass.columns.len()),
            found: Vec::new(),
            members: Vec::new(),
            again: gather::Again::default(),
            lower_bounds: vec![Vec::new(); queries],
            above: vec![0; queries],
            second_looks: 0,
            dense_strips: 0,
            dense_again: *DENSE_STRIPS.start(),
        }
    }

    /// The candidates that the floors leave now: few of those that were taken while the floors
    /// rose.
    fn finish(mut self) -> Vec<Vec<Candidate>> {
        for (candidates, floor) in self.candidates.iter_mut().zip(&self.pass.floors) {
            let floor = floor.get();
            candidates.retain(|row| row.upper >= floor);
        }
        self.candidates
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

    /// The rows and bits of the next `strips` that are looked at first.
    fn look_at(&mut self, strips: usize) -> LookAt<'a> {
        let Look { first, members, .. } = self.pass.look;
        let is_dense = self.dense_strips > 0;
        self.dense_strips = self.dense_strips.saturating_sub(strips);
        let are_few = |members: &Members<'_>| {
            members.bitmap.len() as f64 <= MOST_MEMBERS * members.bitmap.rows() as f64
        };
        match members.filter(are_few) {
            _ if !is_dense => LookAt::Strips(first),
            Some(members) => LookAt::Members(members),
            None => LookAt::Strips(FirstLook::EightBits),
        }
    }

    /// Notes the second looks of a task of this many strips.
    fn end_first_look(&mut self, strips: usize, second_looks: u64) {
        let rows = (strips * STRIP_ROWS) as u64;
        if !self.pass.look.may_change {
            return;
        }
        if second_looks * DENSE > rows {
            self.dense_strips = strips * self.dense_again;
            self.dense_again = (2 * self.dense_again).min(*DENSE_STRIPS.end());
        } else {
            self.dense_again = *DENSE_STRIPS.start();
        }
    }

    /// Scans strips for the first `active` queries, then compares the rows found again.
    fn scan(&mut self, first: usize, end: usize, first_look: FirstLook, active: usize) {
        let Pass { tables, instructions, prepared, .. } = self.pass;
        let looks_before = self.second_looks;
        let layout = tables.layout;
        let strip_lines = STRIP_BLOCKS * layout.block_lines();
        let lines = first * strip_lines..end * strip_lines;
        let low = match first_look {
            FirstLook::FourBits => None,
            FirstLook::EightBits => Some(&tables.low()[lines.clone()]),
        };
        let strips = Strips { high: &tables.high()[lines], low, layout };
        let columns = self.pass.first_columns[active];
        let asked = prepared.planes(0, &self.thresholds[..columns]);
        let purpose = Purpose::Find(&mut self.found);
        instructions.run(Scan { strips, asked, space: &mut self.space, purpose });
        let found = std::mem::take(&mut self.found);
        for (index, looked_at) in found.iter().enumerate() {
            let column = looked_at.query as usize;
            let strip = first + looked_at.strip as usize;
            let rows = self.members_found(first, looked_at);
            if let (None, Some(members), Some(later)) =
                (low, self.pass.look.members, found.get(index + FOUND_AHEAD))
            {
                let strip = first + later.strip as usize;
                for i in positions(self.members_found(first, later)) {
                    members.table.prefetch(Row((strip * STRIP_ROWS + i) as u32));
                }
            }
            if rows == 0 {
                continue;
            }
            if let Some(low) = low {
                let scales = |b| {
                    &low[(looked_at.strip as usize * STRIP_BLOCKS + b) * layout.block_lines()
                        + layout.lines()]
                };
                let scales = [scales(0), scales(1)];
                let place = |i: usize| {
                    let scale = RowScale::at(scales[i / BLOCK_ROWS], i % BLOCK_ROWS);
                    (Row((strip * STRIP_ROWS + i) as u32), scale)
                };
                self.take(column, rows, looked_at, place);
                continue;
            }
            if let Some(members) = self.pass.look.members
                && self.pass.columns[column].is_query()
            {
                let rows = positions(rows).map(|i| Row((strip * STRIP_ROWS + i) as u32));
                self.second_looks += self.compare_rows(members.table, column, rows) as u64;
                self.end_look(self.pass.columns[column].query);
                continue;
            }
            for b in 0..STRIP_BLOCKS {
                let rows = rows >> (b * BLOCK_ROWS) & 0xffff;
                if rows != 0 {
                    let block = strip * STRIP_BLOCKS + b;
                    self.compare_fully(column, block, rows);
                }
            }
        }
        self.found = found;
        if first_look == FirstLook::FourBits {
            self.end_first_look(end - first, self.second_looks - looks_before);
        }
        self.end_task(active, first_look == FirstLook::EightBits);
    }

    /// The rows that a scan from strip `first` on has found in a strip, and that are in the query's
    /// set.
    fn members_found(&self, first: usize, found: &Flagged) -> u32 {
        let query = self.pass.columns[found.query as usize].query;
        let bitmap = self.pass.queries[query].filter.rows.bitmap();
        let strip = first + found.strip as usize;
        found.rows & bitmap.map_or(u32::MAX, |bitmap| bitmap.strip(strip))
    }

    /// Scores what the task has kept for the first `active` queries, and raises their floors.
    fn end_task(&mut self, active: usize, has_candidates: bool) {
        for query in 0..active {
            self.score_kept(query);
            if has_candidates {
                self.end_look(query);
            }
        }
        self.found.clear();
    }

    /// Accepts these rows of a strip as candidates if all 8 bits have been read; `place` tells the
    /// row of a bit, and its scale. A second comparison could only add the rest of the query's bits,
    /// which costs more than scoring the few rows that the last floor leaves.
    #[inline]
    fn take(
        &mut self,
        column: usize,
        mut rows: u32,
        found: &Flagged,
        place: impl Fn(usize) -> (Row, RowScale),
    ) {
        let pass = self.pass;
        let query = pass.columns[column].query;
        if pass.failed[query].load(Ordering::Relaxed) {
            return;
        }
        let set = &pass.queries[query].filter.rows;
        let bounds = &pass.prepared.bounds[column].first;
        let is_query = pass.columns[column].is_query();
        let limit = pass.row_limits[query];
        while rows != 0 {
            let i = rows.trailing_zeros() as usize;
            rows &= rows - 1;
            let (row, scale) = place(i);
            // A step of zero: a row of norm zero.
            if row.index() >= limit || scale.step() == 0.0 || !set.contains(row) {
                continue;
            }
            if !is_query {
                self.score_later(query, row.index());
                continue;
            }
            self.admit(query, row.index(), bounds.of_scan(found.bounds[i], scale.residual()));
        }
    }

    /// Compares some rows of a block again, with all 8 bits and both planes of a query. Bit `r` of
    /// `rows` stands for the block's row `r`.
    fn compare_fully(&mut self, column: usize, block: usize, mut rows: u32) {
        let pass = self.pass;
        let query = pass.columns[column].query;
        if pass.failed[query].load(Ordering::Relaxed) {
            return;
        }
        let whole = pass.tables.block(block);
        let mut sums = [Sums::ZERO; 2];
        let planes = pass.prepared.both(column);
        let (space, of_planes) = (&mut self.space, &mut sums);
        pass.instructions.run(BothPlanes { block: whole, planes, space, sums: of_planes });

        let set = &pass.queries[query].filter.rows;
        let bounds = &pass.prepared.bounds[column].both;
        let is_query = pass.columns[column].is_query();
        let column_floor = pass.columns[column].floor(self.floors[query]);
        let limit = pass.row_limits[query];
        while rows != 0 {
            let r = rows.trailing_zeros() as usize;
            rows &= rows - 1;
            let row = block * BLOCK_ROWS + r;
            let scale = RowScale::at(whole.scales, r);
            // A step of zero: a row of norm zero.
            if row >= limit || scale.step() == 0.0 || !set.contains(Row(row as u32)) {
                continue;
            }
            self.second_looks += 1;
            let sum = PreparedQueries::joined([sums[0].0[r], sums[1].0[r]]) - bounds.bias;
            let [lower, upper] = bounds.of_sum(sum, scale);
            if is_query {
                self.admit(query, row, [lower, upper]);
            } else if upper.is_nan() || upper >= column_floor {
                self.score_later(query, row);
            }
        }
        if is_query {
            self.end_look(query);
        }
    }

    /// Keeps a row that a half-space of the query's formula may contain.
    fn score_later(&mut self, query: usize, row: usize) {
        let Pass { queries, table, instructions, .. } = *self.pass;
        let new = || {
            let scorer = Scorer::new(queries[query], table, instructions);
            Box::new(FormulaRows { unscored: Vec::new(), scorer, scored: 0 })
        };
        self.formulas[query].get_or_insert_with(new).unscored.push(Row(row as u32));
    }

    /// Scores the rows that were kept. Scores that reach the floor make candidates, and raise it.
    fn score_kept(&mut self, query: usize) {
        let Some(mut formula) = self.formulas[query].take() else { return };
        let FormulaRows { unscored, scorer, scored } = &mut *formula;
        // Several half-spaces may contain the same row.
        unscored.sort_unstable();
        unscored.dedup();
        for (some, later) in with_later(unscored) {
            if self.pass.failed[query].load(Ordering::Relaxed) {
                break;
            }
            for hit in scorer.hits(some.iter().copied(), later.iter().copied()) {
                let bounds = [round_down(hit.score), round_up(hit.score)];
                self.admit(query, hit.row.index(), bounds);
            }
            *scored += some.len();
            self.end_look(query);
            if *scored > self.pass.room {
                self.give_up(query);
            }
        }
        unscored.clear();
        self.formulas[query] = Some(formula);
    }

    /// Makes a row a candidate unless its bounds rule it out. The filter has been checked, except
    /// for the score. Only rows that are surely admitted raise the floor.
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
        if self.candidates[query].len() >= self.scored_from[query] {
            self.raise_by_scores(query);
        }
        if self.candidates[query].len() > pass.room {
            self.make_room(query);
        }
        if self.above[query] > MOST_ABOVE.min(ABOVE_PER_CANDIDATE * pass.room) {
            self.give_up(query);
        }
    }

    /// Raises the query's floor to the `k`-th best score of the candidates with the highest bounds.
    fn raise_by_scores(&mut self, query: usize) {
        let Pass { queries, table, instructions, .. } = *self.pass;
        let (asked, found) = (queries[query], self.candidates[query].len());
        self.scored_from[query] = found * SCORED_AGAIN;
        // Candidates of formulas have been scored.
        let is_query = self.pass.columns_of(query).all(|i| self.pass.columns[i].is_query());
        if !is_query || found < asked.k.saturating_mul(SCORED_FROM_PER_HIT) {
            return;
        }
        let mut bounds = self.candidates[query].clone();
        let (best, _, _) =
            bounds.select_nth_unstable_by(2 * asked.k, |a, b| b.upper.total_cmp(&a.upper));
        let rows: Vec<Row> = best.iter().map(|candidate| candidate.row).collect();
        let scores = best_scores(asked, &rows, table, instructions);
        if let Some(&score) = scores.get(asked.k - 1) {
            self.pass.floors[query].raise(round_down(self.pass.units[query].at_least(score)));
            self.refresh_threshold(query);
        }
    }

    /// Drops candidates whose upper bounds are below the floor. If too many are left, the query has
    /// no certificate and needs no more candidates.
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

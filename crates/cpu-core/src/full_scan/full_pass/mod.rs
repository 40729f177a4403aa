//! Full passes, in slices: scores computed from several cosines, and ranks.
//!
//! The queries of a batch share most of their vectors, so each block of rows is multiplied by the
//! distinct vectors once: `[vectors, rows of the block]` cosines, from which each query takes its
//! own. Its formula then runs over the rows of the block side by side. Queries for the few rows of a
//! bitmap have blocks of their own, of its members alone (`groups`).
//!
//! A slice first scores the rows whose ranks are requested, unless an earlier slice has. Then it
//! continues over the table. Both are cut into tasks of tens of microseconds, which the threads
//! take in order, so the finished work has no gaps when they stop.

mod block;
mod groups;
mod tasks;
mod vectors;

use std::cmp::Reverse;
use std::ops::Range;

use contract::{FullPassPart, FullPassShare, Row, Table};

use super::ROWS_PER_BLOCK;
use crate::prefetch::{Cache, prefetch};
use crate::threads::Workers;
use block::RowBlock;
use groups::Group;
pub(crate) use groups::is_gathered;
use tasks::{Pace, Tasks};
use vectors::Vectors;

/// The cost of a row besides its products, in multiply-adds: reading and widening it, and its norm.
/// This much, plus one per component.
const ROW_WORK: usize = 16;

/// The extra cost if the previous row is elsewhere in memory.
const FAR_ROW_WORK: usize = 256;

/// Maximum number of blocks per task.
const MOST_BLOCKS: usize = 256;

/// Processes rows from `from` on, for parts that fit the table and are not answered; see
/// [`FullPassEngine::full_pass_part`](contract::FullPassEngine::full_pass_part).
pub(super) fn full_pass_part(
    table: Table<'_>,
    parts: &mut [FullPassPart],
    from: usize,
    go_on: &(dyn Fn() -> bool + Sync),
    workers: Workers<'_>,
) -> Option<usize> {
    let mut order: Vec<usize> =
        (0..parts.len()).filter(|&index| !parts[index].is_answered()).collect();
    let limit = |part: &usize| parts[*part].query().filter.row_limit(table.rows());
    order.sort_by_key(|part| Reverse(limit(part)));
    let row_limits = order.iter().map(limit).collect();
    let vectors = Vectors::new(&table, order.iter().map(|&part| parts[part].query()));
    let slice = Slice { table, workers, order, row_limits, vectors, pace: Pace::new(go_on) };
    if !slice.prepare(parts) {
        return Some(from);
    }
    slice.scan(parts, from)
}

/// One slice, shared by all threads.
struct Slice<'a> {
    table: Table<'a>,
    workers: Workers<'a>,
    /// The indices of the parts that are not answered, sorted by the number of rows that they
    /// cover, most first, so that the parts of a block are always a prefix.
    order: Vec<usize>,
    /// These numbers of rows.
    row_limits: Vec<usize>,
    /// The vectors of the parts in that order.
    vectors: Vectors,
    pace: Pace<'a>,
}

/// Ranked rows of a part that a thread scores together.
struct Run {
    /// The part's position in the slice's order.
    index: usize,
    /// A range of its rows that have no score yet.
    rows: Range<usize>,
}

impl Slice<'_> {
    /// Scores the ranked rows; returns whether those of all parts are ready. Many ranks can take
    /// longer than a slice, so this work is divisible too.
    fn prepare(&self, parts: &mut [FullPassPart]) -> bool {
        let runs = self.runs(parts);
        let (tasks, scored) = self.on_threads(runs.len(), |tasks| {
            let (mut block, mut scored) = (self.block(), Vec::new());
            while let Some(task) = tasks.take() {
                let run = &runs[task];
                let scores = self.score(&mut block, run, &parts[self.order[run.index]]);
                scored.push((task, scores));
            }
            scored
        });
        // Tasks are taken in order, so the scored rows of each part are a prefix.
        let mut scored: Vec<(usize, Vec<f64>)> = scored.into_iter().flatten().collect();
        scored.sort_unstable_by_key(|&(task, _)| task);
        for (task, scores) in scored {
            parts[self.order[runs[task].index]].set_scores(&scores);
        }
        let is_scored = tasks == runs.len();
        is_scored
            && parts.iter_mut().all(|part| {
                let is_ready = part.is_prepared() || self.pace.goes_on();
                if is_ready {
                    part.prepare(&self.table);
                }
                is_ready
            })
    }

    fn runs(&self, parts: &[FullPassPart]) -> Vec<Run> {
        let (dim, mut runs) = (self.table.dim(), Vec::new());
        for (index, &part) in self.order.iter().enumerate() {
            let rows = parts[part].unscored().len();
            let work = FAR_ROW_WORK + dim + self.vectors.of(index).len() * dim;
            let together = self.blocks_per_task(work) * ROWS_PER_BLOCK;
            let starts = (0..rows).step_by(together);
            runs.extend(starts.map(|start| Run { index, rows: start..rows.min(start + together) }));
        }
        runs
    }

    /// The scores of a run's rows.
    fn score(&self, block: &mut RowBlock<'_>, run: &Run, part: &FullPassPart) -> Vec<f64> {
        let rows = &part.unscored()[run.rows.clone()];
        let vectors = self.vectors.of(run.index);
        let mut scores = Vec::with_capacity(rows.len());
        for rows in rows.chunks(ROWS_PER_BLOCK) {
            block.take(rows.iter().copied());
            for &vector in vectors {
                block.multiply(vector..vector + 1);
            }
            let of_block = block.scores(&part.query().scoring, vectors);
            scores.extend_from_slice(&of_block[..rows.len()]);
        }
        scores
    }

    /// Continues over the table from this row. Returns where the next slice starts, if there is
    /// more.
    fn scan(&self, parts: &mut [FullPassPart], from: usize) -> Option<usize> {
        let in_order: Vec<&FullPassPart> = self.order.iter().map(|&part| &parts[part]).collect();
        let end = self.row_limits.first().copied().unwrap_or(0);
        let active = self.covering(from);
        let left = end.saturating_sub(from);
        if left == 0 {
            return None;
        }
        let groups = groups::groups(&in_order, &self.vectors, from..end);
        let products = self.vectors.of_first(active) * self.table.dim();
        // A query may ask for `usize::MAX` hits.
        let formulas = in_order[..active].iter().map(|part| part.row_work());
        let work = formulas.fold(ROW_WORK + self.table.dim() + products, usize::saturating_add);
        let together =
            self.blocks_per_task(work) * groups::sparseness(&groups, left) * ROWS_PER_BLOCK;
        let (tasks, shares) = self.on_threads(left.div_ceil(together), |tasks| {
            let mut block = self.block();
            let mut shares: Vec<FullPassShare> = in_order.iter().map(|part| part.share()).collect();
            while let Some(task) = tasks.take() {
                let start = from + task * together;
                let rows = start..end.min(start + together);
                for group in &groups {
                    let (block, shares, of_task) = (&mut block, &mut shares[..], rows.clone());
                    if let Some(members) = group.members {
                        let rows = members.members_in(of_task);
                        self.gather(block, group, rows, &in_order, shares);
                    } else {
                        self.scan_rows(block, group, of_task, &in_order, shares);
                    }
                }
            }
            shares
        });
        for shares in shares {
            for (&part, share) in self.order.iter().zip(shares) {
                parts[part].merge(share);
            }
        }
        let done = from + tasks * together;
        (done < end).then_some(done)
    }

    /// Scores the rows of a task for a group, in blocks, of which those are skipped that have no row
    /// that a query looks for.
    fn scan_rows(
        &self,
        block: &mut RowBlock<'_>,
        group: &Group<'_>,
        of_task: Range<usize>,
        in_order: &[&FullPassPart],
        shares: &mut [FullPassShare],
    ) {
        // The parts that cover a row are always a prefix.
        let covering = |row: usize| {
            &group.parts[..group.parts.partition_point(|&part| self.row_limits[part] > row)]
        };
        let meets = |parts: &[usize], rows: &Range<usize>| {
            parts.iter().any(|&part| in_order[part].query().filter.rows.meets(rows.clone()))
        };
        if !meets(covering(of_task.start), &of_task) {
            return;
        }
        for start in of_task.clone().step_by(ROWS_PER_BLOCK) {
            let active = covering(start);
            let rows = start..of_task.end.min(start + ROWS_PER_BLOCK);
            if !meets(active, &rows) {
                continue;
            }
            block.take((rows.start as u32..rows.end as u32).map(Row));
            if group.is_all {
                block.multiply(0..self.vectors.of_first(active.len()));
            } else {
                group.vectors.iter().for_each(|vectors| block.multiply(vectors.clone()));
            }
            for &part in active {
                let scoring = &in_order[part].query().scoring;
                let scores = block.scores(scoring, self.vectors.of(part));
                in_order[part].add_scores(&mut shares[part], Row(start as u32), scores);
            }
        }
    }

    /// Scores rows from anywhere in the table for a group.
    fn gather(
        &self,
        block: &mut RowBlock<'_>,
        group: &Group<'_>,
        mut rows: impl Iterator<Item = Row>,
        in_order: &[&FullPassPart],
        shares: &mut [FullPassShare],
    ) {
        // The rows of the next block come from memory while those of this one are multiplied.
        let mut fill = |next: &mut [Row; ROWS_PER_BLOCK]| {
            let mut number = 0;
            for (slot, row) in next.iter_mut().zip(&mut rows) {
                prefetch(self.table.row(row), Cache::Second);
                *slot = row;
                number += 1;
            }
            number
        };
        let mut next = [Row(0); ROWS_PER_BLOCK];
        let mut number_of_next = fill(&mut next);
        while number_of_next > 0 {
            let (together, number) = (next, number_of_next);
            number_of_next = fill(&mut next);
            block.take(together[..number].iter().copied());
            group.vectors.iter().for_each(|vectors| block.multiply(vectors.clone()));
            for &part in &group.parts {
                let scoring = &in_order[part].query().scoring;
                let scores = block.scores(scoring, self.vectors.of(part));
                let of_rows = &scores[..number];
                in_order[part].add_scores_of(&mut shares[part], &together[..number], of_rows);
            }
        }
    }

    /// Runs n tasks on the threads. Returns how many were done, and each thread's result.
    fn on_threads<T: Send>(
        &self,
        tasks: usize,
        work: impl Fn(&Tasks<'_>) -> T + Sync,
    ) -> (usize, Vec<T>) {
        if tasks == 0 {
            return (0, Vec::new());
        }
        let workers = self.workers.at_most(tasks);
        let tasks = Tasks::new(&self.pace, tasks);
        let found = workers.each(|| work(&tasks));
        (tasks.taken(), found)
    }

    /// How many parts, in their order, cover this row.
    fn covering(&self, row: usize) -> usize {
        self.row_limits.partition_point(|&limit| limit > row)
    }

    fn block(&self) -> RowBlock<'_> {
        RowBlock::new(self.table, &self.vectors, self.workers.instructions)
    }

    /// The number of blocks per task, if a row takes n multiply-adds.
    fn blocks_per_task(&self, row_work: usize) -> usize {
        let block = row_work.saturating_mul(ROWS_PER_BLOCK);
        (self.workers.instructions.task_work() / block).clamp(1, MOST_BLOCKS)
    }
}

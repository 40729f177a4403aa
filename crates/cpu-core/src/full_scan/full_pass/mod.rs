//! Full passes, in slices: scores made of several cosines, and ranks.
//!
//! A batch of such queries shares most of its vectors, so each block of rows is multiplied with the different
//! ones once: `[vectors, rows of the block]` cosines, from which every query takes its own. Its formula then
//! runs over the rows of the block side by side.
//!
//! A slice first scores the rows whose ranks are asked for, where an earlier one has not. Then it goes on over the
//! table. Both are cut into tasks of some ten microseconds, which the threads take in order: so what is done when
//! they stop has no gaps.

mod block;
mod tasks;
mod vectors;

use std::ops::Range;

use contract::{FullPassPart, FullPassQuery, FullPassShare, Row, Table};
use rayon::ThreadPool;

use super::ROWS_PER_BLOCK;
use crate::InstructionSet;
use crate::row_limits::{looking_at, most_rows_first};
use crate::threads::on_threads;
use block::Block;
use tasks::{Pace, Tasks};
use vectors::Vectors;

/// What a row costs beside its products, in multiply-adds: that it is read and widened, and its norm. This much and
/// one for each component.
const ROW_WORK: usize = 16;

/// What it costs more if the row before it is elsewhere in memory.
const FAR_ROW_WORK: usize = 256;

/// Blocks of a task at most.
const MOST_BLOCKS: usize = 256;

/// Looks at rows from `from` on, for parts that fit the table; see
/// [`Engine::full_pass_part`](contract::Engine::full_pass_part).
pub(super) fn full_pass_part(
    table: Table<'_>,
    parts: &mut [FullPassPart],
    from: usize,
    go_on: &(dyn Fn() -> bool + Sync),
    instructions: InstructionSet,
    pool: &ThreadPool,
) -> Option<usize> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    let queries: Vec<&FullPassQuery> = parts.iter().map(FullPassPart::query).collect();
    most_rows_first(&queries, &mut order, table.rows());
    let vectors = Vectors::new(&table, order.iter().map(|&part| queries[part]));
    let slice = Slice { table, instructions, pool, order, vectors, pace: Pace::new(go_on) };
    if !slice.prepare(parts) {
        return Some(from);
    }
    slice.scan(parts, from)
}

/// One slice, shared by all threads.
struct Slice<'a> {
    table: Table<'a>,
    instructions: InstructionSet,
    pool: &'a ThreadPool,
    /// The places of the parts, those that look at the most rows first, so that the ones a block is for are always
    /// the first n.
    order: Vec<usize>,
    /// The vectors of the parts in that order.
    vectors: Vectors,
    pace: Pace<'a>,
}

/// Ranked rows of a part that a thread scores together.
struct Run {
    /// The part's place in the slice's order.
    place: usize,
    /// Which of its rows that have no score yet.
    rows: Range<usize>,
}

impl Slice<'_> {
    /// Whether the ranked rows of all parts are ready. Many ranks take longer than a slice may, so they are as
    /// divisible as the rest.
    fn prepare(&self, parts: &mut [FullPassPart]) -> bool {
        let runs = self.runs(parts);
        let (tasks, scored) = self.on_threads(runs.len(), |tasks| {
            let (mut block, mut scored) = (self.block(), Vec::new());
            while let Some(task) = tasks.take() {
                let run = &runs[task];
                let scores = self.score(&mut block, run, &parts[self.order[run.place]]);
                scored.push((task, scores));
            }
            scored
        });
        // Tasks are taken in order, so of each part the first n rows are scored.
        let mut scored: Vec<(usize, Vec<f64>)> = scored.into_iter().flatten().collect();
        scored.sort_unstable_by_key(|&(task, _)| task);
        for (task, scores) in scored {
            parts[self.order[runs[task].place]].give_scores(&scores);
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
        for (place, &part) in self.order.iter().enumerate() {
            let rows = parts[part].unscored().len();
            let work = FAR_ROW_WORK + dim + self.vectors.of(place).len() * dim;
            let together = self.blocks_per_task(work) * ROWS_PER_BLOCK;
            let starts = (0..rows).step_by(together);
            runs.extend(starts.map(|start| Run { place, rows: start..rows.min(start + together) }));
        }
        runs
    }

    /// The scores of a run's rows.
    fn score(&self, block: &mut Block<'_>, run: &Run, part: &FullPassPart) -> Vec<f64> {
        let rows = &part.unscored()[run.rows.clone()];
        let vectors = self.vectors.of(run.place);
        let mut scores = Vec::with_capacity(rows.len());
        for rows in rows.chunks(ROWS_PER_BLOCK) {
            block.take(rows.iter().copied());
            for &vector in vectors {
                block.multiply(vector..vector + 1);
            }
            let of_block = block.scores(part.query().scoring(), vectors);
            scores.extend_from_slice(&of_block[..rows.len()]);
        }
        scores
    }

    /// Goes on over the table from this row; where the next slice does, if there is more.
    fn scan(&self, parts: &mut [FullPassPart], from: usize) -> Option<usize> {
        let in_order: Vec<&FullPassPart> = self.order.iter().map(|&part| &parts[part]).collect();
        let queries: Vec<&FullPassQuery> = in_order.iter().map(|part| part.query()).collect();
        let rows = self.table.rows();
        let end = queries.first().map_or(0, |query| query.filter().row_limit(rows));
        let active = looking_at(from, &queries, rows);
        let left = end.saturating_sub(from);
        if left == 0 {
            return None;
        }
        let products = self.vectors.of_first(active) * self.table.dim();
        let formulas: usize = in_order[..active].iter().map(|part| part.row_work()).sum();
        let work = ROW_WORK + self.table.dim() + products + formulas;
        let together = self.blocks_per_task(work) * ROWS_PER_BLOCK;
        let (tasks, shares) = self.on_threads(left.div_ceil(together), |tasks| {
            let mut block = self.block();
            let mut shares: Vec<FullPassShare> = in_order.iter().map(|part| part.share()).collect();
            while let Some(task) = tasks.take() {
                let start = from + task * together;
                for start in (start..end.min(start + together)).step_by(ROWS_PER_BLOCK) {
                    let active = looking_at(start, &queries, rows);
                    let rows = start..end.min(start + ROWS_PER_BLOCK);
                    block.take((rows.start as u32..rows.end as u32).map(Row));
                    block.multiply(0..self.vectors.of_first(active));
                    for (place, share) in shares[..active].iter_mut().enumerate() {
                        let scoring = queries[place].scoring();
                        let scores = block.scores(scoring, self.vectors.of(place));
                        in_order[place].look_at(share, Row(start as u32), scores);
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

    /// How many tasks the threads have done, of n, and what each of them found.
    fn on_threads<T: Send>(
        &self,
        tasks: usize,
        work: impl Fn(&Tasks<'_>) -> T + Sync,
    ) -> (usize, Vec<T>) {
        if tasks == 0 {
            return (0, Vec::new());
        }
        let threads = self.pool.current_num_threads().min(tasks);
        let tasks = Tasks::new(&self.pace, tasks);
        let found = on_threads(self.pool, threads, || work(&tasks));
        (tasks.taken(), found)
    }

    fn block(&self) -> Block<'_> {
        Block::new(self.table, &self.vectors, self.instructions)
    }

    /// How many blocks make a task, if a row takes n multiply-adds.
    fn blocks_per_task(&self, row_work: usize) -> usize {
        let block = row_work.saturating_mul(ROWS_PER_BLOCK);
        (self.instructions.task_work() / block).clamp(1, MOST_BLOCKS)
    }
}

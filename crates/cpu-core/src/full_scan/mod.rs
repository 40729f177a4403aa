//! The full scan: scores every row by the contract's formula, in blocks of rows × queries, on all
//! cores.

pub(crate) mod dots;
mod full_pass;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::{
    Device, EngineDescription, EngineError, FullPassEngine, FullPassPart, FullPassQuery, HasTable,
    HeadEngine, Hit, Query, QueryBatch, Ranking, Row, SearchEngine, Table, TopK,
};
use rayon::ThreadPool;

use crate::InstructionSet;
use crate::row_limits::{count_covering, most_rows_first};
use dots::{Chunk, chunks_per_row, widen};

/// Rows converted to float64 together: with 300 components they fill a first-level cache.
const ROWS_PER_BLOCK: usize = 16;

/// Rows per task: large enough that taking a task costs nothing, small enough that the last thread
/// does not keep the others waiting.
const ROWS_PER_TASK: usize = 64 * ROWS_PER_BLOCK;

/// Beyond this many queries, larger batches gain nothing: the arithmetic takes the time, not the
/// table.
const PREFERRED_BATCH: usize = 64;

/// Scans the whole table once for a batch of queries, and keeps the best `k` of each.
#[derive(Debug)]
pub struct FullScanEngine {
    model: Arc<dyn HasTable>,
    pool: Arc<ThreadPool>,
    instructions: InstructionSet,
}

/// The engine's threads could not be started.
#[derive(Debug, thiserror::Error)]
#[error("can't start {threads} search threads: {source}; set a lower number with --threads")]
pub struct StartError {
    threads: usize,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl StartError {
    /// For the thread that derives tables.
    pub(crate) fn derive(source: std::io::Error) -> Self {
        Self { threads: 1, source: source.into() }
    }
}

impl FullScanEngine {
    /// An engine for this model, with the best instructions available. 0 threads means one per
    /// core.
    ///
    /// # Errors
    /// If the threads can't be started.
    pub fn new(model: Arc<dyn HasTable>, threads: usize) -> Result<Self, StartError> {
        Self::with_instructions(model, threads, InstructionSet::best())
    }

    /// The same with these instructions, for tests and benchmarks of each.
    ///
    /// # Errors
    /// As [`FullScanEngine::new`].
    pub fn with_instructions(
        model: Arc<dyn HasTable>,
        threads: usize,
        instructions: InstructionSet,
    ) -> Result<Self, StartError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("kindred-scan-{i}"))
            .build()
            .map_err(|source| StartError { threads, source: source.into() })?;
        Ok(Self { model, pool: Arc::new(pool), instructions })
    }

    /// An engine for another table, with the same threads.
    pub(crate) fn of(&self, model: Arc<dyn HasTable>) -> Self {
        Self { model, pool: self.pool.clone(), instructions: self.instructions }
    }

    /// What has the table.
    pub(crate) fn model(&self) -> &Arc<dyn HasTable> {
        &self.model
    }

    /// The threads that search; between passes they sleep.
    pub(crate) fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    pub(crate) fn instructions(&self) -> InstructionSet {
        self.instructions
    }
}

impl Device for FullScanEngine {
    fn description(&self) -> EngineDescription {
        let (instructions, threads) = (self.instructions, self.pool.current_num_threads());
        let detail = format!("full float64 scan, {instructions}, {threads} threads");
        EngineDescription { name: "cpu", detail }
    }
}

impl SearchEngine for FullScanEngine {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting.min(PREFERRED_BATCH)
    }

    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
        let table = self.model.table();
        if !batch.fits(&table) {
            return Err(EngineError::ForeignQuery);
        }
        let is_cosine =
            |&index: &usize| matches!(batch.queries()[index].ranking(), Ranking::Vector(_));
        let cosines = (0..batch.len()).filter(is_cosine).collect();
        let scan = Scan::new(table, batch, cosines, self.instructions);
        let mut best: Vec<TopK> = scan.queries.iter().map(|query| TopK::new(query.k())).collect();
        for lists in self.pool.broadcast(|_| scan.run_tasks()) {
            for (best, list) in best.iter_mut().zip(lists) {
                best.merge(list);
            }
        }
        let mut found = vec![None; batch.len()];
        for (&index, list) in scan.indices.iter().zip(best) {
            found[index] = Some(list.into_sorted());
        }
        batch.complete(found, |formulas| {
            let queries = formulas.queries().iter().map(|query| FullPassQuery::of_search(query));
            let queries: Vec<FullPassQuery> = queries.collect();
            let answers = self.full_pass(&queries.iter().collect::<Vec<_>>())?;
            Ok(answers.into_iter().map(|answer| answer.hits).collect())
        })
    }
}

impl FullPassEngine for FullScanEngine {
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        let table = self.model.table();
        if !parts.iter().all(|part| part.fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        let (instructions, pool) = (self.instructions, &self.pool);
        Ok(full_pass::full_pass_part(table, parts, from, go_on, instructions, pool))
    }
}

impl HeadEngine for FullScanEngine {}

/// One pass over the table, shared by all threads.
struct Scan<'a> {
    table: Table<'a>,
    instructions: InstructionSet,
    /// The queries, sorted by the number of rows that they cover, most first, so that the queries
    /// of a block are always a prefix.
    queries: Vec<&'a Query>,
    /// The index of each query in the batch.
    indices: Vec<usize>,
    /// Their components in float64, `[queries, chunks_per_row]`.
    widened: Vec<Chunk>,
    next_task: AtomicUsize,
}

impl<'a> Scan<'a> {
    /// For the queries of the batch at `indices`, which rank by a cosine.
    fn new(
        table: Table<'a>,
        batch: &QueryBatch<'a>,
        mut indices: Vec<usize>,
        instructions: InstructionSet,
    ) -> Self {
        most_rows_first(batch.queries(), &mut indices, table.rows());
        let queries: Vec<&Query> = indices.iter().map(|&index| batch.queries()[index]).collect();
        let chunks = chunks_per_row(table.dim());
        let mut widened = vec![Chunk::ZERO; queries.len() * chunks];
        for (query, widened) in queries.iter().zip(widened.chunks_exact_mut(chunks)) {
            widen(query.vectors()[0].components(&table), widened);
        }
        Self { table, instructions, queries, indices, widened, next_task: AtomicUsize::new(0) }
    }

    /// One thread's share: takes tasks until none are left.
    fn run_tasks(&self) -> Vec<TopK> {
        let mut worker = Worker::new(self);
        for_each_block(&self.next_task, self.table.rows(), |start, end| {
            worker.scan_block(start, end);
        });
        worker.kept.into_iter().map(|kept| kept.list).collect()
    }
}

/// One thread's share of the rows: takes tasks until none are left. Yields blocks as first row and
/// end.
fn for_each_block(next_task: &AtomicUsize, rows: usize, mut scan: impl FnMut(usize, usize)) {
    loop {
        let start = next_task.fetch_add(1, Ordering::Relaxed) * ROWS_PER_TASK;
        if start >= rows {
            return;
        }
        let end = rows.min(start + ROWS_PER_TASK);
        for block in (start..end).step_by(ROWS_PER_BLOCK) {
            scan(block, end.min(block + ROWS_PER_BLOCK));
        }
    }
}

/// Converts the rows from `start` to `end` to float64, `[rows, chunks_per_row]`.
fn widen_rows(table: &Table<'_>, start: usize, end: usize, widened: &mut [Chunk]) {
    let components = &table.components()[start * table.dim()..end * table.dim()];
    let widened_rows = widened.chunks_exact_mut(chunks_per_row(table.dim()));
    for (row, widened) in components.chunks_exact(table.dim()).zip(widened_rows) {
        widen(row, widened);
    }
}

/// The state of one thread.
struct Worker<'a> {
    scan: &'a Scan<'a>,
    /// For each query of the scan.
    kept: Vec<Kept>,
    /// A block's rows in float64, `[ROWS_PER_BLOCK, chunks_per_row]`.
    rows: Vec<Chunk>,
    /// A block's dot products, `[ROWS_PER_BLOCK, queries]`.
    dots: Vec<f64>,
}

impl<'a> Worker<'a> {
    fn new(scan: &'a Scan<'a>) -> Self {
        Self {
            scan,
            kept: scan.queries.iter().map(|query| Kept::new(query)).collect(),
            rows: vec![Chunk::ZERO; ROWS_PER_BLOCK * chunks_per_row(scan.table.dim())],
            dots: vec![0.0; ROWS_PER_BLOCK * scan.queries.len()],
        }
    }

    fn scan_block(&mut self, start: usize, end: usize) {
        let Scan { table, queries, .. } = self.scan;
        let active = count_covering(start, queries, table.rows());
        if active == 0 {
            return;
        }
        let chunks = chunks_per_row(table.dim());
        widen_rows(table, start, end, &mut self.rows);
        let rows = &self.rows[..(end - start) * chunks];
        let asked = &self.scan.widened[..active * chunks];
        let dots = &mut self.dots[..(end - start) * active];
        self.scan.instructions.dots(rows, asked, chunks, dots);

        for (row, dots) in (start..end).zip(self.dots.chunks_exact(active)) {
            let row = Row(row as u32);
            for ((&dot, query), kept) in dots.iter().zip(queries).zip(&mut self.kept) {
                if let Some(score) = table.score_of_dot(dot, query.vectors()[0].norm, row) {
                    kept.offer(query, Hit { row, score });
                }
            }
        }
    }
}

/// The best rows that a thread has seen for one query.
struct Kept {
    list: TopK,
    /// Lower scores are no longer kept. Cheaper to check than the list.
    floor: f64,
}

impl Kept {
    fn new(query: &Query) -> Self {
        let floor = query.filter().min_score.unwrap_or(f64::NEG_INFINITY);
        Self { list: TopK::new(query.k()), floor }
    }

    #[inline]
    fn offer(&mut self, query: &Query, hit: Hit) {
        if hit.score >= self.floor
            && self.list.admits(hit)
            && query.filter().admits(hit.row, hit.score)
        {
            self.list.push(hit);
            if let Some(worst) = self.list.worst_if_full() {
                self.floor = worst.score;
            }
        }
    }
}

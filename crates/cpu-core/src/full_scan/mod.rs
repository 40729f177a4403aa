//! The full scan: scores every row by the contract's formula, in blocks of rows × queries, on all
//! cores.

pub(crate) mod dots;
mod full_pass;

use std::sync::Arc;

use contract::{
    Device, EngineDescription, EngineError, FullPassEngine, FullPassPart, HasTable, HeadEngine,
    Hit, Query, SearchEngine,
};
use rayon::ThreadPool;

use crate::InstructionSet;
use crate::threads::Workers;

pub(crate) use full_pass::is_gathered;

/// Rows converted to float64 together: with 300 components they fill a first-level cache.
const ROWS_PER_BLOCK: usize = 16;

/// Beyond this many queries, larger batches gain nothing: the arithmetic takes the time, not the
/// table.
const PREFERRED_BATCH: usize = 64;

/// Scans the whole table once for a batch of queries, and keeps the best `k` of each.
#[derive(Debug)]
pub struct FullScanEngine {
    pub(crate) model: Arc<dyn HasTable>,
    /// The threads that search; between passes they sleep.
    pub(crate) pool: Arc<ThreadPool>,
    pub(crate) instructions: InstructionSet,
}

/// The engine's threads could not be started.
#[derive(Debug, thiserror::Error)]
#[error("can't start {threads} search threads: {source}; set a lower number with --threads")]
pub struct StartError {
    pub(crate) threads: usize,
    pub(crate) source: Box<dyn std::error::Error + Send + Sync>,
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
            .map_err(|source| {
                let cores = || std::thread::available_parallelism().map_or(1, usize::from);
                let threads = if threads == 0 { cores() } else { threads };
                StartError { threads, source: source.into() }
            })?;
        Ok(Self { model, pool: Arc::new(pool), instructions })
    }

    /// An engine for another table, with the same threads.
    pub fn of(&self, model: Arc<dyn HasTable>) -> Self {
        Self { model, pool: self.pool.clone(), instructions: self.instructions }
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

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let table = self.model.table();
        if !batch.iter().all(|query| query.fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        self.search_in_full_pass(batch)
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
        let threads = self.pool.current_num_threads();
        let workers = Workers { pool: &self.pool, threads, instructions: self.instructions };
        Ok(full_pass::full_pass_part(table, parts, from, go_on, workers))
    }
}

impl HeadEngine for FullScanEngine {}

//! The derived table by rows, for the few rows of a set.
//!
//! It has the same levels, steps and residuals as the planes (layout.rs), and so the same bounds.
//! All bytes of a row are together in whole cache lines: a byte for each component in the order of
//! a query's plane, zeros, and in the last four bytes the [`RowScale`] for all 8 bits. So one row
//! is read fast wherever it is, while a strip of the planes has 32 rows in all of its lines.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use contract::Row;
use model_store::{Mapped, MappedMut};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::derive::{Deriving, Origin, TablesReport, pool};
use super::kernels::{BringTogether, RowLines, Space, scale_of};
use super::layout::{BLOCK_ROWS, Layout, Line, RowScale};
use super::tables::Tables;
use crate::InstructionSet;
use crate::prefetch::{Cache, prefetch};

/// Blocks per task.
const BLOCKS_PER_TASK: usize = 64;

/// The table by rows, in memory.
#[derive(Debug)]
pub(crate) struct RowTable {
    row_lines: usize,
    bytes: Mapped,
}

/// Lines of a row.
fn row_lines(layout: Layout) -> usize {
    (layout.dim + size_of::<RowScale>()).div_ceil(size_of::<Line>())
}

impl RowTable {
    /// Derives the table from the planes; `None` if that was cancelled.
    ///
    /// # Errors
    /// If there is not enough memory.
    fn build(
        tables: &Tables,
        instructions: InstructionSet,
        pool: &ThreadPool,
        cancelled: &AtomicBool,
    ) -> io::Result<Option<Self>> {
        let (layout, row_lines) = (tables.layout, row_lines(tables.layout));
        let block_lines = BLOCK_ROWS * row_lines;
        let bytes = layout.blocks() * block_lines * size_of::<Line>();
        let mut bytes = MappedMut::zeroed(bytes)?.in_huge_pages();
        let lines: &mut [Line] = bytemuck::cast_slice_mut(&mut bytes);
        let tasks = lines.par_chunks_mut(BLOCKS_PER_TASK * block_lines).enumerate();
        pool.install(|| {
            tasks.for_each_init(
                || Space::new(layout, 1),
                |space, (task, lines)| {
                    for (block, rows) in lines.chunks_exact_mut(block_lines).enumerate() {
                        if cancelled.load(Ordering::Relaxed) {
                            return;
                        }
                        let block = tables.block(task * BLOCKS_PER_TASK + block);
                        instructions.run(BringTogether { block, space, rows });
                    }
                },
            );
        });
        if cancelled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        Ok(Some(Self { row_lines, bytes: bytes.freeze()? }))
    }

    /// Starts to derive it, on this many threads; what comes of it is reported.
    ///
    /// # Errors
    /// If the system refuses to start the thread.
    pub(crate) fn start(
        tables: Arc<Tables>,
        instructions: InstructionSet,
        threads: usize,
        report: Option<Box<dyn FnOnce(TablesReport) + Send>>,
    ) -> io::Result<Deriving<Self>> {
        Deriving::spawn(move |place, cancelled| {
            let started = Instant::now();
            let built = pool(threads).and_then(|pool| {
                Self::build(&tables, instructions, &pool, cancelled)
                    .map_err(|e| format!("there is not enough memory for the table by rows: {e}"))
            });
            let (bytes, origin) = match built {
                Ok(Some(table)) => {
                    let bytes = table.bytes.len();
                    place.put(table);
                    (bytes, Origin::ByRows)
                }
                Ok(None) => return,
                Err(why) => (0, Origin::NotByRows(why)),
            };
            if let Some(report) = report {
                report(TablesReport { took: started.elapsed(), bytes, origin });
            }
        })
    }

    pub(crate) fn lines(&self) -> RowLines<'_> {
        RowLines { lines: bytemuck::cast_slice(&self.bytes), row_lines: self.row_lines }
    }

    /// Starts to read a row.
    pub(crate) fn prefetch(&self, row: Row) {
        prefetch(self.lines().row(row), Cache::First);
    }

    pub(crate) fn scale(&self, row: Row) -> RowScale {
        RowScale(u32::from_le_bytes(scale_of(self.lines().row(row))))
    }
}

/// The table by rows of an engine, which the first query for the rows of a set starts to derive.
pub(crate) struct ByRows {
    is_wanted: bool,
    report: Option<Box<dyn FnOnce(TablesReport) + Send>>,
    threads: usize,
    instructions: InstructionSet,
    deriving: Option<Deriving<RowTable>>,
}

impl ByRows {
    /// There is never one if it is not wanted.
    pub(crate) fn new(
        is_wanted: bool,
        report: Option<Box<dyn FnOnce(TablesReport) + Send>>,
        threads: usize,
        instructions: InstructionSet,
    ) -> Self {
        Self { is_wanted, report, threads, instructions, deriving: None }
    }

    /// The table, if it is ready. Starts to derive it if nothing has.
    pub(crate) fn ready(&mut self, tables: &Arc<Tables>) -> Option<Arc<RowTable>> {
        self.started(tables)?.ready()
    }

    /// Derives it, and waits for it.
    pub(crate) fn wait(&mut self, tables: &Arc<Tables>) {
        if let Some(deriving) = self.started(tables) {
            deriving.wait();
        }
    }

    fn started(&mut self, tables: &Arc<Tables>) -> Option<&mut Deriving<RowTable>> {
        let Self { is_wanted, report, threads, instructions, deriving } = self;
        let start = || {
            let started = RowTable::start(tables.clone(), *instructions, *threads, report.take());
            // Without a thread for it, queries take as long as without the table.
            started.unwrap_or_else(|_| Deriving::nothing())
        };
        is_wanted.then(|| deriving.get_or_insert_with(start))
    }
}

impl fmt::Debug for ByRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByRows").field("deriving", &self.deriving).finish_non_exhaustive()
    }
}

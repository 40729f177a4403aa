//! The derived table, derived from the model's rows on all cores.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use contract::Table;
use contract::certificate::{Lift, Rotation};
use model_store::{Mapped, MappedMut};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::kernels::Block;
use super::layout::{BLOCK_ROWS, Layout, Line};
use super::quantise::QuantiseBlock;
use crate::InstructionSet;

/// Blocks per quantisation task.
const BLOCKS_PER_TASK: usize = 64;

/// Both planes of the table (layout.rs), in memory or in a mapped file.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) layout: Layout,
    pub(crate) lift: Lift,
    pub(crate) rotation: Rotation,
    bytes: Mapped,
    /// The offset of the planes in `bytes`, the high one first.
    start: usize,
}

impl Tables {
    /// Derives the table; `None` if it was cancelled.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub(crate) fn build(
        table: &Table<'_>,
        lift: Lift,
        instructions: InstructionSet,
        pool: &ThreadPool,
        cancelled: &AtomicBool,
    ) -> io::Result<Option<Self>> {
        let layout = Layout { rows: table.rows(), dim: lift.dim(table.dim()) };
        let rotation = Rotation::new(layout.dim);
        let mut bytes = MappedMut::zeroed(layout.bytes())?.in_huge_pages();
        let lines: &mut [Line] = bytemuck::cast_slice_mut(&mut bytes);
        let (high, low) = lines.split_at_mut(layout.plane_lines());
        let task_lines = BLOCKS_PER_TASK * layout.block_lines();
        let tasks = high.par_chunks_mut(task_lines).zip(low.par_chunks_mut(task_lines)).enumerate();
        let space = || vec![[0.0; BLOCK_ROWS]; layout.dim];
        pool.install(|| {
            tasks.for_each_init(space, |space, (task, (high, low))| {
                let blocks = high
                    .chunks_exact_mut(layout.block_lines())
                    .zip(low.chunks_exact_mut(layout.block_lines()));
                for (block, (high, low)) in blocks.enumerate() {
                    if cancelled.load(Ordering::Relaxed) {
                        return;
                    }
                    let first = (task * BLOCKS_PER_TASK + block) * BLOCK_ROWS;
                    let to = [high, low];
                    instructions.run(QuantiseBlock {
                        table: *table,
                        lift,
                        rotation: &rotation,
                        first,
                        space,
                        to,
                    });
                }
            });
        });
        if cancelled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        Ok(Some(Self { layout, lift, rotation, bytes: bytes.freeze()?, start: 0 }))
    }

    /// The table stored in these bytes from `start` on, as [`bytes`](Self::bytes) returned them.
    pub(crate) fn of_bytes(lift: Lift, layout: Layout, bytes: Mapped, start: usize) -> Self {
        Self { layout, lift, rotation: Rotation::new(layout.dim), bytes, start }
    }

    /// Both planes, the high one first.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..][..self.layout.bytes()]
    }

    /// The plane of high halves, `[blocks, block_lines]`.
    pub(crate) fn high(&self) -> &[Line] {
        &self.planes()[..self.layout.plane_lines()]
    }

    /// The plane of low halves.
    pub(crate) fn low(&self) -> &[Line] {
        &self.planes()[self.layout.plane_lines()..]
    }

    /// One block with all 8 bits.
    pub(crate) fn block(&self, block: usize) -> Block<'_> {
        let (lines, block_lines) = (self.layout.lines(), self.layout.block_lines());
        let range = block * block_lines..(block + 1) * block_lines;
        let (low, scales) = self.low()[range.clone()].split_at(lines);
        Block { high: &self.high()[range][..lines], low: Some(low), scales: &scales[0] }
    }

    fn planes(&self) -> &[Line] {
        bytemuck::cast_slice(self.bytes())
    }
}

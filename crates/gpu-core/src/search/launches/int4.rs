//! Launches of a pass over the 4-bit table.

use crate::GpuError;
use crate::driver::Shape;
use crate::resident::{CHUNK4, Int4, Quantised, TILE_ROWS};
use crate::search::abi::{
    INT4_MAX_BLOCKS, Int4RescoreParams, Int4ScanParams, Int4ThresholdParams, LIST_BYTES, PassView,
};
use crate::search::kernels::Int4Kernels;
use crate::search::pass::Pass;
use crate::search::plan::Class;

impl Pass<'_> {
    /// Starts the scan of the 4-bit table, which writes the dot product of every row.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn int4_scan(
        &self,
        quantised: &Quantised,
        int4: &Int4,
        kernels: &Int4Kernels,
        tiles: usize,
    ) -> Result<(), GpuError> {
        let w = self.workspace;
        let chunks = self.resident.dim.div_ceil(CHUNK4);
        let params = Int4ScanParams {
            pass: self.view(quantised, 1),
            levels: int4.levels.pointer(),
            dots: w.dots(tiles * TILE_ROWS),
            best: w.best_of_blocks.pointer_mut(),
            chunks: chunks as i32,
            tiles: tiles as u32,
        };
        let blocks = self.int4_blocks(tiles);
        let shape = Shape::grid(blocks, 1).shared(CHUNK4 * chunks).early(self.early);
        // SAFETY: the scratch has a dot product for each slot, asserted by `dots`; at most
        // `INT4_MAX_BLOCKS` blocks; the query's bytes fit the shared memory.
        unsafe { kernels.scan.launch(self.stream, shape, &params) }
    }

    fn int4_blocks(&self, tiles: usize) -> usize {
        (12 * self.multiprocessors()).min(tiles).min(INT4_MAX_BLOCKS)
    }

    /// Starts computing the threshold from each block's best row.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn int4_threshold(
        &self,
        quantised: &Quantised,
        tiles: usize,
    ) -> Result<(), GpuError> {
        let w = self.workspace;
        let params = Int4ThresholdParams {
            pass: self.view(quantised, 1),
            best: w.best_of_blocks.pointer(),
            blocks: self.int4_blocks(tiles) as u32,
        };
        let shape = Shape::grid(1, 1).early(self.early);
        // SAFETY: one block, for the blocks of `int4_scan`, whose results name slots of the table.
        unsafe { self.kernels.int4_threshold.launch(self.stream, shape, &params) }
    }

    /// Starts computing the answer from the dot products.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn int4_rescore(
        &self,
        quantised: &Quantised,
        int4: &Int4,
        kernels: &Int4Kernels,
        tiles: usize,
    ) -> Result<(), GpuError> {
        let w = self.workspace;
        let survivor_capacity = w.survivors.len().min(1 << 16) as u32;
        let params = Int4RescoreParams {
            pass: PassView { survivor_capacity, ..self.view(quantised, 1) },
            residuals: int4.residuals.pointer(),
            dots: w.dots(tiles * TILE_ROWS).as_const(),
            answers: self.answers(1, Class::Small)?,
            almost_over: self.exchange.almost_over.pointer_mut()?,
            half_step: int4.half_step,
            tiles: tiles as u32,
            stride: Class::Small.stride() as i32,
        };
        let blocks = (4 * self.multiprocessors()).min(tiles);
        let shape = Shape::grid(blocks, 1).shared(LIST_BYTES).early(self.early);
        // SAFETY: blocks divide the tiles among themselves, whatever their number; the scratch has
        // a dot product for each slot; the list fits the shared memory.
        unsafe { kernels.rescore.launch(self.stream, shape, &params) }
    }
}

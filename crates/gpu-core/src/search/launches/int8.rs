//! Launches of a pass over the 8-bit table.

use std::ops::Range;

use super::WARP;
use crate::GpuError;
use crate::driver::Shape;
use crate::resident::{CHUNK8, Quantised};
use crate::search::abi::{
    FirstThresholdsParams, HopperScanParams, Int8ScanParams, LIST_BYTES, RaiseThresholdsParams,
    RescoreParams,
};
use crate::search::kernels::{Int8Scans, Scans};
use crate::search::pass::Pass;
use crate::search::plan::Class;
use crate::search::workspace::MAX_BATCH;

/// Blocks that score the candidates of one formula: it has more of them than a cosine, and each takes several dot
/// products.
const FORMULA_BLOCKS: usize = 4;

impl Pass<'_> {
    /// Starts computing the bounds of the first `sample` tiles.
    ///
    /// # Safety
    /// The promise of a [`Pass`]; `groups` is the number of groups in `sample` tiles.
    pub(in crate::search) unsafe fn int8_sample(
        &self,
        quantised: &Quantised,
        width: usize,
        groups: usize,
        sample: usize,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller's promise.
        unsafe { self.scan_tiles(quantised, width, groups, 0..sample, true) }
    }

    /// Starts the scan of some tiles for candidates.
    ///
    /// # Safety
    /// The promise of a [`Pass`].
    pub(in crate::search) unsafe fn int8_scan(
        &self,
        quantised: &Quantised,
        width: usize,
        groups: usize,
        tiles: Range<usize>,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller's promise.
        unsafe { self.scan_tiles(quantised, width, groups, tiles, false) }
    }

    /// # Safety
    /// The promise of a [`Pass`]; when sampling, `groups` is the number of groups in the tiles.
    unsafe fn scan_tiles(
        &self,
        quantised: &Quantised,
        width: usize,
        groups: usize,
        Range { start, end }: Range<usize>,
        sampling: bool,
    ) -> Result<(), GpuError> {
        fn widest<P: Copy>(scans: &[Scans<P>], width: usize) -> Scans<P> {
            let fits = |scans: &Scans<P>| width.is_multiple_of(scans.queries);
            let widest = scans.iter().copied().rfind(fits);
            widest.expect("every width is a multiple of the narrowest scan's")
        }
        assert!(end <= quantised.tiles && width <= MAX_BATCH);
        let (tiles, tile_scales) = (quantised.int8.pointer(), quantised.scales.pointer());
        let fragments = self.workspace.query_bytes.pointer();
        let out = self.workspace.scan_output(width, groups);
        let chunks = self.resident.dim.div_ceil(CHUNK8) as i32;
        let (first_tile, end_tile) = (start as u32, end as u32);
        match &self.kernels.int8.scans {
            Int8Scans::Portable(scans) => {
                let Scans { queries, sample, scan } = widest(scans, width);
                let (groups, kernel) = (width / queries, if sampling { sample } else { scan });
                // Two half tiles per tile, one warp for each; enough blocks to fill the device twice over.
                let needed = (2 * (end - start)).div_ceil(kernel.threads() / WARP);
                let blocks = (16 * self.multiprocessors() / groups).clamp(1, needed);
                let params = Int8ScanParams {
                    tiles,
                    tile_scales,
                    fragments,
                    out,
                    chunks,
                    first_tile,
                    end_tile,
                };
                let shape = Shape::grid(groups, blocks).early(self.early);
                // SAFETY: the tiles are within the table; the output has room for `width` queries and the
                // sample's groups; the queries are in this kernel's layout, padded to a multiple of 64.
                unsafe { kernel.launch(self.stream, shape, &params) }
            }
            Int8Scans::Hopper(scans, ring) => {
                let Scans { queries, sample, scan } = widest(scans, width);
                let (groups, kernel) = (width / queries, if sampling { sample } else { scan });
                let grid = (self.multiprocessors() / groups).max(1) * groups;
                let params = HopperScanParams {
                    tiles,
                    tile_scales,
                    fragments,
                    out,
                    chunks,
                    stages: ring.stages as i32,
                    first_tile,
                    end_tile,
                    query_groups: groups as i32,
                };
                let shape = Shape::grid(grid, 1).shared(ring.bytes).early(self.early);
                // SAFETY: as above; the grid is a multiple of the groups, and the shared memory holds the
                // ring's stages and what the last product reads past their end.
                unsafe { kernel.launch(self.stream, shape, &params) }
            }
        }
    }

    /// Starts computing the first thresholds from the sample's bounds.
    ///
    /// # Safety
    /// The promise of a [`Pass`].
    pub(in crate::search) unsafe fn first_thresholds(
        &self,
        width: usize,
        groups: usize,
    ) -> Result<(), GpuError> {
        let w = self.workspace;
        let params = FirstThresholdsParams {
            headers: w.headers.device.pointer(),
            scales: w.scales.pointer(),
            group_bounds: w.group_bounds(width, groups).as_const(),
            floors: w.floors.pointer_mut(),
            thresholds: w.thresholds.pointer_mut(),
            groups: groups as u32,
        };
        let shape = Shape::grid(width, 1).early(self.early);
        // SAFETY: a block for each query; the scratch has `groups` bounds of each.
        unsafe { self.kernels.first_thresholds.launch(self.stream, shape, &params) }
    }

    /// Starts raising the thresholds from the candidates so far.
    ///
    /// # Safety
    /// The promise of a [`Pass`].
    pub(in crate::search) unsafe fn raise_thresholds(
        &self,
        quantised: &Quantised,
        width: usize,
        formulas: bool,
        only_formulas: bool,
    ) -> Result<(), GpuError> {
        let w = self.workspace;
        let kernel = self.kernels.raise_thresholds;
        let kernel = if formulas { kernel } else { kernel.with_threads(256) };
        let params = RaiseThresholdsParams {
            headers: w.headers.device.pointer(),
            scales: w.scales.pointer(),
            tile_scales: quantised.scales.pointer(),
            candidates: w.candidates.pointer(),
            candidate_counts: w.candidate_counts.pointer_mut(),
            floors: w.floors.pointer_mut(),
            thresholds: w.thresholds.pointer_mut(),
            table: self.resident.view(),
            queries: w.queries(),
            slot_rows: quantised.slot_rows.pointer(),
            formulas: w.formulas.pointer(),
            formula_floors: w.formula_floors.pointer_mut(),
            columns: w.columns.pointer(),
            capacity: (w.candidates.len() / width) as u32,
            only_formulas: u32::from(only_formulas),
        };
        let shape = Shape::grid(width, 1).early(self.early);
        // SAFETY: a block for each query; the candidates are divided among the queries as in the scan, and name
        // slots of the table.
        unsafe { kernel.launch(self.stream, shape, &params) }
    }

    /// Starts computing the answers from the candidates.
    ///
    /// # Safety
    /// The promise of a [`Pass`].
    pub(in crate::search) unsafe fn rescore(
        &self,
        quantised: &Quantised,
        width: usize,
        class: Class,
        formulas: bool,
    ) -> Result<(), GpuError> {
        let w = self.workspace;
        assert!(width * (1 + class.stride()) <= w.answers.device.len());
        let parts = class.rescoring_parts(width);
        let params = RescoreParams {
            table: self.resident.view(),
            queries: w.queries(),
            scales: w.scales.pointer(),
            tile_scales: quantised.scales.pointer(),
            slot_rows: quantised.slot_rows.pointer(),
            candidates: w.candidates.pointer(),
            candidate_counts: w.candidate_counts.pointer(),
            floors: w.floors.pointer(),
            survivors: w.survivors.pointer_mut(),
            survivor_counts: w.survivor_counts.pointer_mut(),
            tickets: w.tickets.pointer_mut(),
            answers: self.answers(width, class)?,
            formulas: w.formulas.pointer(),
            formula_floors: w.formula_floors.pointer(),
            capacity: (w.candidates.len() / width) as u32,
            survivor_capacity: (w.survivors.len() / width) as u32,
            stride: class.stride() as i32,
            parts: parts as u32,
        };
        let blocks = if formulas { parts.max(FORMULA_BLOCKS) } else { parts };
        let shape = Shape::grid(width, blocks).shared(LIST_BYTES).early(self.early);
        // SAFETY: candidates, survivors and answers are divided among `width` queries; the list fits the shared
        // memory.
        unsafe { self.kernels.rescore.launch(self.stream, shape, &params) }
    }
}

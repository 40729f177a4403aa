//! Launches of a pass over the 8-bit table.

use super::WARP;
use crate::GpuError;
use crate::driver::Shape;
use crate::resident::{CHUNK8, Quantised};
use crate::search::abi::{
    FirstThresholdsParams, HopperScanParams, Int8ScanParams, LIST_BYTES, RaiseThresholdsParams,
    RescoreParams, TileWalk,
};
use crate::search::kernels::{Int8Scans, QueryKernels, Scan, Scans};
use crate::search::pass::Pass;
use crate::search::plan::Class;
use crate::search::workspace::MAX_BATCH;

impl Pass<'_> {
    /// The number of groups of a sample.
    fn groups(&self, sample: TileWalk) -> usize {
        sample.count as usize * self.kernels.int8.groups_per_tile
    }

    /// Starts the scan of some tiles.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    /// - The tiles are the table's.
    pub(in crate::search) unsafe fn int8_scan(
        &self,
        quantised: &Quantised,
        width: usize,
        walk: TileWalk,
        scan: Scan,
    ) -> Result<(), GpuError> {
        fn widest<P: Copy>(scans: &[Scans<P>], width: usize) -> Scans<P> {
            let fits = |scans: &Scans<P>| width.is_multiple_of(scans.queries);
            let widest = scans.iter().copied().rfind(fits);
            widest.expect("every width is a multiple of the narrowest scan's")
        }
        assert!(walk.count as usize <= quantised.tiles() && width <= MAX_BATCH);
        let (tiles, tile_scales) = (quantised.int8.pointer(), quantised.scales.pointer());
        let fragments = self.workspace.query_bytes.pointer();
        let groups = if scan.sampling { self.groups(walk) } else { 0 };
        let out = self.workspace.scan_output(width, groups);
        let chunks = self.resident.lifted_dim().div_ceil(CHUNK8) as i32;
        match &self.kernels.int8.scans {
            Int8Scans::Portable(scans) => {
                let scans = widest(scans, width);
                let (groups, kernel) = (width / scans.queries, scans.kernel(scan));
                // Two half tiles per tile, one warp for each; enough blocks to fill the device
                // twice over.
                let needed = (2 * walk.count as usize).div_ceil(kernel.threads() / WARP);
                let blocks = (16 * self.multiprocessors() / groups).clamp(1, needed);
                let params = Int8ScanParams { tiles, tile_scales, fragments, out, walk, chunks };
                let shape = Shape::grid(groups, blocks).early(self.early);
                // SAFETY: the tiles are within the table; the output has room for `width` queries
                // and the sample's groups; the queries are in this kernel's layout, padded to a
                // multiple of 64.
                unsafe { kernel.launch(self.stream, shape, &params) }
            }
            Int8Scans::Hopper(scans, ring) => {
                let scans = widest(scans, width);
                let (groups, kernel) = (width / scans.queries, scans.kernel(scan));
                let grid = (self.multiprocessors() / groups).max(1) * groups;
                let params = HopperScanParams {
                    tiles,
                    tile_scales,
                    fragments,
                    out,
                    walk,
                    chunks,
                    stages: ring.stages as i32,
                    query_groups: groups as i32,
                };
                let shape = Shape::grid(grid, 1).shared(ring.bytes).early(self.early);
                // SAFETY: the tiles are within the table; the output has room for `width` queries
                // and the sample's groups; the queries are in this kernel's layout, padded to a
                // multiple of 64; the grid is a multiple of the groups; the shared memory holds the
                // ring's stages and what the last product reads past their end.
                unsafe { kernel.launch(self.stream, shape, &params) }
            }
        }
    }

    /// Starts computing the first thresholds from the sample's bounds.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn first_thresholds(
        &self,
        kernels: &QueryKernels,
        quantised: &Quantised,
        width: usize,
        sample: TileWalk,
    ) -> Result<(), GpuError> {
        let (w, int8) = (self.workspace, &self.kernels.int8);
        let groups = self.groups(sample);
        let params = FirstThresholdsParams {
            pass: self.view(quantised, width),
            group_bounds: w.group_bounds(width, groups),
            padded: int8.form.0 as i32,
            layout: int8.form.1,
            sample,
            groups: groups as u32,
            groups_per_tile: int8.groups_per_tile as u32,
        };
        let shape = Shape::grid(width, 1).shared(kernels.first_shared).early(self.early);
        // SAFETY: a block for each query; the scratch has `groups` bounds of each; the shared
        // memory has the vector that a formula's kernel makes.
        unsafe { kernels.first_thresholds.launch(self.stream, shape, &params) }
    }

    /// Starts raising the thresholds from the candidates so far.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn raise_thresholds(
        &self,
        kernels: &QueryKernels,
        quantised: &Quantised,
        width: usize,
    ) -> Result<(), GpuError> {
        let params = RaiseThresholdsParams { pass: self.view(quantised, width) };
        let shape = Shape::grid(width, 1).early(self.early);
        // SAFETY: a block for each query; the candidates are divided among the queries as in the
        // scan, and name slots of the table.
        unsafe { kernels.raise_thresholds.launch(self.stream, shape, &params) }
    }

    /// Starts computing the answers from the candidates.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn rescore(
        &self,
        kernels: &QueryKernels,
        quantised: &Quantised,
        width: usize,
        class: Class,
    ) -> Result<(), GpuError> {
        assert!(width * (1 + class.stride()) <= self.workspace.answers.len());
        let formula_blocks = kernels.formula_blocks * self.multiprocessors();
        let params = RescoreParams {
            pass: self.view(quantised, width),
            answers: self.answers(width, class)?,
            almost_over: self.exchange.almost_over.pointer_mut()?,
            stride: class.stride() as i32,
            formula_blocks: formula_blocks as u32,
        };
        let shape = Shape::grid(formula_blocks + width, class.rescoring_parts(width));
        let shape = shape.shared(LIST_BYTES).early(self.early);
        // SAFETY: candidates, survivors and answers are divided among `width` queries, and the
        // other blocks take formulas; the list fits the shared memory.
        unsafe { kernels.rescore.launch(self.stream, shape, &params) }
    }
}

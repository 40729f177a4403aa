//! Launches of a pass over the float32 table.

use crate::GpuError;
use crate::driver::Shape;
use crate::search::abi::{ExactScanParams, LIST_BYTES, MergePartsParams};
use crate::search::pass::{Pass, RowsToRead};
use crate::search::workspace::PART_COUNTS;

/// Members of a set that are worth a block.
const MEMBERS_OF_A_PART: usize = 32;

impl Pass<'_> {
    /// Starts the scan for the best rows of each part of the float32 table, or of the queries'
    /// sets. Returns the number of parts.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn scan_parts(
        &self,
        batch: usize,
        stride: usize,
        rows: RowsToRead,
        float32_first: bool,
    ) -> Result<usize, GpuError> {
        let w = self.workspace;
        let kernels = self.kernels;
        let kernel = match (rows, float32_first) {
            (RowsToRead::All, true) => kernels.float32_scan,
            (RowsToRead::All, false) => kernels.exact_scan,
            (RowsToRead::Members(_), true) => kernels.float32_set_scan,
            (RowsToRead::Members(_), false) => kernels.exact_set_scan,
        };
        let needed = match rows {
            RowsToRead::All => self.resident.searched().div_ceil(64),
            RowsToRead::Members(most) => most.div_ceil(MEMBERS_OF_A_PART),
        };
        // As many blocks as run at the same time: a few more would run alone at the end.
        let blocks = self.multiprocessors() * kernel.resident_blocks(LIST_BYTES)?;
        let parts = (blocks / batch)
            .min(PART_COUNTS / batch)
            .min(w.max_part_hits() / (batch * stride))
            .min(needed)
            .max(1);
        let params = ExactScanParams {
            table: self.resident.searched_view(),
            queries: w.queries(),
            floors: w.scan_floors.pointer_mut(),
            part_hits: w.part_hits(batch * parts * stride),
            part_counts: w.part_counts.pointer_mut(),
            stride: stride as i32,
        };
        assert!(batch * parts <= w.part_counts.len());
        let shape = Shape::grid(batch, parts).shared(LIST_BYTES);
        // SAFETY: the parts' hits and counts fit, as asserted; the list fits the shared memory.
        unsafe { kernel.launch(self.stream, shape, &params)? };
        Ok(parts)
    }

    /// Starts merging the best rows of the parts into the answers.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn merge_parts(
        &self,
        batch: usize,
        stride: usize,
        parts: usize,
    ) -> Result<(), GpuError> {
        let w = self.workspace;
        assert!(batch * (1 + stride) <= w.answers.len());
        let params = MergePartsParams {
            headers: w.headers.pointer(),
            part_hits: w.part_hits(batch * parts * stride).as_const(),
            part_counts: w.part_counts.pointer(),
            answers: w.answers.pointer_mut(),
            parts: parts as i32,
            stride: stride as i32,
        };
        let shape = Shape::grid(batch, 1).shared(LIST_BYTES);
        // SAFETY: a block for each query; the answers fit, as asserted; the list fits the shared
        // memory.
        unsafe { self.kernels.merge_parts.launch(self.stream, shape, &params) }
    }
}

//! The launches of the report's three steps.

#![allow(unsafe_code)]

use contract::Row;
use gpu_core::driver::Shape;

use super::abi::{MergePiecesParams, ReportDotParams, SortPiecesParams};
use super::{Report, Room, Table, Version};
use crate::GpuError;
use crate::abi::DevicePointerMut;

impl Report<'_> {
    /// Starts computing the cosine of every row with this one.
    ///
    /// # Safety
    /// The caller synchronises the stream before it frees or changes what it passes, or searches
    /// again.
    pub(super) unsafe fn start_dot_product(
        &self,
        row: Row,
        table: &Table,
        room: &Room,
    ) -> Result<(), GpuError> {
        let (rows, dim) = (self.model.rows(), self.model.dim());
        let shared = if self.version == Version::V1 { 4 * dim } else { 0 };
        let grid = rows.div_ceil(self.version.rows_per_block());
        let params = ReportDotParams {
            table: table.components.pointer(),
            norms: table.norms.pointer(),
            query: room.query.pointer(),
            scores: room.scores.pointer_mut(),
            positions: room.positions.pointer_mut(),
            query_norm: self.host_norms[row.index()],
            rows: rows as u32,
            dim: dim as i32,
        };
        let shape = Shape::grid(grid, 1).shared(shared);
        // SAFETY: table and room are made for these rows and components; the caller promises the
        // rest.
        unsafe { self.dot_product.launch(&self.stream, shape, &params) }
    }

    /// Starts sorting each piece.
    ///
    /// # Safety
    /// The caller synchronises the stream before it frees or changes what it passes, or searches
    /// again.
    pub(super) unsafe fn start_sorting(&self, pieces: usize, room: &Room) -> Result<(), GpuError> {
        let params = SortPiecesParams {
            scores: room.scores.pointer_mut(),
            positions: room.positions.pointer_mut(),
            rows: self.model.rows() as u32,
            k: self.k as i32,
        };
        let shape = Shape::grid(pieces.div_ceil(self.first_merge.threads()), 1);
        // SAFETY: a thread for each piece; the room is made for these rows, and k is at most
        // `REPORT_MAX_K`; the caller promises the rest.
        unsafe { self.first_merge.launch(&self.stream, shape, &params) }
    }

    /// Starts merging pieces in pairs, in rounds, until one is left.
    ///
    /// # Safety
    /// The caller synchronises the stream before it frees or changes what it passes, or searches
    /// again.
    pub(super) unsafe fn start_merging(&self, pieces: usize, room: &Room) -> Result<(), GpuError> {
        let (scratch_scores, scratch_positions) = match &room.scratch {
            Some((scores, positions)) => (scores.pointer_mut(), positions.pointer_mut()),
            None => (DevicePointerMut::NULL, DevicePointerMut::NULL),
        };
        let mut stride = 1;
        while stride < pieces {
            let params = MergePiecesParams {
                scores: room.scores.pointer_mut(),
                positions: room.positions.pointer_mut(),
                scratch_scores,
                scratch_positions,
                rows: self.model.rows() as u32,
                k: self.k as i32,
                stride: stride as u32,
            };
            let pairs = pieces.div_ceil(stride) / 2;
            let shape = Shape::grid(pairs.div_ceil(self.merge_sort.threads()), 1);
            // SAFETY: as above, with a thread for each pair; only version 1 uses the scratch, and
            // it has one.
            unsafe { self.merge_sort.launch(&self.stream, shape, &params)? };
            stride *= 2;
        }
        Ok(())
    }
}

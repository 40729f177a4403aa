//! One function for each kernel of the search: its parameters, its grid, and why they fit each other. All of
//! them are unsafe for the reason that [`Pass`] states. This file has the kernel that every certified pass
//! begins with.

#![allow(unsafe_code)]

mod exact;
mod int4;
mod int8;

use super::abi::{FORMULA_COLUMNS, Layout, PrepareFormulasParams, PrepareQueriesParams};
use super::pass::Pass;
use super::workspace::MAX_BATCH;
use crate::GpuError;
use crate::driver::Shape;
use crate::resident::CHUNK4;

/// Threads of a warp.
const WARP: usize = 32;

impl Pass<'_> {
    /// Starts preparing the query for the scan of the 4-bit table.
    ///
    /// # Safety
    /// The promise of a [`Pass`].
    pub(in crate::search) unsafe fn prepare_one_query(&self) -> Result<(), GpuError> {
        // SAFETY: the caller's promise.
        unsafe { self.prepare(1, self.resident.dim.next_multiple_of(CHUNK4), Layout::Plain) }
    }

    /// Starts preparing the queries for the scan of the 8-bit table.
    ///
    /// # Safety
    /// The promise of a [`Pass`].
    pub(in crate::search) unsafe fn prepare_queries(&self, width: usize) -> Result<(), GpuError> {
        let int8 = &self.kernels.int8;
        // SAFETY: the caller's promise.
        unsafe { self.prepare(width, int8.padded, int8.layout) }
    }

    /// Starts making the vectors of formulas' columns.
    ///
    /// # Safety
    /// The promise of a [`Pass`].
    pub(in crate::search) unsafe fn prepare_formulas(&self, width: usize) -> Result<(), GpuError> {
        let w = self.workspace;
        assert!(width <= MAX_BATCH);
        let params = PrepareFormulasParams {
            table: self.resident.view(),
            formula_count: w.formula_count.pointer()?,
            uploaded_formulas: w.uploaded_formulas.pointer()?,
            words: w.excluded.device.pointer(),
            formulas: w.formulas.pointer_mut(),
            columns: w.columns.pointer_mut(),
            vectors: w.vectors.device.pointer_mut(),
        };
        let shape = Shape::grid(width, FORMULA_COLUMNS);
        let shape = shape.shared(size_of::<f64>() * self.resident.dim);
        // SAFETY: every buffer has room for `MAX_BATCH` queries; the caller promises the rest. Not early, because it
        // is the first kernel of its pass.
        unsafe { self.kernels.prepare_formulas.launch(self.stream, shape, &params) }
    }

    /// # Safety
    /// The promise of a [`Pass`].
    unsafe fn prepare(&self, batch: usize, padded: usize, layout: Layout) -> Result<(), GpuError> {
        let w = self.workspace;
        assert!(batch <= MAX_BATCH && batch * padded <= w.query_bytes.len());
        let params = PrepareQueriesParams {
            table: self.resident.view(),
            vectors: w.vectors.device.pointer(),
            uploaded: w.headers.host.pointer()?,
            headers: w.headers.device.pointer_mut(),
            bytes: w.query_bytes.pointer_mut(),
            scales: w.scales.pointer_mut(),
            thresholds: w.thresholds.pointer_mut(),
            floors: w.floors.pointer_mut(),
            candidate_counts: w.candidate_counts.pointer_mut(),
            survivor_counts: w.survivor_counts.pointer_mut(),
            tickets: w.tickets.pointer_mut(),
            columns: w.columns.pointer(),
            padded: padded as i32,
            layout,
        };
        let shape = Shape::grid(batch, 1).shared(size_of::<f64>() * self.resident.dim);
        // SAFETY: every buffer has room for `MAX_BATCH` queries, and the bytes are asserted; the caller
        // promises the rest. Not early, because it is the first kernel of its pass.
        unsafe { self.kernels.prepare_queries.launch(self.stream, shape, &params) }
    }
}

//! One function for each kernel of the search: its parameters, its grid, and why they fit each other. All of
//! them are unsafe for the reason that [`Pass`] states. This file has the kernel that every certified pass
//! begins with.

#![allow(unsafe_code)]

mod exact;
mod int4;
mod int8;

use super::abi::{Layout, PrepareQueriesParams};
use super::kernels::QueryKernels;
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
        let padded = self.resident.dim.next_multiple_of(CHUNK4);
        // SAFETY: the caller's promise.
        unsafe { self.prepare(&self.kernels.plain, 1, padded, Layout::Plain) }
    }

    /// Starts preparing the queries for the scan of the 8-bit table.
    ///
    /// # Safety
    /// The promise of a [`Pass`].
    pub(in crate::search) unsafe fn prepare_queries(
        &self,
        kernels: &QueryKernels,
        width: usize,
    ) -> Result<(), GpuError> {
        let int8 = &self.kernels.int8;
        // SAFETY: the caller's promise.
        unsafe { self.prepare(kernels, width, int8.padded, int8.layout) }
    }

    /// # Safety
    /// The promise of a [`Pass`].
    unsafe fn prepare(
        &self,
        kernels: &QueryKernels,
        batch: usize,
        padded: usize,
        layout: Layout,
    ) -> Result<(), GpuError> {
        let (w, e) = (self.workspace, self.exchange);
        assert!(batch <= MAX_BATCH && batch * padded <= w.query_bytes.len());
        let params = PrepareQueriesParams {
            table: self.resident.view(),
            uploaded: e.headers.pointer()?,
            uploaded_vectors: e.vectors.pointer()?,
            uploaded_excluded: e.excluded.pointer()?,
            uploaded_formulas: e.formulas.pointer()?,
            uploaded_formula_count: e.formula_count.pointer()?,
            headers: w.headers.pointer_mut(),
            vectors: w.vectors.pointer_mut(),
            excluded: w.excluded.pointer_mut(),
            formulas: w.formulas.pointer_mut(),
            formula_count: w.formula_count.pointer_mut(),
            bytes: w.query_bytes.pointer_mut(),
            scales: w.scales.pointer_mut(),
            thresholds: w.thresholds.pointer_mut(),
            floors: w.floors.pointer_mut(),
            candidate_counts: w.candidate_counts.pointer_mut(),
            survivor_counts: w.survivor_counts.pointer_mut(),
            tickets: w.tickets.pointer_mut(),
            ends: w.ends.pointer_mut(),
            padded: padded as i32,
            layout,
        };
        let shape = Shape::grid(batch, 1).shared(size_of::<f64>() * self.resident.dim);
        // SAFETY: every buffer has room for `MAX_BATCH` queries, and the bytes are asserted; the caller
        // promises the rest. Not early, because it is the first kernel of its pass.
        unsafe { kernels.prepare.launch(self.stream, shape, &params) }
    }
}

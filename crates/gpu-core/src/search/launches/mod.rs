//! One function for each kernel of the search: its parameters, its grid, and why they fit each
//! other. All of them are unsafe for the reason that [`Pass`] states. This file has what kernels of
//! certified passes share, and the one that such a pass begins with.

#![allow(unsafe_code)]

mod exact;
mod int4;
mod int8;
mod listing;

pub(super) use listing::LISTING_PARTS;

use super::abi::{Layout, PassView, PrepareQueriesParams, QueryHeader};
use super::kernels::QueryKernels;
use super::pass::Pass;
use super::workspace::MAX_BATCH;
use crate::GpuError;
use crate::abi::{DevicePointer, DevicePointerMut};
use crate::driver::Shape;
use crate::resident::Quantised;

/// Threads of a warp.
const WARP: usize = 32;

/// Where a pass finds its queries.
#[derive(Clone, Copy)]
pub(in crate::search) struct Source {
    /// `[batch]`.
    pub(in crate::search) headers: DevicePointer<QueryHeader>,
    /// `[vectors, dim]`.
    pub(in crate::search) vectors: DevicePointer<f32>,
    /// Where they are copied for the kernels that follow; null if those read them where they are.
    pub(in crate::search) copied: DevicePointerMut<f32>,
}

impl Pass<'_> {
    /// What the kernels of a pass of this width share: its queries divide the room for candidates
    /// and survivors among themselves.
    pub(in crate::search) fn view(&self, quantised: &Quantised, width: usize) -> PassView {
        let w = self.workspace;
        PassView {
            table: self.resident.searched_view(),
            queries: w.queries(),
            tile_scales: quantised.scales.pointer(),
            slot_rows: quantised.slot_rows.pointer(),
            formulas: w.formulas.pointer(),
            formula_count: w.formula_count.pointer(),
            formula_floors: w.formula_floors.pointer_mut(),
            columns: w.columns.pointer_mut(),
            bytes: w.query_bytes.pointer_mut(),
            scales: w.scales.pointer_mut(),
            thresholds: w.thresholds.pointer_mut(),
            floors: w.floors.pointer_mut(),
            ends: w.ends.pointer_mut(),
            sets: w.sets.pointer_mut(),
            candidate_counts: w.candidate_counts.pointer_mut(),
            survivor_counts: w.survivor_counts.pointer_mut(),
            tickets: w.tickets.pointer_mut(),
            candidates: w.candidates.pointer_mut(),
            survivors: w.survivors.pointer_mut(),
            capacity: (w.candidates.len() / width) as u32,
            survivor_capacity: (w.survivors.len() / width) as u32,
        }
    }

    /// Queries that the host wrote into the exchange, in a pass of this width.
    pub(in crate::search) fn uploaded(&self, width: usize) -> Result<Source, GpuError> {
        let (on_device, headers) = (&self.workspace.vectors, self.exchange.headers.pointer()?);
        let (vectors, copied) = if Self::copies_vectors(width) {
            (on_device.pointer(), DevicePointerMut::NULL)
        } else {
            (self.exchange.vectors.pointer()?, on_device.pointer_mut())
        };
        Ok(Source { headers, vectors, copied })
    }

    /// Starts preparing the queries of a source: as many components, with padding, in this layout.
    ///
    /// # Safety
    /// - The promise of a [`Pass`], for the queries of this source.
    pub(in crate::search) unsafe fn prepare(
        &self,
        kernels: &QueryKernels,
        quantised: &Quantised,
        source: Source,
        batch: usize,
        (padded, layout): (usize, Layout),
    ) -> Result<(), GpuError> {
        let (w, e) = (self.workspace, self.exchange);
        assert!(batch <= MAX_BATCH && batch * padded <= w.query_bytes.len());
        let params = PrepareQueriesParams {
            pass: self.view(quantised, batch),
            lift: self.resident.lift_view(),
            uploaded: source.headers,
            uploaded_vectors: source.vectors,
            uploaded_excluded: e.excluded.pointer()?,
            uploaded_formulas: e.formulas.pointer()?,
            uploaded_formula_count: e.formula_count.pointer()?,
            headers: w.headers.pointer_mut(),
            vectors: source.copied,
            excluded: w.excluded.pointer_mut(),
            formulas: w.formulas.pointer_mut(),
            formula_count: w.formula_count.pointer_mut(),
            padded: padded as i32,
            layout,
        };
        let shape = Shape::grid(batch, 1).shared(size_of::<f64>() * self.resident.lifted_dim());
        // SAFETY: every buffer has room for `MAX_BATCH` queries, and the bytes are asserted; the
        // caller promises the rest. Not early, because it is the first kernel of its pass.
        unsafe { kernels.prepare.launch(self.stream, shape, &params) }
    }
}

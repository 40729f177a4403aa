//! Launches of a pass for every row from a minimum score on, beside the scans of the 8-bit table.

use crate::GpuError;
use crate::driver::Shape;
use crate::resident::Quantised;
use crate::search::abi::{ListHitsParams, MinimumThresholdsParams, StopQueriesParams};
use crate::search::pass::Pass;
use crate::search::workspace::{LISTED_HITS, MAX_BATCH};

/// Blocks for each query that score its candidates.
pub(in crate::search) const LISTING_PARTS: usize = 4;

/// A query with more candidates than this part of its room, in the few tiles that are scanned
/// first, is given up.
const STOPPING_PART: u32 = 8;

impl Pass<'_> {
    /// Starts setting the thresholds.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn minimum_thresholds(
        &self,
        quantised: &Quantised,
        width: usize,
    ) -> Result<(), GpuError> {
        let kernel = &self.kernels.minimum_thresholds;
        assert!(width <= MAX_BATCH);
        let pass = self.view(quantised, width);
        let params = MinimumThresholdsParams { pass, batch: width as i32, unused: 0 };
        let shape = Shape::grid(width.div_ceil(kernel.threads()), 1).early(self.early);
        // SAFETY: a thread for each query, of which there is room for `MAX_BATCH`; the caller
        // promises the rest.
        unsafe { kernel.launch(self.stream, shape, &params) }
    }

    /// Starts giving up queries with too many candidates.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn stop_queries(
        &self,
        quantised: &Quantised,
        width: usize,
    ) -> Result<(), GpuError> {
        let kernel = &self.kernels.stop_queries;
        assert!(width <= MAX_BATCH);
        let pass = self.view(quantised, width);
        let most = pass.capacity / STOPPING_PART;
        let params = StopQueriesParams { pass, most, batch: width as i32 };
        let shape = Shape::grid(width.div_ceil(kernel.threads()), 1).early(self.early);
        // SAFETY: a thread for each query; thresholds and counts have room for `MAX_BATCH`; the
        // caller promises the rest.
        unsafe { kernel.launch(self.stream, shape, &params) }
    }

    /// Starts scoring the candidates and listing the hits.
    ///
    /// # Safety
    /// - The promise of a [`Pass`].
    pub(in crate::search) unsafe fn list_hits(
        &self,
        quantised: &Quantised,
        width: usize,
    ) -> Result<(), GpuError> {
        let (w, e) = (self.workspace, self.exchange);
        assert!(width <= MAX_BATCH);
        let params = ListHitsParams {
            pass: self.view(quantised, width),
            listed: e.listed.pointer_mut()?,
            listed_count: w.listed_count.pointer_mut(),
            overflowed: e.overflowed.pointer_mut()?,
            almost_over: e.almost_over.pointer_mut()?,
            list_capacity: LISTED_HITS as u32,
            unused: 0,
        };
        let shape = Shape::grid(width, LISTING_PARTS).early(self.early);
        // SAFETY: candidates are divided among `width` queries; the list has room for
        // `LISTED_HITS`, and `overflowed` for `MAX_BATCH`; the caller promises the rest.
        unsafe { self.kernels.list_hits.launch(self.stream, shape, &params) }
    }
}

//! The scans that count ranks, and which of them a device and a table have.

use super::abi::{
    FEW_RANKS_QUERIES, FEW_RANKS_ROWS, FEW_RANKS_SHARED, FEW_RANKS_SHARED_PER_QUERY,
    FEW_RANKS_WARPS, RANK_HOPPER_SHARED, RANK_HOPPER_SHARED_PER_QUERY, RANK_SHARED,
    RANK_SHARED_PER_QUERY, RankLayout, RankScanParams, entries,
};
use crate::GpuError;
use crate::driver::{Gpu, Kernel, Modules};

/// The fewest warps of a block of the scan for few queries: with fewer, rows come too slowly.
const FEWEST_WARPS: usize = 4;
/// Threads of a warp.
const WARP: usize = 32;

/// A scan kernel.
pub(super) struct Scan {
    /// The most queries that it takes.
    pub(super) queries: usize,
    pub(super) kernel: Kernel<RankScanParams>,
    /// Where it reads the queries' operands.
    pub(super) layout: RankLayout,
    /// Bytes of shared memory of a block.
    pub(super) shared: usize,
}

impl Scan {
    /// The scans of a table of this dimension, narrowest first; only kernels that every device can
    /// run if `portable`. None if the device has too little shared memory for them.
    ///
    /// # Errors
    /// If the device can't run the kernels.
    pub(super) fn all(
        modules: &mut Modules,
        gpu: &Gpu,
        dim: usize,
        portable: bool,
    ) -> Result<Vec<Self>, GpuError> {
        use entries::hopper_few_ranks::few_ranks;
        use entries::hopper_rank_scan::{hopper_rank_scan_64, hopper_rank_scan_128};
        use entries::rank_scan::{rank_scan_32, rank_scan_64, rank_scan_128};
        let mut scans = Vec::new();
        if gpu.capability == 90 && !portable {
            scans.extend(Self::for_few(modules.kernel(few_ranks)?, dim));
            for (queries, entry) in [(64, hopper_rank_scan_64), (128, hopper_rank_scan_128)] {
                let shared = RANK_HOPPER_SHARED + RANK_HOPPER_SHARED_PER_QUERY * queries;
                let kernel = modules.kernel(entry)?;
                scans.extend(Self::with_shared(kernel, queries, RankLayout::Chunks, shared));
            }
        } else {
            let entries = [(32, rank_scan_32), (64, rank_scan_64), (128, rank_scan_128)];
            for (queries, entry) in entries {
                let shared = RANK_SHARED + RANK_SHARED_PER_QUERY * queries;
                let kernel = modules.kernel(entry)?;
                scans.extend(Self::with_shared(kernel, queries, RankLayout::Fragments, shared));
            }
        }
        Ok(scans)
    }

    /// The scan for few queries, if it is better than those for many.
    fn for_few(kernel: Kernel<RankScanParams>, dim: usize) -> Option<Self> {
        let (warps, shared) = warps(dim)?;
        let kernel = kernel.with_threads((warps * WARP) as u32);
        Self::with_shared(kernel, FEW_RANKS_QUERIES, RankLayout::Lanes, shared)
    }

    fn with_shared(
        kernel: Kernel<RankScanParams>,
        queries: usize,
        layout: RankLayout,
        shared: usize,
    ) -> Option<Self> {
        let kernel = kernel.allow_shared(shared).ok()?;
        Some(Self { queries, kernel, layout, shared })
    }
}

/// The warps of a block of the scan for few queries, and its shared memory. `None` if it has room
/// for too few, or if rows of the table are not aligned.
fn warps(dim: usize) -> Option<(usize, usize)> {
    let of_query = FEW_RANKS_SHARED_PER_QUERY + size_of::<f32>() * dim.next_multiple_of(16);
    let of_warp = FEW_RANKS_ROWS * dim * size_of::<f32>();
    let fit = FEW_RANKS_SHARED.checked_sub(FEW_RANKS_QUERIES * of_query)? / of_warp;
    let warps = match fit.min(FEW_RANKS_WARPS) {
        // One of a multiprocessor's four parts would have one more than the others.
        fit if fit % 4 == 1 => fit - 1,
        fit => fit,
    };
    (dim.is_multiple_of(4) && warps >= FEWEST_WARPS)
        .then_some((warps, FEW_RANKS_QUERIES * of_query + warps * of_warp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_fit_and_are_enough() {
        assert_eq!(warps(300), Some((8, 32 * (272 + 4 * 304) + 8 * 16 * 1200)));
        assert_eq!(warps(4).map(|(warps, _)| warps), Some(12));
        assert_eq!(warps(50), None, "not aligned");
        assert_eq!(warps(512).map(|(warps, _)| warps), Some(4));
        assert_eq!(warps(768), None, "too long");
        for dim in 1..4000 {
            let Some((warps, shared)) = warps(dim) else { continue };
            assert!((FEWEST_WARPS..=FEW_RANKS_WARPS).contains(&warps), "{dim}");
            assert!(shared <= FEW_RANKS_SHARED, "{dim}");
            assert_eq!(dim % 4, 0, "bulk copies go to multiples of 16 bytes");
        }
    }
}

//! The floor under every search, for benches/full_scan.rs and examples/time_search.rs.

use std::hint::black_box;

use rayon::prelude::*;

/// Reads every component once, on all threads of rayon's pool, and sums so that it can't be left out.
pub(crate) fn read(components: &[f32]) -> u64 {
    let sum = |part: &[f32]| {
        let mut sums = [0u64; 16];
        for chunk in part.chunks_exact(16) {
            for (sum, x) in sums.iter_mut().zip(chunk) {
                *sum = sum.wrapping_add(u64::from(x.to_bits()));
            }
        }
        sums.into_iter().fold(0, u64::wrapping_add)
    };
    black_box(components.par_chunks(1 << 16).map(sum).reduce(|| 0, u64::wrapping_add))
}

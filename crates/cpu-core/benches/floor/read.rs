//! Reads a table once, which no search can beat. For benches/search.rs and examples/time_search.rs.

use std::hint::black_box;

use rayon::prelude::*;

/// Reads all bytes once, on all threads of rayon's pool, and sums them, so that the compiler can't
/// remove the reads.
pub(crate) fn read(bytes: &[u8]) -> u64 {
    black_box(bytes.par_chunks(1 << 18).map(sum).reduce(|| 0, u64::wrapping_add))
}

fn sum(part: &[u8]) -> u64 {
    let mut sums = [0u64; 8];
    for line in part.as_chunks::<64>().0 {
        for (sum, word) in sums.iter_mut().zip(line.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
        prefetch(line);
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

/// Prefetches as the scan does; otherwise this would not be a lower limit.
#[allow(unsafe_code)]
fn prefetch(line: &[u8; 64]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; no address is wrong, and every x86-64 has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().wrapping_add(6144).cast());
    }
    let _ = line;
}

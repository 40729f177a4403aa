//! Prefetches cache lines before they are needed.

use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
use std::ops::Range;

use super::Strips;
use crate::certified::layout::{Line, STRIP_BLOCKS};

/// The prefetch distance for a few queries: 6 kB of each plane.
pub(super) const LINES_AHEAD: usize = 96;

/// Prefetches the strip after `strip`, part by part; otherwise memory would be idle during the products.
#[inline(always)]
pub(super) fn prefetch_next(strips: Strips<'_>, strip: usize, parts: Range<usize>, of: usize) {
    let strip_lines = STRIP_BLOCKS * strips.layout.block_lines();
    let [from, to] =
        [parts.start, parts.end].map(|part| strip * strip_lines + part * strip_lines / of);
    for plane in [Some(strips.high), strips.low].into_iter().flatten() {
        plane[from..to].iter().for_each(|line| prefetch_ahead(line, strip_lines));
    }
}

/// Prefetches a line that is needed a little later, into the second-level cache, which has room. The hardware
/// prefetcher stops at page boundaries.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) fn prefetch_ahead(line: &Line, lines: usize) {
    let ahead = (&raw const *line).wrapping_add(lines);
    // SAFETY: a hint; no address is wrong, and every x86-64 has the instruction.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(ahead.cast()) };
}

/// Prefetches all lines of data that is read soon.
#[allow(unsafe_code)]
pub(super) fn prefetch_all<T>(numbers: &[T]) {
    let bytes = size_of_val(numbers);
    let first = numbers.as_ptr().cast::<i8>();
    // Also the line of the last byte, if the first byte is not at the start of a line.
    for offset in (0..bytes).step_by(size_of::<Line>()).chain([bytes.saturating_sub(1)]) {
        // SAFETY: as in `prefetch_ahead`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(offset)) };
    }
}

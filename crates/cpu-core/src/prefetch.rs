//! Prefetches memory that is read soon.

/// Bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Prefetches all lines of these numbers into the second-level cache. Does nothing where there is no such instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(numbers: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let first = numbers.as_ptr().cast::<i8>();
        for offset in (0..size_of_val(numbers)).step_by(LINE) {
            // SAFETY: a hint; no address is wrong, and every x86-64 has the instruction.
            #[allow(unsafe_code)]
            unsafe {
                _mm_prefetch::<_MM_HINT_T1>(first.wrapping_add(offset));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers;
}

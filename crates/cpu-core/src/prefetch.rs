//! Prefetches memory that is read soon. Does nothing where there is no such instruction.

/// Bytes of a cache line.
const LINE: usize = 64;

/// A cache to prefetch into.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cache {
    /// For what is read at once.
    First,
    /// For what is read a little later: it has room.
    Second,
}

/// Prefetches all lines of these numbers.
#[inline(always)]
pub(crate) fn prefetch<T>(numbers: &[T], cache: Cache) {
    let (first, bytes) = (numbers.as_ptr().cast::<u8>(), size_of_val(numbers));
    for offset in (0..bytes).step_by(LINE) {
        prefetch_line(first.wrapping_add(offset), cache);
    }
    // If the first byte is not at the start of a line, the last one may be in another line.
    prefetch_line(first.wrapping_add(bytes.saturating_sub(1)), cache);
}

/// Prefetches the cache line at this address, which may be any.
#[inline(always)]
pub(crate) fn prefetch_line<T>(address: *const T, cache: Cache) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint; no address is wrong, and every x86-64 has the instruction.
        #[allow(unsafe_code)]
        unsafe {
            match cache {
                Cache::First => _mm_prefetch::<_MM_HINT_T0>(address.cast()),
                Cache::Second => _mm_prefetch::<_MM_HINT_T1>(address.cast()),
            }
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        use std::arch::asm;
        // SAFETY: a hint; no address is wrong, and every AArch64 has the instruction.
        #[allow(unsafe_code)]
        unsafe {
            match cache {
                Cache::First => asm!(
                    "prfm pldl1keep, [{}]",
                    in(reg) address,
                    options(readonly, nostack, preserves_flags)
                ),
                Cache::Second => asm!(
                    "prfm pldl2keep, [{}]",
                    in(reg) address,
                    options(readonly, nostack, preserves_flags)
                ),
            }
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (address, cache);
}

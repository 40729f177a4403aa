//! AVX-VNNI: AVX2, and one instruction that adds products of bytes.

use std::arch::x86_64::*;

use super::avx2::{Avx2, with_32_bytes};
use super::{About, Kernel, Vectors, Work};

/// AVX-VNNI, and AVX2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AvxVnni {
    avx2: Avx2,
}

impl Vectors for AvxVnni {
    const ABOUT: About = About { name: "AVX-VNNI", largest_level: 127, ..Avx2::ABOUT };

    fn detect() -> Option<Self> {
        let avx2 = Avx2::detect()?;
        is_x86_feature_detected!("avxvnni").then_some(Self { avx2 })
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
        fn inner<K: Kernel>(set: AvxVnni, kernel: K) -> K::Output {
            kernel.run(set)
        }
        match K::WORK {
            // SAFETY: only `detect` makes a set, after it has detected these features.
            Work::Products => unsafe { inner(self, kernel) },
            Work::Wide | Work::Narrow => self.avx2.run(kernel),
        }
    }

    with_32_bytes! {
        accumulate |sums, rows, levels| _mm256_dpbusd_avx_epi32(sums, rows, levels)
    }
}

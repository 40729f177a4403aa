//! AVX-VNNI: AVX2, and one instruction that adds products of bytes.

use std::arch::x86_64::*;

use super::avx2::{Avx2, with_32_bytes};
use super::{About, Vectors};

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

    runs! { with "avx2,fma,f16c,avxvnni", only Products, else avx2 }

    with_32_bytes! {
        accumulate |sums, rows, levels| _mm256_dpbusd_avx_epi32(sums, rows, levels)
    }
}

//! AVX-512 with VNNI: one instruction that adds products of 64 bytes.

use std::arch::x86_64::*;

use super::avx512::{Avx512, with_64_bytes};
use super::{About, Vectors};

/// AVX-512 with VNNI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512Vnni {
    avx512: Avx512,
}

impl Vectors for Avx512Vnni {
    const ABOUT: About = About {
        name: "AVX-512 VNNI",
        largest_level: 127,
        thread_share: 128_000_000,
        ..Avx512::ABOUT
    };

    type Matrices<'a> = super::NoMatrices;

    fn detect() -> Option<Self> {
        let avx512 = Avx512::detect()?;
        is_x86_feature_detected!("avx512vnni").then_some(Self { avx512 })
    }

    runs! { with "avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,f16c", only Products, else avx512 }

    with_64_bytes! {
        accumulate |sums, rows, levels| _mm512_dpbusd_epi32(sums, rows, levels)
    }
}

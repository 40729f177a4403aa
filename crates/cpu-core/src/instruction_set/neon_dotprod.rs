//! NEON with dot products (ARMv8.2 DotProd): one instruction adds products of signed bytes.
//!
//! The standard library has no stable function for it, so this file uses inline assembly.

use std::arch::aarch64::*;
use std::arch::asm;

use super::neon::{Neon, with_16_bytes};
use super::{About, Vectors};

/// NEON with dot products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeonDotprod {
    neon: Neon,
}

impl Vectors for NeonDotprod {
    const ABOUT: About =
        About { name: "NEON dotprod", largest_level: 127, thread_share: 32_000_000, ..Neon::ABOUT };

    type Matrices<'a> = super::NoMatrices;

    fn detect() -> Option<Self> {
        let neon = Neon::detect()?;
        std::arch::is_aarch64_feature_detected!("dotprod").then_some(Self { neon })
    }

    runs! { with "neon,dotprod", only Products, else neon }

    // Levels are the bits of a float32, because that is loaded into a vector register.
    with_16_bytes! {
        signed true,
        levels f32: |four| f32::from_bits(u32::from_le_bytes(four)),
        accumulate |sums, rows, levels| sdot(sums, rows, levels)
    }
}

/// Adds four products of signed bytes to each sum, those of `rows` with the same four levels.
#[target_feature(enable = "neon,dotprod")]
#[inline]
#[allow(unsafe_code)]
fn sdot(mut sums: int32x4_t, rows: int32x4_t, levels: f32) -> int32x4_t {
    // SAFETY: touches no memory, and the processor has the instruction.
    unsafe {
        asm!(
            "sdot {0:v}.4s, {1:v}.16b, {2:v}.4b[0]",
            inout(vreg) sums, in(vreg) rows, in(vreg) levels,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

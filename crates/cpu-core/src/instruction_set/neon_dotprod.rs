//! NEON with dot products (ARMv8.2 DotProd): one instruction adds products of signed bytes. Its
//! levels are a quarter of a register; so for many queries, a register has the levels of four.
//!
//! The standard library has no stable function for it, so this file uses inline assembly.

#![allow(clippy::needless_range_loop)] // One index for several arrays.

use std::arch::aarch64::*;
use std::arch::asm;

use super::neon::{Alternating, Neon, with_16_bytes};
use super::{About, Line, Matrices, STRIP_BLOCKS, Sums, Vectors};

/// NEON with dot products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeonDotprod {
    neon: Neon,
}

impl Vectors for NeonDotprod {
    const ABOUT: About =
        About { name: "NEON dotprod", largest_level: 127, thread_share: 32_000_000, ..Neon::ABOUT };

    type Matrices<'a> = Alternating<'a, Self>;

    fn detect() -> Option<Self> {
        let neon = Neon::detect()?;
        std::arch::is_aarch64_feature_detected!("dotprod").then_some(Self { neon })
    }

    runs! { with "neon,dotprod", only Products, else neon }

    // Levels are the bits of a float32, because that is loaded into a vector register.
    with_16_bytes! {
        signed true,
        levels f32: |four| f32::from_bits(u32::from_le_bytes(four)),
        accumulate |sums, rows, levels| sdot(sums, rows, levels),
        accumulate_row |sums, row, levels| sdot_of_row(sums, row, levels)
    }

    #[inline(always)]
    fn matrices<'a>(
        self,
        queries: &'a [Line],
        query_lines: usize,
        eights: usize,
        arranged: &'a mut Vec<Line>,
    ) -> Option<Self::Matrices<'a>> {
        let new = Alternating::new::<GROUP_QUERIES, 4>;
        Some(new(self, queries, query_lines, eights, arranged))
    }
}

/// Queries that are multiplied together: a register has four levels of each.
const GROUP_QUERIES: usize = 4;

/// Registers of a line: each for four components.
const LINE_STEPS: usize = 4;

impl Matrices for Alternating<'_, NeonDotprod> {
    const QUERIES: usize = GROUP_QUERIES;

    #[inline(always)]
    #[allow(unsafe_code)]
    fn multiply(&self, blocks: [&[Line]; STRIP_BLOCKS], group: usize, sums: &mut [Sums]) {
        let queries = self.group(group);
        let sums = sums.as_chunks_mut().0.first_chunk_mut().expect("the sums of a group");
        for b in 0..STRIP_BLOCKS {
            // SAFETY: the set is the proof that the machine has the instructions.
            unsafe { tile(self.set, b, blocks[b].as_chunks().0, queries, sums) };
        }
    }
}

/// Sums of block `b` with a group of queries. A line of queries is for four lines of rows.
#[target_feature(enable = "neon,dotprod")]
fn tile(
    set: NeonDotprod,
    b: usize,
    rows: &[[Line; LINE_STEPS]],
    queries: &[Line],
    sums: &mut [[Sums; STRIP_BLOCKS]; GROUP_QUERIES],
) {
    let rows = &rows[..queries.len()];
    let mut lanes = [[vdupq_n_s32(0); 4]; GROUP_QUERIES];
    for (lines, queries) in rows.iter().zip(queries) {
        let levels = set.load(queries);
        // Not in a loop, which might stay one, with its sums in memory.
        lanes = add_line(lanes, set.load(&lines[0]), levels[0]);
        lanes = add_line(lanes, set.load(&lines[1]), levels[1]);
        lanes = add_line(lanes, set.load(&lines[2]), levels[2]);
        lanes = add_line(lanes, set.load(&lines[3]), levels[3]);
    }
    for q in 0..GROUP_QUERIES {
        set.store(lanes[q], sums[q][b].line_mut());
    }
}

/// Adds the products of four components of sixteen rows and of four queries.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn add_line(
    lanes: [[int32x4_t; 4]; GROUP_QUERIES],
    rows: [int32x4_t; 4],
    levels: int32x4_t,
) -> [[int32x4_t; 4]; GROUP_QUERIES] {
    [
        four!(|r| sdot_with::<0>(lanes[0][r], rows[r], levels)),
        four!(|r| sdot_with::<1>(lanes[1][r], rows[r], levels)),
        four!(|r| sdot_with::<2>(lanes[2][r], rows[r], levels)),
        four!(|r| sdot_with::<3>(lanes[3][r], rows[r], levels)),
    ]
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

/// The same with the levels of one of four queries.
#[target_feature(enable = "neon,dotprod")]
#[inline]
#[allow(unsafe_code)]
fn sdot_with<const QUERY: usize>(
    mut sums: int32x4_t,
    rows: int32x4_t,
    levels: int32x4_t,
) -> int32x4_t {
    // SAFETY: touches no memory, and the processor has the instruction.
    unsafe {
        asm!(
            "sdot {0:v}.4s, {1:v}.16b, {2:v}.4b[{3}]",
            inout(vreg) sums, in(vreg) rows, in(vreg) levels, const QUERY,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// Adds four products of signed bytes to each sum: those of a row with as many levels.
#[target_feature(enable = "neon,dotprod")]
#[inline]
#[allow(unsafe_code)]
fn sdot_of_row(mut sums: int32x4_t, row: int32x4_t, levels: int32x4_t) -> int32x4_t {
    // SAFETY: touches no memory, and the processor has the instruction.
    unsafe {
        asm!(
            "sdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
            inout(vreg) sums, in(vreg) row, in(vreg) levels,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

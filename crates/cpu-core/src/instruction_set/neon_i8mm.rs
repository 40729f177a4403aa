//! NEON with matrices of bytes (ARMv8.6 I8MM): one instruction adds products of unsigned and signed
//! bytes; for many queries, another one multiplies eight components of two rows by those of two
//! queries.
//!
//! The standard library has no stable functions for them, so this file uses inline assembly.

#![allow(clippy::needless_range_loop)] // One index for several arrays.

use std::arch::aarch64::*;
use std::arch::asm;

use super::neon::{Alternating, with_16_bytes};
use super::neon_dotprod::NeonDotprod;
use super::{About, BLOCK_ROWS, Line, Matrices, STRIP_BLOCKS, Sums, Vectors};

/// NEON with dot products and matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeonI8mm {
    dotprod: NeonDotprod,
}

impl Vectors for NeonI8mm {
    const ABOUT: About =
        About { name: "NEON i8mm", thread_share: 64_000_000, ..NeonDotprod::ABOUT };

    type Matrices<'a> = Alternating<'a, Self>;

    fn detect() -> Option<Self> {
        let dotprod = NeonDotprod::detect()?;
        std::arch::is_aarch64_feature_detected!("i8mm").then_some(Self { dotprod })
    }

    runs! { with "neon,dotprod,i8mm", only Products, else dotprod }

    // Levels are the bits of a float32, because that is loaded into a vector register.
    with_16_bytes! {
        signed false,
        levels f32: |four| f32::from_bits(u32::from_le_bytes(four)),
        accumulate |sums, rows, levels| usdot(sums, rows, levels),
        accumulate_row |sums, row, levels| usdot_of_row(sums, row, levels)
    }

    #[inline(always)]
    fn matrices<'a>(
        self,
        queries: &'a [Line],
        query_lines: usize,
        eights: usize,
        arranged: &'a mut Vec<Line>,
    ) -> Option<Self::Matrices<'a>> {
        let new = Alternating::new::<GROUP_QUERIES, 8>;
        Some(new(self, queries, query_lines, eights, arranged))
    }

    /// Brings the eight components of each row together: the first line has those of eight rows,
    /// the second those of the others.
    #[inline(always)]
    #[allow(unsafe_code, unused_unsafe)]
    fn arrange_rows(self, lines: [[int32x4_t; 4]; 2]) -> [[int32x4_t; 4]; 2] {
        let [a, b] = lines;
        // SAFETY: the set is the proof that the machine has the instructions.
        unsafe {
            [
                [
                    vzip1q_s32(a[0], b[0]),
                    vzip2q_s32(a[0], b[0]),
                    vzip1q_s32(a[1], b[1]),
                    vzip2q_s32(a[1], b[1]),
                ],
                [
                    vzip1q_s32(a[2], b[2]),
                    vzip2q_s32(a[2], b[2]),
                    vzip1q_s32(a[3], b[3]),
                    vzip2q_s32(a[3], b[3]),
                ],
            ]
        }
    }
}

/// Queries that are multiplied together: a line has eight components of each.
const GROUP_QUERIES: usize = 8;

/// Rows that are multiplied together: a line has eight components of each.
const TILE_ROWS: usize = 8;

impl Matrices for Alternating<'_, NeonI8mm> {
    const QUERIES: usize = GROUP_QUERIES;

    #[inline(always)]
    #[allow(unsafe_code)]
    fn multiply(&self, blocks: [&[Line]; STRIP_BLOCKS], group: usize, sums: &mut [Sums]) {
        let queries = self.group(group);
        let sums = sums.as_chunks_mut().0.first_chunk_mut().expect("the sums of a group");
        for b in 0..STRIP_BLOCKS {
            for half in 0..BLOCK_ROWS / TILE_ROWS {
                // SAFETY: the set is the proof that the machine has the instructions.
                unsafe { tile(self.set, [b, half], blocks[b].as_chunks().0, queries, sums) };
            }
        }
    }
}

/// Sums of half of the rows of block `b` with a group of queries. A step has two lines of rows:
/// with either half of them.
#[target_feature(enable = "neon,dotprod,i8mm")]
#[allow(unsafe_code, unused_unsafe)]
fn tile(
    set: NeonI8mm,
    [b, half]: [usize; 2],
    rows: &[[Line; 2]],
    queries: &[Line],
    sums: &mut [[Sums; STRIP_BLOCKS]; GROUP_QUERIES],
) {
    let rows = &rows[..queries.len()];
    // Two rows and two queries each.
    let mut lanes = [[vdupq_n_s32(0); GROUP_QUERIES / 2]; TILE_ROWS / 2];
    for (lines, queries) in rows.iter().zip(queries) {
        let (rows, queries) = (set.load(&lines[half]), set.load(queries));
        lanes = four!(|r| four!(|q| usmmla(lanes[r][q], rows[r], queries[q])));
    }
    for q in 0..GROUP_QUERIES / 2 {
        for part in 0..2 {
            let (first, second) = (lanes[2 * part][q], lanes[2 * part + 1][q]);
            for (query, four) in
                [vuzp1q_s32(first, second), vuzp2q_s32(first, second)].into_iter().enumerate()
            {
                let sums = &mut sums[2 * q + query][b].0;
                let to: &mut [i32; 4] = &mut sums.as_chunks_mut().0[2 * half + part];
                // SAFETY: `to` is as long as a register.
                unsafe { vst1q_s32(to.as_mut_ptr(), four) };
            }
        }
    }
}

/// Adds four products of an unsigned and a signed byte to each sum: those of `rows` with the same
/// four levels.
#[target_feature(enable = "neon,dotprod,i8mm")]
#[inline]
#[allow(unsafe_code)]
fn usdot(mut sums: int32x4_t, rows: int32x4_t, levels: f32) -> int32x4_t {
    // SAFETY: touches no memory, and the processor has the instruction.
    unsafe {
        asm!(
            "usdot {0:v}.4s, {1:v}.16b, {2:v}.4b[0]",
            inout(vreg) sums, in(vreg) rows, in(vreg) levels,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// The same of a row with as many levels.
#[target_feature(enable = "neon,dotprod,i8mm")]
#[inline]
#[allow(unsafe_code)]
fn usdot_of_row(mut sums: int32x4_t, row: int32x4_t, levels: int32x4_t) -> int32x4_t {
    // SAFETY: touches no memory, and the processor has the instruction.
    unsafe {
        asm!(
            "usdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
            inout(vreg) sums, in(vreg) row, in(vreg) levels,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// Adds eight products to the sum of each of two rows, unsigned, with each of two queries.
#[target_feature(enable = "neon,dotprod,i8mm")]
#[inline]
#[allow(unsafe_code)]
fn usmmla(mut sums: int32x4_t, rows: int32x4_t, queries: int32x4_t) -> int32x4_t {
    // SAFETY: touches no memory, and the processor has the instruction.
    unsafe {
        asm!(
            "usmmla {0:v}.4s, {1:v}.16b, {2:v}.16b",
            inout(vreg) sums, in(vreg) rows, in(vreg) queries,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

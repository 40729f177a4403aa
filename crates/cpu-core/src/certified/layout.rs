//! The memory layout of the derived table.
//!
//! A component of a rotated unit row is a byte `u`, which means `(u - 128) · step` of its row. Its
//! high and low halves are in different planes, so that four bits can be read without the other
//! four. In a plane, [`BLOCK_ROWS`] rows form a block of `lines + 1` cache lines:
//!
//! - `lines = ceil(dim / 8)` lines of halves. Line `j` has components `8j` to `8j + 7`: byte
//!   `4r + i` holds component `8j + i` of row `r` in its low half and `8j + 4 + i` in its high
//!   half. So a register holds four components of sixteen rows, the shape that the instructions for
//!   8-bit products need, and no sum runs across a register.
//! - one line of [`RowScale`]s, one per row.

pub(crate) use crate::instruction_set::{BLOCK_ROWS, Line, STRIP_BLOCKS, Sums};

/// Rows that are scanned together.
pub(crate) const STRIP_ROWS: usize = STRIP_BLOCKS * BLOCK_ROWS;

/// The byte for zero.
pub(crate) const ZERO_LEVEL: i32 = 128;

/// A row's step, and its residual: an upper bound on the distance between the rotated unit row and
/// its levels. Both are float32 numbers rounded up to their upper 16 bits: the step is in the upper
/// half of the word, the residual in the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowScale(pub(crate) u32);

impl RowScale {
    /// The scale of a block's row `r`.
    pub(crate) fn at(line: &Line, r: usize) -> Self {
        Self(u32::from_le_bytes(line.0.as_chunks().0[r]))
    }

    /// `step` must come from [`upper_half_up`].
    pub(crate) fn new(step: f32, residual: f64) -> Self {
        Self(step.to_bits() & 0xffff_0000 | upper_half_up(residual).to_bits() >> 16)
    }

    pub(crate) fn step(self) -> f32 {
        f32::from_bits(self.0 & 0xffff_0000)
    }

    pub(crate) fn residual(self) -> f32 {
        f32::from_bits(self.0 << 16)
    }
}

/// The smallest non-negative float32 that is at least `x` and has zeros in its lower 16 bits.
pub(crate) fn upper_half_up(x: f64) -> f32 {
    debug_assert!(x >= 0.0);
    let mut near = x as f32;
    if f64::from(near) < x {
        near = near.next_up();
    }
    f32::from_bits(near.to_bits().div_ceil(1 << 16) << 16)
}

/// Sizes derived from a table's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) rows: usize,
    pub(crate) dim: usize,
}

impl Layout {
    /// Lines of halves in a block of a plane.
    pub(crate) fn lines(self) -> usize {
        self.dim.div_ceil(8)
    }

    /// Lines of a block of a plane, with the row scales.
    pub(crate) fn block_lines(self) -> usize {
        self.lines() + 1
    }

    /// Blocks, always whole strips: rows past the table's end are zero.
    pub(crate) fn blocks(self) -> usize {
        self.rows.div_ceil(STRIP_ROWS) * STRIP_BLOCKS
    }

    /// Lines of a plane.
    pub(crate) fn plane_lines(self) -> usize {
        self.blocks() * self.block_lines()
    }

    /// Bytes of both planes.
    pub(crate) fn bytes(self) -> usize {
        2 * self.plane_lines() * size_of::<Line>()
    }

    /// Bytes of a query's plane: its components, padded with zeros to whole steps of the widest
    /// instructions.
    pub(crate) fn query_bytes(self) -> usize {
        self.dim.next_multiple_of(64)
    }

    /// Lines of a block unpacked to one byte per component, padded with zeros to `query_bytes`.
    pub(crate) fn unfolded_lines(self) -> usize {
        self.query_bytes() / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scales_round_up_by_less_than_a_hundredth(step in 1e-6f64..1.0, residual in 0.0f64..1.2) {
            let rounded = upper_half_up(step);
            let scale = RowScale::new(rounded, residual);
            prop_assert_eq!(scale.step(), rounded);
            prop_assert!(f64::from(rounded) >= step && f64::from(rounded) <= step * 1.008);
            let found = f64::from(scale.residual());
            prop_assert!(found >= residual && found <= residual * 1.008);
        }
    }

    #[test]
    fn zero_stays_zero() {
        assert_eq!(RowScale::new(0.0, 0.0).0, 0);
    }
}

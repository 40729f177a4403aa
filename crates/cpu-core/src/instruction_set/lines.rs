//! Cache lines, which the scan's tables are made of, and the sums of a block of rows.

use bytemuck::{Pod, Zeroable};

/// Rows of a block: the number of 32-bit sums in a line.
pub(crate) const BLOCK_ROWS: usize = 16;

/// Blocks that are scanned together.
pub(crate) const STRIP_BLOCKS: usize = 2;

/// A cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; 64]);

impl Line {
    pub(crate) const ZERO: Self = Self([0; 64]);
}

/// The sums of a block's rows with one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Sums(pub(crate) [i32; BLOCK_ROWS]);

impl Sums {
    pub(crate) const ZERO: Self = Self([0; BLOCK_ROWS]);

    #[inline(always)]
    pub(crate) fn line(&self) -> &Line {
        bytemuck::cast_ref(self)
    }

    #[inline(always)]
    pub(crate) fn line_mut(&mut self) -> &mut Line {
        bytemuck::cast_mut(self)
    }
}

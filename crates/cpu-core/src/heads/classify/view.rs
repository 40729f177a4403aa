//! The products of tokens as the loops read them.

use super::Shape;

/// The products, to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a, T> {
    pub(super) shapes: &'a [Shape],
    pub(super) columns: usize,
    pub(super) values: &'a [T],
}

/// The products, as they are kept.
pub(super) enum Views<'a> {
    Float16(View<'a, u16>),
    Float32(View<'a, f32>),
}

impl<'a, T> View<'a, T> {
    #[inline(always)]
    pub(super) fn row(&self, place: u32) -> &'a [T] {
        &self.values[place as usize * self.columns..][..self.columns]
    }
}

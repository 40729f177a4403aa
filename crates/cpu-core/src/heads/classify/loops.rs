//! The loops: a token's products, a text's features (the maxima over its positions of sums of its
//! tokens' products), and dense layers. They are compiled for several instruction sets, and give
//! the same bits with each, because nothing is fused.

#![allow(clippy::needless_range_loop)] // One index for several arrays.

use contract::classifier::Layer;

use super::Shape;
use crate::heads::{BLOCK_FILTERS, FilterBlock};
use crate::instruction_set::{Kernel, Vectors, Work};
use crate::prefetch::{Cache, prefetch};

/// Channels that are added together; those of each convolution are filled up with zeros to a
/// multiple.
pub(super) const CHANNELS: usize = 8;

/// The products of tokens, `[places, columns]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a, T> {
    pub(super) shapes: &'a [Shape],
    pub(super) columns: usize,
    pub(super) values: &'a [T],
}

impl<'a, T> View<'a, T> {
    #[inline(always)]
    fn row(&self, place: u32) -> &'a [T] {
        &self.values[place as usize * self.columns..][..self.columns]
    }
}

/// The sums that a dense layer's output is made of, so that they can be added side by side.
const LANES: usize = 8;

/// A product as it is kept.
pub(crate) trait Product: Copy {
    /// The values of some. Implementations must be `#[inline(always)]`.
    fn widen<V: Vectors>(some: &[Self; CHANNELS], vectors: V) -> [f32; CHANNELS];
}

impl Product for f32 {
    #[inline(always)]
    fn widen<V: Vectors>(some: &[f32; CHANNELS], _: V) -> [f32; CHANNELS] {
        *some
    }
}

/// A float16, as its bits.
impl Product for u16 {
    #[inline(always)]
    fn widen<V: Vectors>(some: &[u16; CHANNELS], vectors: V) -> [f32; CHANNELS] {
        vectors.widen(some)
    }
}

/// Sums of windows that are under way, and the features.
#[derive(Debug, Default)]
pub(crate) struct WindowSums {
    /// For each convolution, `[width, channels]`: a window's sums are at the number of its first
    /// position, modulo the width.
    sums: Vec<f32>,
    /// `[channels of all convolutions]`, with zeros after those of each.
    pub(super) maxima: Vec<f32>,
}

/// The features of a text, after the ReLU, from the places of its tokens and their products.
///
/// Token after token, so that each row is read once, from its beginning to its end. A token
/// continues the sums of all windows that cover it.
pub(crate) struct Features<'a, T> {
    pub(super) text: &'a [u32],
    pub(super) products: View<'a, T>,
    pub(super) space: &'a mut WindowSums,
}

impl<T: Product> Kernel for Features<'_, T> {
    const WORK: Work = Work::Wide;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let Self { text, products, space } = self;
        let shapes = products.shapes;
        let last = shapes.last().expect("a convolution");
        space.sums.resize(last.column + last.width * last.channels, 0.0);
        space.maxima.clear();
        // A negative maximum is a feature of zero.
        space.maxima.resize(shapes.iter().map(|shape| shape.channels).sum(), 0.0);
        let before = shapes.iter().map(|shape| shape.padding).max().unwrap_or(0);
        // Zero vectors follow a text that is shorter than a window.
        let end = |shape: &Shape| (text.len() + 2 * shape.padding).max(shape.width);
        let after =
            shapes.iter().map(|shape| before - shape.padding + end(shape)).max().unwrap_or(0);
        // Positions are counted from the first one that any padding has.
        for position in 0..after {
            let token = position.checked_sub(before).and_then(|index| text.get(index));
            let row = token.map(|&slot| products.row(slot));
            // While one row is added, the next one comes from memory.
            if let Some(&next) =
                (position + 1).checked_sub(before).and_then(|index| text.get(index))
            {
                prefetch(products.row(next), Cache::Second);
            }
            let mut maxima = &mut space.maxima[..];
            for shape in shapes {
                let (own, rest) = std::mem::take(&mut maxima).split_at_mut(shape.channels);
                maxima = rest;
                // From here on, positions are those of the shape: from its own padding on.
                let Some(position) = position.checked_sub(before - shape.padding) else { continue };
                if position >= end(shape) {
                    continue;
                }
                let sums = &mut space.sums[shape.column..][..shape.width * shape.channels];
                match row {
                    Some(row) => {
                        let row = &row[shape.column..][..shape.width * shape.channels];
                        add(vectors, shape, position, row, sums, own);
                    }
                    None => skip(shape, position, sums, own),
                }
            }
        }
    }
}

/// Adds what a token gives to each window that covers its position.
#[inline(always)]
fn add<T: Product, V: Vectors>(
    vectors: V,
    shape: &Shape,
    position: usize,
    row: &[T],
    sums: &mut [f32],
    maxima: &mut [f32],
) {
    let count = shape.channels / CHANNELS;
    let bias = &shape.bias.as_chunks::<CHANNELS>().0[..count];
    let maxima = &mut maxima.as_chunks_mut::<CHANNELS>().0[..count];
    for (tap, row) in row.chunks_exact(shape.channels).enumerate().take(position + 1) {
        let sums = &mut sums[(position - tap) % shape.width * shape.channels..][..shape.channels];
        let sums = &mut sums.as_chunks_mut::<CHANNELS>().0[..count];
        let row = &row.as_chunks::<CHANNELS>().0[..count];
        match (tap == 0, tap + 1 == shape.width) {
            (false, false) => {
                for i in 0..count {
                    sums[i] = together(vectors, &sums[i], &row[i]);
                }
            }
            (true, false) => {
                for i in 0..count {
                    sums[i] = together(vectors, &bias[i], &row[i]);
                }
            }
            (false, true) => {
                for i in 0..count {
                    raise(&mut maxima[i], &together(vectors, &sums[i], &row[i]));
                }
            }
            (true, true) => {
                for i in 0..count {
                    raise(&mut maxima[i], &together(vectors, &bias[i], &row[i]));
                }
            }
        }
    }
}

#[inline(always)]
fn together<T: Product, V: Vectors>(
    vectors: V,
    before: &[f32; CHANNELS],
    row: &[T; CHANNELS],
) -> [f32; CHANNELS] {
    let (mut sums, products) = (*before, T::widen(row, vectors));
    for (sum, product) in sums.iter_mut().zip(products) {
        *sum += product;
    }
    sums
}

/// As [`add`] for a zero vector.
#[inline(always)]
fn skip(shape: &Shape, position: usize, sums: &mut [f32], maxima: &mut [f32]) {
    let own = |position: usize| {
        let start = position % shape.width * shape.channels;
        start..start + shape.channels
    };
    sums[own(position)].copy_from_slice(&shape.bias);
    if let Some(first) = (position + 1).checked_sub(shape.width) {
        raise(maxima, &sums[own(first)]);
    }
}

#[inline(always)]
fn raise(maxima: &mut [f32], sums: &[f32]) {
    for (maximum, sum) in maxima.iter_mut().zip(sums) {
        *maximum = if *sum > *maximum { *sum } else { *maximum };
    }
}

/// The products of a token's vector, `[dim]`, with all filters, `[blocks, dim]`.
///
/// Every sum adds its products in the order of components, in float64, and is rounded to float32
/// once. A product of two float32 is exact in float64.
pub(crate) struct TokenProducts<'a> {
    pub(super) vector: &'a [f32],
    pub(super) filters: &'a [FilterBlock],
    pub(super) products: &'a mut [f32],
}

impl Kernel for TokenProducts<'_> {
    const WORK: Work = Work::Wide;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, _: V) {
        let Self { vector, filters, products } = self;
        let blocks = filters.chunks_exact(vector.len());
        for (block, products) in blocks.zip(products.chunks_mut(BLOCK_FILTERS)) {
            let mut sums = [0.0f64; BLOCK_FILTERS];
            for (weights, &component) in block.iter().zip(vector) {
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum += f64::from(component) * f64::from(*weight);
                }
            }
            for (product, sum) in products.iter_mut().zip(sums) {
                *product = sum as f32;
            }
        }
    }
}

/// A dense layer's outputs in float64, before a ReLU.
pub(crate) struct Dense<'a> {
    pub(super) layer: &'a Layer,
    pub(super) inputs: &'a [f64],
    pub(super) outputs: &'a mut [f64],
}

impl Kernel for Dense<'_> {
    const WORK: Work = Work::Wide;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, _: V) {
        let Self { layer, inputs, outputs } = self;
        let rows = layer.weights.chunks_exact(inputs.len()).zip(&layer.bias);
        for (output, (weights, bias)) in outputs.iter_mut().zip(rows) {
            let mut lanes = [0.0; LANES];
            let (weights, rest) = weights.as_chunks::<LANES>();
            let (inputs, last) = inputs.as_chunks::<LANES>();
            for (weights, inputs) in weights.iter().zip(inputs) {
                for ((lane, weight), input) in lanes.iter_mut().zip(weights).zip(inputs) {
                    *lane += f64::from(*weight) * input;
                }
            }
            for ((lane, weight), input) in lanes.iter_mut().zip(rest).zip(last) {
                *lane += f64::from(*weight) * input;
            }
            *output = f64::from(*bias) + lanes.iter().sum::<f64>();
        }
    }
}

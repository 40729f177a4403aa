//! The loops: a token's products, a text's features (the maxima over its positions of sums of its tokens' products), and dense
//! layers. They are compiled for several instruction sets, and give the same bits with each, because nothing is fused.

use contract::classifier::Layer;

use super::Shape;
use super::products::View;
use crate::instruction_set::dispatched;

/// Channels whose sums are in registers together.
const BLOCK: usize = 32;
/// The same for convolutions of few channels, which are filled up to this.
pub(super) const SMALL_BLOCK: usize = 16;

/// Filters that are multiplied together: one component of each.
pub(super) type Block = [f32; 32];

/// The sums that a dense layer's output is made of, so that they can be added side by side.
const LANES: usize = 8;

dispatched! {
    /// The products of a token's vector, `[dim]`, with all filters, `[blocks, dim]`.
    fn products(vector: &[f32], filters: &[Block], products: &mut [f32]) =
        amx avx512::products, vnni512 avx512::products, avx512 avx512::products,
        vnni avx2::products, avx2 avx2::products, portable self::products;

    /// The features of a text, after the ReLU, from the slots of its tokens.
    fn features(text: &[u32], products: View<'_>, features: &mut [f32]) =
        amx avx512::features, vnni512 avx512::features, avx512 avx512::features,
        vnni avx2::features, avx2 avx2::features, portable self::features;

    /// A dense layer's outputs, before a ReLU.
    fn dense(layer: &Layer, inputs: &[f64], outputs: &mut [f64]) =
        amx avx512::dense, vnni512 avx512::dense, avx512 avx512::dense,
        vnni avx2::dense, avx2 avx2::dense, portable self::dense;
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::*;

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    pub(super) fn products(vector: &[f32], filters: &[Block], products: &mut [f32]) {
        super::products(vector, filters, products);
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    pub(super) fn features(text: &[u32], products: View<'_>, features: &mut [f32]) {
        super::features(text, products, features);
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    pub(super) fn dense(layer: &Layer, inputs: &[f64], outputs: &mut [f64]) {
        super::dense(layer, inputs, outputs);
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::*;

    #[target_feature(enable = "avx2")]
    pub(super) fn products(vector: &[f32], filters: &[Block], products: &mut [f32]) {
        super::products(vector, filters, products);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn features(text: &[u32], products: View<'_>, features: &mut [f32]) {
        super::features(text, products, features);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn dense(layer: &Layer, inputs: &[f64], outputs: &mut [f64]) {
        super::dense(layer, inputs, outputs);
    }
}

#[inline(always)]
fn features(text: &[u32], products: View<'_>, features: &mut [f32]) {
    let mut rest = features;
    for shape in products.shapes {
        let (own, later) = rest.split_at_mut(shape.features);
        if shape.channels >= BLOCK {
            blocks::<BLOCK>(text, products, shape, own);
        } else {
            blocks::<SMALL_BLOCK>(text, products, shape, own);
        }
        rest = later;
    }
}

/// The features of a convolution, block by block. The last block begins earlier if the channels are no multiple of it.
#[inline(always)]
fn blocks<const N: usize>(text: &[u32], products: View<'_>, shape: &Shape, features: &mut [f32]) {
    let mut channel = 0;
    while channel < shape.features {
        let start = channel.min(shape.channels - N);
        let maxima = block::<N>(text, products, shape, start);
        let end = shape.features.min(start + N);
        features[start..end].copy_from_slice(&maxima[..end - start]);
        channel = start + N;
    }
}

#[inline(always)]
fn block<const N: usize>(
    text: &[u32],
    products: View<'_>,
    shape: &Shape,
    channel: usize,
) -> [f32; N] {
    let bias: &[f32; N] = shape.bias[channel..].first_chunk().expect("a block of channels");
    // A negative maximum is a feature of zero.
    let mut maxima = [0.0f32; N];
    for position in 0..shape.positions(text.len()) {
        let mut sums = *bias;
        // Outside of the text are zero vectors.
        let first = shape.padding.saturating_sub(position);
        let last = shape.width.min((text.len() + shape.padding).saturating_sub(position));
        for tap in first..last.max(first) {
            let slot = text[position + tap - shape.padding];
            let column = shape.column + tap * shape.channels + channel;
            let own: &[f32; N] = products.row(slot)[column..].first_chunk().expect("a block");
            for (sum, product) in sums.iter_mut().zip(own) {
                *sum += product;
            }
        }
        for (maximum, sum) in maxima.iter_mut().zip(&sums) {
            *maximum = if *sum > *maximum { *sum } else { *maximum };
        }
    }
    maxima
}

/// Every sum adds its products in the order of components, in float64, and is rounded to float32 once. A product of two float32
/// is exact in float64.
#[inline(always)]
fn products(vector: &[f32], filters: &[Block], products: &mut [f32]) {
    let blocks = filters.chunks_exact(vector.len());
    for (block, products) in blocks.zip(products.chunks_mut(size_of::<Block>() / size_of::<f32>()))
    {
        let mut sums = [0.0f64; 32];
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

/// A dense layer's outputs in float64, before a ReLU.
#[inline(always)]
fn dense(layer: &Layer, inputs: &[f64], outputs: &mut [f64]) {
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

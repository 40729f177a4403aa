//! float16 numbers as their bits.

use contract::classifier::{Classifier, Convolution};
use contract::{Table, Token, TokenClassifier, VectorSource, score};
use rayon::prelude::*;

/// The nearest float16; ties to even. What float16 can't hold becomes NaN.
pub fn from_float32(value: f32) -> u16 {
    let (sign, magnitude) = ((value.to_bits() >> 16 & 0x8000) as u16, value.abs());
    if magnitude.is_nan() || magnitude >= 65520.0 {
        return 0x7e00;
    }
    // The distance between neighbours; dividing by it and rounding gives the nearest.
    let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(-14);
    let unit = f64::from_bits(((exponent - 10 + 1023) as u64) << 52);
    let rounded = (f64::from(magnitude) / unit).round_ties_even() * unit;
    let bits = match rounded >= 1.0 / 16384.0 {
        true => ((rounded as f32).to_bits() >> 13) - (112 << 10),
        false => (rounded * 16_777_216.0) as u32,
    };
    sign | bits as u16
}

/// Whether products, and sums of as many as a window has, stay in the range of float16.
pub fn holds(head: &dyn TokenClassifier, table: &Table<'_>) -> bool {
    largest_feature(head, table) < 65_000.0
}

/// Whether they stay in that of float32, and the sums of hidden layers as well.
pub fn float32_holds(head: &dyn TokenClassifier, table: &Table<'_>) -> bool {
    const LARGEST: f64 = f32::MAX as f64 / 2.0;
    let layers = head.classifier().layers();
    let mut largest = largest_feature(head, table);
    largest < LARGEST
        && layers[..layers.len() - 1].iter().all(|layer| {
            let rows = layer.weights.chunks_exact(layer.weights.len() / layer.bias.len());
            let sum = |row: &[f32]| row.iter().map(|&x| f64::from(x.abs())).sum::<f64>();
            let outputs = rows.zip(&layer.bias);
            largest = outputs
                .map(|(row, bias)| sum(row) * largest + f64::from(bias.abs()))
                .fold(0.0, f64::max);
            largest < LARGEST
        })
}

/// A bound of the amount of products and of sums of as many as a window has, by the norms of tokens
/// and filters.
fn largest_feature(head: &dyn TokenClassifier, table: &Table<'_>) -> f64 {
    let norm = |values: &[f32]| values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let of_token = |token: u32| match head.source(Token(token)) {
        VectorSource::Row { row, scale } => f64::from(scale.abs()) * table.norm(row),
        VectorSource::Own(vector) => norm(vector),
        VectorSource::Elsewhere { row, scale } => f64::from(scale.abs()) * score::norm(row),
    };
    let tokens = 0..head.tokens() as u32;
    let largest = tokens.into_par_iter().map(of_token).reduce(|| 0.0, f64::max);
    let classifier: &Classifier = head.classifier();
    let of_convolution = |one: &Convolution| {
        let filter =
            |weights: &[f32]| weights.chunks_exact(classifier.dim()).map(norm).sum::<f64>();
        let filters = one.weights.chunks_exact(classifier.dim() * one.width).map(filter);
        let sums = filters.zip(&one.bias).map(|(sum, bias)| sum * largest + f64::from(bias.abs()));
        sums.fold(0.0, f64::max)
    };
    classifier.convolutions().iter().map(of_convolution).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use model_store::from_float16;

    use super::*;

    #[test]
    fn the_nearest_is_taken_and_comes_back() {
        let cases = [
            (0.0, 0),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (65519.9, 0x7bff),
            (65520.0, 0x7e00),
            (f32::NAN, 0x7e00),
            (6.103_515_6e-5, 0x0400),
            (5.960_464_5e-8, 1),
            (2.980_232e-8, 0),
            (2.990_232e-8, 1),
            (1.000_488_2, 0x3c00),
            (1.000_488_4, 0x3c01),
            (1.001_464_8, 0x3c02),
        ];
        for (value, bits) in cases {
            assert_eq!(from_float32(value), bits, "{value}");
        }
        for bits in (0..=u16::MAX).filter(|bits| bits & 0x7fff < 0x7c00) {
            assert_eq!(from_float32(from_float16(bits)), bits);
        }
    }
}

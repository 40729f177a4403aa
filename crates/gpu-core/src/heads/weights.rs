//! A classifier's weights on the device, in the layouts of the kernels.

use bytemuck::Pod;
use contract::classifier::{Classifier, Layer};
use cpu_core::heads::classify::float16;

use super::abi::{DENSE_INPUTS, DENSE_OUTPUTS, HEAD_GROUP, HEAD_PIECE};
use crate::driver::Array;
use crate::{GpuError, Precision};

/// A convolution's place in a token's products and in a text's features.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) width: usize,
    pub(super) padding: usize,
    /// Its channels, filled up with zeros to a multiple of [`HEAD_GROUP`].
    pub(super) channels: usize,
    /// Where its products begin: `[width, channels]`.
    pub(super) column: usize,
    /// Where its features begin.
    pub(super) feature: usize,
    /// `[channels]`.
    pub(super) bias: Array<f32>,
}

/// A hidden dense layer.
#[derive(Debug)]
pub(super) struct Hidden {
    /// As `DenseParams` says.
    pub(super) weights: Array<u8>,
    /// `[outputs]`.
    pub(super) bias: Array<f32>,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

/// All weights.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) places: Vec<Place>,
    /// Products of a token.
    pub(super) columns: usize,
    /// `[dim, columns]`.
    pub(super) filters: Array<f32>,
    /// Features of a text, with zeros between them and at the end.
    pub(super) features: usize,
    pub(super) hidden: Vec<Hidden>,
    /// The last dense layer: `[classes, inputs]`, `[classes]`.
    pub(super) last: Array<f32>,
    pub(super) last_bias: Array<f32>,
    pub(super) last_inputs: usize,
    pub(super) classes: usize,
}

impl Weights {
    pub(super) fn upload(classifier: &Classifier, precision: Precision) -> Result<Self, GpuError> {
        let dim = classifier.dim();
        let (layers, last) = match classifier.layers() {
            [hidden @ .., last] => (hidden, last),
            [] => unreachable!("a classifier has a layer"),
        };
        let mut places = Vec::new();
        let (mut columns, mut features) = (0, 0);
        // The place of each of the classifier's features.
        let mut kept = Vec::new();
        for one in classifier.convolutions() {
            let channels = one.channels().next_multiple_of(HEAD_GROUP);
            kept.extend(features..features + one.channels());
            let mut bias = one.bias.clone();
            bias.resize(channels, 0.0);
            let (width, padding) = (one.width, one.padding);
            let bias = Array::from_slice(&bias)?;
            places.push(Place {
                width,
                padding,
                channels,
                column: columns,
                feature: features,
                bias,
            });
            columns += width * channels;
            features += channels;
        }
        let mut filters = vec![0.0; dim * columns];
        for (one, place) in classifier.convolutions().iter().zip(&places) {
            for (at, weights) in one.weights.chunks_exact(dim).enumerate() {
                let (channel, tap) = (at / one.width, at % one.width);
                let column = place.column + tap * place.channels + channel;
                for (component, weight) in weights.iter().enumerate() {
                    filters[component * columns + column] = *weight;
                }
            }
        }
        let unit = if layers.is_empty() { HEAD_PIECE / size_of::<f32>() } else { DENSE_INPUTS };
        let features = features.next_multiple_of(unit);
        let (mut inputs, mut hidden) = (features, Vec::new());
        for layer in layers {
            let outputs = layer.bias.len().next_multiple_of(DENSE_OUTPUTS);
            hidden.push(Hidden::upload(layer, &kept, (inputs, outputs), precision)?);
            kept = (0..layer.bias.len()).collect();
            inputs = outputs;
        }
        let spread = spread(last, &kept, inputs);
        Ok(Self {
            places,
            columns,
            filters: Array::from_slice(&filters)?,
            features,
            hidden,
            last: Array::from_slice(&spread)?,
            last_bias: Array::from_slice(&last.bias)?,
            last_inputs: inputs,
            classes: last.bias.len(),
        })
    }

    /// The most outputs of a hidden layer; 0 if there is none.
    pub(super) fn widest_hidden(&self) -> usize {
        self.hidden.iter().map(|layer| layer.outputs).max().unwrap_or(0)
    }
}

/// A layer's weights for inputs at these places: `[outputs, inputs]`.
fn spread(layer: &Layer, kept: &[usize], inputs: usize) -> Vec<f32> {
    let mut spread = vec![0.0; layer.bias.len() * inputs];
    for (to, from) in spread.chunks_exact_mut(inputs).zip(layer.weights.chunks_exact(kept.len())) {
        for (place, weight) in kept.iter().zip(from) {
            to[*place] = *weight;
        }
    }
    spread
}

impl Hidden {
    fn upload(
        layer: &Layer,
        kept: &[usize],
        (inputs, outputs): (usize, usize),
        precision: Precision,
    ) -> Result<Self, GpuError> {
        let mut weights = spread(layer, kept, inputs);
        weights.resize(outputs * inputs, 0.0);
        let mut bias = layer.bias.clone();
        bias.resize(outputs, 0.0);
        let weights = match precision {
            Precision::Float16 => {
                let mut pieces = vec![0u16; weights.len()];
                for (output, row) in weights.chunks_exact(inputs).enumerate() {
                    let (tile, in_tile) = (output / DENSE_OUTPUTS, output % DENSE_OUTPUTS);
                    for (input, weight) in row.iter().enumerate() {
                        let piece = (tile * inputs / 8 + input / 8) * DENSE_OUTPUTS + in_tile;
                        pieces[piece * 8 + input % 8] = float16::from_float32(*weight);
                    }
                }
                bytes(&pieces)?
            }
            Precision::Float32 => {
                let mut columns = vec![0.0; weights.len()];
                for (output, row) in weights.chunks_exact(inputs).enumerate() {
                    for (input, weight) in row.iter().enumerate() {
                        columns[input * outputs + output] = *weight;
                    }
                }
                bytes(&columns)?
            }
        };
        Ok(Self { weights, bias: Array::from_slice(&bias)?, inputs, outputs })
    }
}

fn bytes<T: Pod>(values: &[T]) -> Result<Array<u8>, GpuError> {
    Array::from_slice(bytemuck::cast_slice(values))
}

//! A classifier's formula, in float64 and plain loops.

use super::{Classifier, Convolution, Layer};
use crate::score::dot;

/// What a classifier computes for a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Forward {
    /// Each channel's feature, in the order of the convolutions.
    pub features: Vec<f64>,
    /// The position at which each channel has its maximum; the lowest of several.
    pub positions: Vec<usize>,
    /// The outputs of each dense layer but the last, after the ReLU.
    pub hidden: Vec<Vec<f64>>,
    /// The class scores.
    pub scores: Vec<f64>,
}

impl Classifier {
    /// Computes the formula for a text: one vector for each token.
    ///
    /// # Panics
    /// If a vector has another dimension.
    pub fn forward(&self, tokens: &[&[f32]]) -> Forward {
        assert!(tokens.iter().all(|token| token.len() == self.dim()), "vectors of the classifier");
        let (mut features, mut positions) = (Vec::new(), Vec::new());
        for convolution in self.convolutions() {
            for channel in 0..convolution.channels() {
                let (position, most) = maximum(convolution, channel, tokens);
                features.push(most.max(0.0));
                positions.push(position);
            }
        }
        let (mut hidden, mut input) = (Vec::new(), features.clone());
        let (last, before) = self.layers().split_last().expect("at least one layer");
        for layer in before {
            input = layer.outputs(&input).map(|output| output.max(0.0)).collect();
            hidden.push(input.clone());
        }
        let scores = last.outputs(&input).collect();
        Forward { features, positions, hidden, scores }
    }
}

/// The position at which a channel is largest, and its value there.
fn maximum(convolution: &Convolution, channel: usize, tokens: &[&[f32]]) -> (usize, f64) {
    let mut best = (0, f64::NEG_INFINITY);
    for position in 0..convolution.positions(tokens.len()) {
        let value = convolution.value(channel, position, tokens);
        if value > best.1 {
            best = (position, value);
        }
    }
    best
}

impl Convolution {
    /// A channel's value at a position, before the ReLU.
    pub(super) fn value(&self, channel: usize, position: usize, tokens: &[&[f32]]) -> f64 {
        let size = self.weights.len() / self.channels();
        let dim = size / self.width;
        let filter = &self.weights[channel * size..][..size];
        let mut value = f64::from(self.bias[channel]);
        for (tap, weights) in filter.chunks_exact(dim).enumerate() {
            // Outside of the text are zero vectors.
            let token = (position + tap).checked_sub(self.padding);
            if let Some(token) = token.and_then(|token| tokens.get(token)) {
                value += dot(weights, token);
            }
        }
        value
    }
}

impl Layer {
    /// The layer's outputs, before a ReLU.
    pub(super) fn outputs(&self, inputs: &[f64]) -> impl Iterator<Item = f64> {
        let rows = self.weights.chunks_exact(inputs.len()).zip(&self.bias);
        rows.map(move |(weights, bias)| {
            let products = weights.iter().zip(inputs).map(|(w, x)| f64::from(*w) * x);
            f64::from(*bias) + products.sum::<f64>()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two convolutions of one component: of width 2 without padding, and of width 1.
    fn small() -> Classifier {
        let pairs = Convolution {
            width: 2,
            padding: 0,
            weights: vec![1.0, 10.0, -1.0, -1.0],
            bias: vec![0.5, 0.0],
        };
        let single = Convolution { width: 1, padding: 0, weights: vec![2.0], bias: vec![-1.0] };
        let hidden = Layer { weights: vec![1.0, 0.0, 0.0, 0.0, 0.0, -1.0], bias: vec![0.0, 1.0] };
        let last = Layer { weights: vec![1.0, 1.0, -1.0, 0.0], bias: vec![0.0, 3.0] };
        Classifier::new(1, vec![pairs, single], vec![hidden, last]).unwrap()
    }

    #[test]
    fn the_formula_step_by_step() {
        let tokens: [&[f32]; 3] = [&[1.0], &[2.0], &[2.0]];
        let found = small().forward(&tokens);
        // 1 + 20 + 0.5 and 2 + 20 + 0.5; −3 and −4; 2·1 − 1, 2·2 − 1 twice.
        assert_eq!(found.features, [22.5, 0.0, 3.0]);
        assert_eq!(found.positions, [1, 0, 1], "the lowest of equal ones");
        assert_eq!(found.hidden, [vec![22.5, 0.0]]);
        assert_eq!(found.scores, [22.5, -19.5]);
    }

    #[test]
    fn a_short_text_is_followed_by_zero_vectors_and_an_empty_one_has_an_answer() {
        let found = small().forward(&[&[4.0]]);
        assert_eq!((found.features, found.positions), (vec![4.5, 0.0, 7.0], vec![0, 0, 0]));
        let found = small().forward(&[]);
        assert_eq!((found.features, found.scores), (vec![0.5, 0.0, 0.0], vec![1.5, 2.5]));
    }
}

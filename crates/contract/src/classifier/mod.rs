//! Text classifiers over word vectors: a convolutional network with one layer of convolutions and
//! maximum over positions, and dense layers on top. Its formula in float64 is what every engine is
//! held against.
//!
//! Source: Kim 2014, "Convolutional Neural Networks for Sentence Classification".

mod attribution;
mod calibration;
mod forward;

pub use attribution::{Attribution, Window};
pub use calibration::{calibration_error, fit_sigmoid_temperature, fit_temperature};
pub use forward::Forward;

/// A classifier's weights, without labels and words.
///
/// A text is its tokens' vectors. Each convolution slides over it, with zero vectors at both ends
/// if it has padding. A channel's *feature* is its maximum over all positions, or zero if that is
/// negative. The features of all convolutions, in order, are the input of the first dense layer.
/// All but the last dense layer end with a ReLU. The last layer's outputs are the *class scores*.
#[derive(Debug, Clone, PartialEq)]
pub struct Classifier {
    dim: usize,
    convolutions: Vec<Convolution>,
    layers: Vec<Layer>,
}

/// One width of filters.
#[derive(Debug, Clone, PartialEq)]
pub struct Convolution {
    /// Tokens that a filter covers.
    pub width: usize,
    /// Zero vectors before the first token, and as many after the last; less than `width`.
    pub padding: usize,
    /// `[channels, width, dim]`.
    pub weights: Vec<f32>,
    /// `[channels]`.
    pub bias: Vec<f32>,
}

/// A dense layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// `[outputs, inputs]`.
    pub weights: Vec<f32>,
    /// `[outputs]`.
    pub bias: Vec<f32>,
}

/// Why weights make no classifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// There is no convolution, or no dense layer.
    #[error("a classifier needs at least one {0}")]
    Missing(&'static str),
    /// A convolution has no tokens, too much padding, or no channels.
    #[error(
        "convolution {index}: {channels} channels of width {width} with padding {padding}; width and channels \
         must be at least 1, and the padding less than the width"
    )]
    Convolution {
        /// Which, from 0.
        index: usize,
        /// Its channels.
        channels: usize,
        /// Its width.
        width: usize,
        /// Its padding.
        padding: usize,
    },
    /// The number of weights does not fit.
    #[error("{what} {index} has {found} weights; {expected} are needed")]
    Weights {
        /// Convolution or dense layer.
        what: &'static str,
        /// Which, from 0.
        index: usize,
        /// The number found.
        found: usize,
        /// The number needed.
        expected: usize,
    },
    /// A weight is NaN or infinite.
    #[error("{what} {index} has a weight that is not finite")]
    NotFinite {
        /// Convolution or dense layer.
        what: &'static str,
        /// Which, from 0.
        index: usize,
    },
}

impl Convolution {
    /// The number of its channels.
    pub fn channels(&self) -> usize {
        self.bias.len()
    }

    /// The number of positions in a text of `tokens` tokens. A text that is too short has one: zero
    /// vectors follow it.
    pub fn positions(&self, tokens: usize) -> usize {
        (tokens + 2 * self.padding + 1).saturating_sub(self.width).max(1)
    }

    /// The tokens that it covers at a position of a text of `tokens` tokens. Padding at either end
    /// is left out.
    pub fn covered(&self, position: usize, tokens: usize) -> std::ops::Range<usize> {
        let start = position.saturating_sub(self.padding);
        let end = (position + self.width).saturating_sub(self.padding).min(tokens);
        start.min(end)..end
    }
}

impl Classifier {
    /// A classifier over vectors of `dim` components.
    ///
    /// # Errors
    /// If the shapes do not fit each other, or a weight is not finite.
    pub fn new(
        dim: usize,
        convolutions: Vec<Convolution>,
        layers: Vec<Layer>,
    ) -> Result<Self, ShapeError> {
        if convolutions.is_empty() {
            return Err(ShapeError::Missing("convolution"));
        }
        if layers.is_empty() {
            return Err(ShapeError::Missing("dense layer"));
        }
        let check = |what, index, weights: &[f32], bias: &[f32], expected: Option<usize>| {
            let found = weights.len();
            match expected {
                Some(expected) if expected == found => {}
                expected => {
                    let expected = expected.unwrap_or(usize::MAX);
                    return Err(ShapeError::Weights { what, index, found, expected });
                }
            }
            match weights.iter().chain(bias).all(|weight| weight.is_finite()) {
                true => Ok(()),
                false => Err(ShapeError::NotFinite { what, index }),
            }
        };
        for (index, one) in convolutions.iter().enumerate() {
            let Convolution { width, padding, weights, bias } = one;
            let (channels, &width, &padding) = (bias.len(), width, padding);
            if width == 0 || channels == 0 || padding >= width {
                return Err(ShapeError::Convolution { index, channels, width, padding });
            }
            let expected = channels.checked_mul(width).and_then(|n| n.checked_mul(dim));
            check("convolution", index, weights, bias, expected)?;
        }
        let mut inputs: usize = convolutions.iter().map(Convolution::channels).sum();
        for (index, layer) in layers.iter().enumerate() {
            if layer.bias.is_empty() {
                return Err(ShapeError::Missing("output of each dense layer"));
            }
            let expected = inputs.checked_mul(layer.bias.len());
            check("dense layer", index, &layer.weights, &layer.bias, expected)?;
            inputs = layer.bias.len();
        }
        Ok(Self { dim, convolutions, layers })
    }

    /// Components of a token's vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Its convolutions.
    pub fn convolutions(&self) -> &[Convolution] {
        &self.convolutions
    }

    /// Its dense layers, the last of which gives the class scores.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The number of features: all channels together.
    pub fn features(&self) -> usize {
        self.convolutions.iter().map(Convolution::channels).sum()
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.bias.len())
    }
}

/// Probabilities from class scores: exactly one class is right. `temperature` divides the scores
/// first: above 1, the probabilities are less extreme.
pub fn softmax(scores: &[f64], temperature: f64) -> Vec<f64> {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> =
        scores.iter().map(|score| ((score - most) / temperature).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

/// A probability from a class score, if any number of classes may be right.
pub fn sigmoid(score: f64, temperature: f64) -> f64 {
    1.0 / (1.0 + (-score / temperature).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convolution(width: usize, padding: usize, channels: usize, dim: usize) -> Convolution {
        let weights = vec![0.5; channels * width * dim];
        Convolution { width, padding, weights, bias: vec![0.0; channels] }
    }

    fn layer(inputs: usize, outputs: usize) -> Layer {
        Layer { weights: vec![1.0; inputs * outputs], bias: vec![0.0; outputs] }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let new = |convolutions, layers| Classifier::new(2, convolutions, layers).unwrap_err();
        assert_eq!(new(vec![], vec![layer(1, 2)]), ShapeError::Missing("convolution"));
        assert_eq!(new(vec![convolution(3, 2, 4, 2)], vec![]), ShapeError::Missing("dense layer"));
        let (index, channels) = (0, 4);
        for (width, padding) in [(0, 0), (3, 3)] {
            let error = ShapeError::Convolution { index, channels, width, padding };
            assert_eq!(new(vec![convolution(width, padding, 4, 2)], vec![layer(4, 2)]), error);
        }
        let error = ShapeError::Weights { what: "convolution", index: 0, found: 36, expected: 24 };
        assert_eq!(new(vec![convolution(3, 0, 4, 3)], vec![layer(4, 2)]), error);
        let error = ShapeError::Weights { what: "dense layer", index: 1, found: 6, expected: 4 };
        assert_eq!(new(vec![convolution(3, 0, 4, 2)], vec![layer(4, 2), layer(3, 2)]), error);
        let mut infinite = layer(4, 2);
        infinite.bias[1] = f32::INFINITY;
        let error = ShapeError::NotFinite { what: "dense layer", index: 0 };
        assert_eq!(new(vec![convolution(3, 0, 4, 2)], vec![infinite]), error);
    }

    #[test]
    fn positions_cover_the_text_and_its_padding() {
        let narrow = convolution(3, 0, 1, 1);
        assert_eq!([0, 2, 3, 5].map(|tokens| narrow.positions(tokens)), [1, 1, 1, 3]);
        assert_eq!((narrow.covered(0, 2), narrow.covered(2, 5)), (0..2, 2..5));
        let padded = convolution(3, 2, 1, 1);
        assert_eq!([0, 1, 5].map(|tokens| padded.positions(tokens)), [2, 3, 7]);
        let covered: Vec<_> = (0..3).map(|position| padded.covered(position, 1)).collect();
        assert_eq!(covered, [0..1, 0..1, 0..1]);
        assert_eq!((padded.covered(0, 0), padded.covered(6, 5)), (0..0, 4..5));
    }

    #[test]
    fn probabilities() {
        assert_eq!(softmax(&[1000.0, 1000.0], 1.0), [0.5, 0.5]);
        let [sure, unsure] = [1.0, 10.0].map(|temperature| softmax(&[2.0, 0.0], temperature)[0]);
        assert!(sure > 0.88 && unsure < 0.56, "{sure} {unsure}");
        assert_eq!((sigmoid(0.0, 3.0), sigmoid(-1e6, 1.0)), (0.5, 0.0));
    }
}

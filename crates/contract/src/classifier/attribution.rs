//! Which n-grams decided: a class score as a sum over the windows at which channels had their
//! maxima.

use std::collections::BTreeMap;

use super::{Classifier, Forward};

/// A class score, divided among windows of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// What does not depend on the text: biases.
    pub base: f64,
    /// The windows with a share, largest first by amount; of equal ones, the first in the text.
    pub windows: Vec<Window>,
    /// Whether base and shares add up to the score, up to rounding: with one dense layer. With
    /// more, a share is the gradient of the score times the feature.
    pub is_exact: bool,
}

/// A window's share of a class score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// The first token.
    pub start: usize,
    /// The token after the last.
    pub end: usize,
    /// The share: positive if it speaks for the class.
    pub share: f64,
}

impl Classifier {
    /// Divides a class score among windows. `forward` is what [`forward`](Self::forward) computed
    /// for a text of `tokens` tokens.
    ///
    /// Channels whose feature is zero have no share. Channels with the same window are added up.
    ///
    /// # Panics
    /// If there is no such class, or the computation is another classifier's.
    pub fn attribution(&self, forward: &Forward, class: usize, tokens: usize) -> Attribution {
        let gradient = self.gradient(forward, class);
        let mut shares: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        let mut channel = 0;
        for convolution in self.convolutions() {
            for _ in 0..convolution.channels() {
                let share = gradient[channel] * forward.features[channel];
                if share != 0.0 {
                    let window = convolution.covered(forward.positions[channel], tokens);
                    *shares.entry((window.start, window.end)).or_default() += share;
                }
                channel += 1;
            }
        }
        let window = |((start, end), share)| Window { start, end, share };
        let mut windows: Vec<Window> = shares.into_iter().map(window).collect();
        windows.sort_by(|a, b| b.share.abs().total_cmp(&a.share.abs()));
        let all: f64 = windows.iter().map(|window| window.share).sum();
        let is_exact = self.layers().len() == 1;
        Attribution { base: forward.scores[class] - all, windows, is_exact }
    }

    /// The derivative of a class score by each feature.
    fn gradient(&self, forward: &Forward, class: usize) -> Vec<f64> {
        let (last, before) = self.layers().split_last().expect("at least one layer");
        let inputs = last.weights.len() / last.bias.len();
        let weights = &last.weights[class * inputs..][..inputs];
        let mut gradient: Vec<f64> = weights.iter().map(|&weight| f64::from(weight)).collect();
        for (layer, outputs) in before.iter().zip(&forward.hidden).rev() {
            let inputs = layer.weights.len() / layer.bias.len();
            let mut below = vec![0.0; inputs];
            for ((weights, above), output) in
                layer.weights.chunks_exact(inputs).zip(&gradient).zip(outputs)
            {
                // A ReLU passes on nothing where it is zero.
                if *output > 0.0 {
                    below.iter_mut().zip(weights).for_each(|(b, &w)| *b += f64::from(w) * above);
                }
            }
            gradient = below;
        }
        gradient
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Convolution, Layer};
    use super::*;
    use proptest::prelude::*;

    fn numbers(count: usize) -> impl Strategy<Value = Vec<f32>> {
        prop::collection::vec((-8i8..=8).prop_map(|n| f32::from(n) / 4.0), count)
    }

    proptest! {
        #[test]
        fn shares_add_up_to_the_score_and_follow_its_derivative(
            weights in numbers(2 * 3 * 2 + 3 * 2 + 2 + 3),
            hidden in numbers(5 * 4 + 4),
            last in numbers(5 * 3 + 3),
            text in prop::collection::vec(numbers(2), 0..6),
        ) {
            let tokens: Vec<&[f32]> = text.iter().map(Vec::as_slice).collect();
            let wide = Convolution {
                width: 3,
                padding: 2,
                weights: weights[..12].to_vec(),
                bias: weights[12..14].to_vec(),
            };
            let narrow = Convolution {
                width: 1,
                padding: 0,
                weights: weights[14..20].to_vec(),
                bias: weights[20..23].to_vec(),
            };
            let convolutions = vec![wide, narrow];
            let only = Layer { weights: last[..15].to_vec(), bias: last[15..].to_vec() };
            let one = Classifier::new(2, convolutions.clone(), vec![only]).unwrap();
            let forward = one.forward(&tokens);
            for class in 0..3 {
                let found = one.attribution(&forward, class, tokens.len());
                prop_assert!(found.is_exact);
                prop_assert!((found.base - f64::from(last[15 + class])).abs() < 1e-12);
                prop_assert!(found.windows.is_sorted_by(|a, b| a.share.abs() >= b.share.abs()));
                for window in &found.windows {
                    prop_assert!(window.start <= window.end && window.end <= tokens.len());
                }
            }

            // With a hidden layer: a little more of a feature changes the score by its derivative.
            let first = Layer { weights: hidden[..20].to_vec(), bias: hidden[20..].to_vec() };
            let second = Layer { weights: last[..8].to_vec(), bias: last[15..17].to_vec() };
            let two = Classifier::new(2, convolutions, vec![first, second]).unwrap();
            let forward = two.forward(&tokens);
            let gradient = two.gradient(&forward, 1);
            let score = |features: &[f64]| {
                let hidden: Vec<f64> =
                    two.layers()[0].outputs(features).map(|output| output.max(0.0)).collect();
                two.layers()[1].outputs(&hidden).nth(1).unwrap()
            };
            // Not at a kink of the ReLU.
            let before: Vec<f64> = two.layers()[0].outputs(&forward.features).collect();
            prop_assume!(before.iter().all(|output| output.abs() > 1e-3));
            for (index, derivative) in gradient.iter().enumerate() {
                let mut more = forward.features.clone();
                more[index] += 1e-5;
                let change = (score(&more) - score(&forward.features)) / 1e-5;
                prop_assert!((change - derivative).abs() < 1e-6, "{change} {derivative}");
            }
            prop_assert!(!two.attribution(&forward, 0, tokens.len()).is_exact);
        }
    }
}

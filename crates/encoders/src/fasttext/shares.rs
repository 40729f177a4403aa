//! Which words of a text speak for a label of a classifier.

use std::collections::HashMap;

use super::classifier::{FastTextClassifier, ReadText};
use super::loss::LossKind;

/// The parts of a label's score.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    /// The score.
    pub score: f64,
    /// The part that no word has.
    pub base: f64,
    /// The places of the first and the last word of each span, and its share; largest first.
    pub spans: Vec<(usize, usize, f64)>,
    /// Whether the base and all shares add up to the score.
    pub is_exact: bool,
}

impl FastTextClassifier {
    /// The shares of a label's score that the words of a text have: the score, and for each word or
    /// span of words (by the places of the first and the last) its share. The end of the text has
    /// the place of its last word. All in float64. Under hierarchical softmax a share is the gradient
    /// of the score times the rows; otherwise all shares and the base, which is that of `</s>` alone,
    /// add up to the score.
    pub fn shares(&self, words: &[&[u8]], label: usize, goes_on: impl Fn() -> bool) -> Shares {
        let ReadText { vector, rows, .. } = self.read(words, 0, &goes_on);
        let products = self.products(&vector);
        // The direction in which the score grows.
        let mut direction = vec![0f64; self.dim()];
        for (row, by) in self.loss.gradient(label, &products) {
            let mut output = vec![0f32; self.dim()];
            self.output.add(&self.file, row, &mut output);
            for (sum, component) in direction.iter_mut().zip(output) {
                *sum += by * f64::from(component);
            }
        }
        let mut stored = vec![0f32; self.dim()];
        let mut of_row = |row: u32| {
            stored.fill(0.0);
            self.rows.add(&self.file, row, &mut stored);
            let products = stored.iter().zip(&direction).map(|(&x, d)| f64::from(x) * d);
            products.sum::<f64>() / rows as f64
        };
        let (mut base, mut spans) = (0.0, HashMap::<(usize, usize), f64>::new());
        self.for_each_row(words, &goes_on, |row, (first, last)| {
            let share = of_row(row);
            match first < words.len() {
                true => {
                    *spans.entry((first, last.min(words.len() - 1))).or_default() += share;
                }
                false => base += share,
            }
        });
        let is_exact = !matches!(self.of_classifier.loss, LossKind::HierarchicalSoftmax);
        let score = match is_exact {
            true => base + spans.values().sum::<f64>(),
            false => f64::from(self.loss.scored(&products)[label].score),
        };
        let mut spans: Vec<_> =
            spans.into_iter().map(|((first, last), share)| (first, last, share)).collect();
        spans.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
        Shares { score, base, spans, is_exact }
    }
}

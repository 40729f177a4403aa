//! Scorers: one number for a text, a linear function of the mean of its word vectors.

use std::sync::Arc;

use crate::{HasTable, Row};

/// A linear function of the mean of a text's word vectors.
#[derive(Debug)]
pub struct TextScorer {
    model: Arc<dyn HasTable>,
    weights: Vec<f32>,
    bias: f32,
}

impl TextScorer {
    /// A function over this model's rows, with a weight for each component, `[dim]`.
    ///
    /// # Panics
    /// If there is another number of weights.
    pub fn new(model: Arc<dyn HasTable>, weights: Vec<f32>, bias: f32) -> Self {
        assert_eq!(weights.len(), model.table().dim(), "a weight for each component");
        Self { model, weights, bias }
    }
}

/// A text for a scorer.
#[derive(Debug, Clone)]
pub struct TextToScore {
    scorer: Arc<TextScorer>,
    rows: Vec<Row>,
}

impl TextToScore {
    /// A text of these words.
    ///
    /// # Panics
    /// If there is no word, or one that the scorer's model does not have.
    pub fn new(scorer: Arc<TextScorer>, rows: Vec<Row>) -> Self {
        let count = scorer.model.table().rows();
        assert!(!rows.is_empty(), "a text with a word");
        assert!(rows.iter().all(|row| row.index() < count), "words of the model");
        Self { scorer, rows }
    }

    /// Its words.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The score, in float64: each component is summed in the order of the words and divided by
    /// their number; the products with the weights are summed in the order of the components, and
    /// the bias is added last.
    pub fn score(&self) -> f64 {
        let TextScorer { model, weights, bias } = &*self.scorer;
        let table = model.table();
        let mut sums = vec![0.0; weights.len()];
        for &row in &self.rows {
            for (sum, &component) in sums.iter_mut().zip(table.row(row)) {
                *sum += f64::from(component);
            }
        }
        let count = self.rows.len() as f64;
        let mut score = 0.0;
        for (sum, &weight) in sums.iter().zip(weights) {
            score += sum / count * f64::from(weight);
        }
        score + f64::from(*bias)
    }
}

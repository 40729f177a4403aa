//! An expander and a classifier over a table's rows, their texts, and the labels that are promised.

use std::error::Error;
use std::sync::Arc;

use contract::classifier::{Classifier, Convolution, Layer};
use contract::{HasTable, Precision, Row, TermExpander, Token, TokenClassifier, VectorSource};
use model_store::ModelStore;

use crate::made::{numbers, random};

/// An expander whose terms are the rows of a model under dot.
#[derive(Debug)]
pub(crate) struct Terms(pub(crate) Arc<dyn HasTable>);

impl TermExpander for Terms {
    fn terms(&self) -> &Arc<dyn HasTable> {
        &self.0
    }

    fn projection(&self) -> Option<&[f32]> {
        None
    }
}

/// A classifier whose tokens are the rows of a model.
#[derive(Debug)]
pub(crate) struct Words {
    classifier: Classifier,
    rows: usize,
}

impl TokenClassifier for Words {
    fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    fn tokens(&self) -> usize {
        self.rows
    }

    fn longest_text(&self) -> usize {
        16
    }

    fn source(&self, token: Token) -> VectorSource<'_> {
        VectorSource::Row { row: Row(token.0), scale: 1.0 }
    }
}

pub(crate) fn classifier(model: &ModelStore) -> Result<Arc<dyn TokenClassifier>, Box<dyn Error>> {
    let (dim, channels, classes) = (model.dim(), 21, 3);
    let convolution = |width: usize| Convolution {
        width,
        padding: width / 2,
        weights: numbers(10 + width as u64, channels * width * dim, 0.01),
        bias: numbers(20, channels, 0.1),
    };
    let layer = |inputs: usize, outputs: usize| Layer {
        weights: numbers(30 + outputs as u64, inputs * outputs, 0.2),
        bias: numbers(40, outputs, 0.1),
    };
    let layers = vec![layer(3 * channels, 17), layer(17, classes)];
    let classifier = Classifier::new(dim, [2, 3, 5].map(convolution).into(), layers)?;
    Ok(Arc::new(Words { classifier, rows: model.rows() }))
}

/// The rows of a text of 1 to 16 tokens.
pub(crate) fn text(model: &ModelStore, index: usize) -> Vec<u32> {
    let tokens = 1 + (random(9, index, 0) % 16) as usize;
    (1..=tokens).map(|i| (random(9, index, i) % model.rows() as u64) as u32).collect()
}

/// The best class, as promised: 254 where the formula's margin is too small for a promise, 255
/// where a score is further from the formula than promised.
pub(crate) fn label(found: &[f64], formula: &[f64], precision: Precision) -> u8 {
    let best = |scores: &[f64]| (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let mut sorted = formula.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let is_far = |(a, b): (&f64, &f64)| (a - b).abs() > precision.score_error();
    match best(found) {
        _ if found.iter().zip(formula).any(is_far) => u8::MAX,
        _ if sorted[0] - sorted[1] <= 2.0 * Precision::Float16.score_error() => u8::MAX - 1,
        label => label.unwrap_or(0) as u8,
    }
}

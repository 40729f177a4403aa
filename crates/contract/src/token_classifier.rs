//! Classifiers over a table's rows, and texts for them, as engines take them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::classifier::Classifier;
use crate::{Row, Table};

/// A token of a text: first the table's rows, then what the classifier has besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u32);

/// A classifier, with the vectors of its tokens.
pub trait TokenClassifier: fmt::Debug + Send + Sync {
    /// The weights.
    fn classifier(&self) -> &Classifier;

    /// The number of tokens that there are.
    fn tokens(&self) -> usize;

    /// The most tokens of a text.
    fn longest_text(&self) -> usize;

    /// Where a token's vector is.
    ///
    /// # Panics
    /// If there is no such token.
    fn source(&self, token: Token) -> VectorSource<'_>;

    /// A token's vector, `[dim]`. `table` is that of the model which the classifier was made for.
    ///
    /// # Panics
    /// If there is no such token.
    fn vector<'a>(&'a self, table: &Table<'a>, token: Token) -> Cow<'a, [f32]> {
        match self.source(token) {
            VectorSource::Own(vector) => Cow::Borrowed(vector),
            VectorSource::Row { row, scale: 1.0 } => Cow::Borrowed(table.row(row)),
            VectorSource::Row { row, scale } => Cow::Owned(scaled(table.row(row), scale)),
            VectorSource::Elsewhere { row, scale } => Cow::Owned(scaled(row, scale)),
        }
    }
}

/// Where a token's vector is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum VectorSource<'a> {
    /// A row of the table, each component of which is multiplied with `scale` in float32.
    Row {
        /// The row.
        row: Row,
        /// What it is multiplied with.
        scale: f32,
    },
    /// A vector that the classifier has besides, `[dim]`.
    Own(&'a [f32]),
    /// As `Row`, of a row that the engine's part of the table does not have.
    Elsewhere {
        /// The row's components, `[dim]`.
        row: &'a [f32],
        /// What it is multiplied with.
        scale: f32,
    },
}

fn scaled(row: &[f32], scale: f32) -> Vec<f32> {
    row.iter().map(|x| x * scale).collect()
}

/// How engines keep what they compute from a classifier. Sums are in float32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// The fast one.
    Float16,
    /// Twice the memory, and about twice the time; much more on a GPU if there are hidden dense
    /// layers.
    #[default]
    Float32,
}

impl Precision {
    /// Bytes of a product.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Float16 => 2,
            Self::Float32 => 4,
        }
    }

    /// The bound of the difference between a class score and its formula in float64, for heads
    /// whose features are of the size that training gives them.
    pub const fn score_error(self) -> f64 {
        match self {
            Self::Float16 => 1e-3,
            Self::Float32 => 1e-5,
        }
    }
}

/// A text for a classifier.
#[derive(Debug, Clone)]
pub struct TokenText {
    classifier: Arc<dyn TokenClassifier>,
    tokens: Vec<Token>,
}

impl TokenText {
    /// A text of these tokens.
    ///
    /// # Panics
    /// If the classifier has no such token, or takes no text of this length.
    pub fn new(classifier: Arc<dyn TokenClassifier>, tokens: Vec<Token>) -> Self {
        assert!(tokens.len() <= classifier.longest_text(), "a text that is not too long");
        let count = classifier.tokens();
        assert!(tokens.iter().all(|token| (token.0 as usize) < count), "tokens that there are");
        Self { classifier, tokens }
    }

    /// The classifier.
    pub fn classifier(&self) -> &Arc<dyn TokenClassifier> {
        &self.classifier
    }

    /// The tokens.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The class scores by the formula, in float64 and plain loops.
    pub fn scores(&self, table: &Table<'_>) -> Vec<f64> {
        let vector = |&token: &Token| self.classifier.vector(table, token);
        let vectors: Vec<_> = self.tokens.iter().map(vector).collect();
        let vectors: Vec<&[f32]> = vectors.iter().map(|vector| &vector[..]).collect();
        self.classifier.classifier().forward(&vectors).scores
    }
}

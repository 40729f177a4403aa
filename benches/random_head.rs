//! Random models and heads, the same in every run, for the benches `classify` of both engines.

use std::sync::Arc;

use contract::classifier::{Classifier, Convolution, Layer};
use contract::{Precision, Row, Token, TokenClassifier, TokenText, VectorSource};
use model_store::ModelStore;
use rayon::prelude::*;

/// The shape of a model and a head over it.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) rows: usize,
    pub(crate) dim: usize,
    /// Tokens of a text.
    pub(crate) tokens: usize,
    pub(crate) widths: &'static [usize],
    pub(crate) channels: usize,
    pub(crate) layers: &'static [usize],
}

pub(crate) const KIM: Shape = Shape {
    name: "Kim: 400,000 x 300, widths 3 4 5 x 100, 20 tokens",
    rows: 400_000,
    dim: 300,
    tokens: 20,
    widths: &[3, 4, 5],
    channels: 100,
    layers: &[2],
};

pub(crate) const LARGE: Shape = Shape {
    name: "21,635 x 4,096, widths 3 5 7 9 x 1,024, layers 2,048 1,024 512 2, 16 tokens",
    rows: 21_635,
    dim: 4096,
    tokens: 16,
    widths: &[3, 5, 7, 9],
    channels: 1024,
    layers: &[2048, 1024, 512, 2],
};

/// A head whose tokens are the rows of a model.
#[derive(Debug)]
pub(crate) struct Random {
    pub(crate) classifier: Classifier,
    pub(crate) rows: usize,
    pub(crate) longest: usize,
}

impl TokenClassifier for Random {
    fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    fn tokens(&self) -> usize {
        self.rows
    }

    fn longest_text(&self) -> usize {
        self.longest
    }

    fn source(&self, token: Token) -> VectorSource<'_> {
        VectorSource::Row { row: Row(token.0), scale: 1.0 }
    }
}

/// Numbers in [-size, size).
pub(crate) fn values(seed: usize, count: usize, size: f32) -> Vec<f32> {
    let one = |index: usize| {
        let mut x = (index as u64 ^ (seed as u64) << 40).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * size
    };
    (0..count).into_par_iter().map(one).collect()
}

pub(crate) fn model(rows: usize, dim: usize) -> Arc<ModelStore> {
    let components = values(7, rows * dim, 0.6);
    let words: Vec<String> = (0..rows).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(String::as_str).zip(components.chunks_exact(dim));
    Arc::new(ModelStore::from_rows("bench", dim, rows).expect("rows that fit"))
}

/// A convolution without padding, whose weights are in [-size, size).
pub(crate) fn convolution(width: usize, channels: usize, dim: usize, size: f32) -> Convolution {
    Convolution {
        width,
        padding: 0,
        weights: values(width, channels * width * dim, size),
        bias: values(100 + width, channels, 0.1),
    }
}

/// A head of this shape. Its features and class scores are about as large at every shape.
pub(crate) fn head(shape: &Shape) -> Arc<dyn TokenClassifier> {
    let convolution = |&width: &usize| convolution(width, shape.channels, shape.dim, 0.02);
    let mut inputs = shape.channels * shape.widths.len();
    let layer = |&outputs: &usize| {
        let weights = values(1000 + outputs, inputs * outputs, 1.7 / (inputs as f32).sqrt());
        inputs = outputs;
        Layer { weights, bias: values(2000 + outputs, outputs, 0.1) }
    };
    let layers = shape.layers.iter().map(layer).collect();
    let convolutions = shape.widths.iter().map(convolution).collect();
    let classifier = Classifier::new(shape.dim, convolutions, layers).expect("shapes that fit");
    Arc::new(Random { classifier, rows: shape.rows, longest: shape.tokens })
}

/// Uniform tokens.
pub(crate) fn tokens(rows: usize, count: usize, seed: usize) -> Vec<Token> {
    let token = |x: f32| Token(((f64::from(x) / 2.0 + 0.5) * rows as f64) as u32 % rows as u32);
    values(seed, count, 1.0).into_iter().map(token).collect()
}

/// How class scores differ from the formula's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Compared {
    /// The largest difference of a class score.
    pub(crate) error: f64,
    /// Texts whose two best class scores differ by at most twice the promise.
    pub(crate) near: u64,
    /// Others with another label than the formula's.
    pub(crate) wrong: u64,
    /// Texts with the first label, by the formula.
    pub(crate) first: u64,
}

impl Compared {
    /// The comparison of one text's class scores.
    pub(crate) fn of(found: &[f64], expected: &[f64], precision: Precision) -> Self {
        let best =
            |scores: &[f64]| (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        let mut sorted = expected.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let is_near = sorted[0] - sorted[1] <= 2.0 * precision.score_error();
        let differs = best(found) != best(expected);
        Self {
            error: found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max),
            near: u64::from(is_near),
            wrong: u64::from(differs && !is_near),
            first: u64::from(best(expected) == Some(0)),
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            error: self.error.max(other.error),
            near: self.near + other.near,
            wrong: self.wrong + other.wrong,
            first: self.first + other.first,
        }
    }

    /// Prints it, and panics if it is not what is promised.
    pub(crate) fn check(self, precision: Precision, texts: usize) {
        let Self { error, near, wrong, first } = self;
        println!(
            "{precision:?}, {texts} texts, {first} with the first label: largest error {error:.1e}, {near} margins within 2ε, \
             {wrong} other labels"
        );
        assert!(error < precision.score_error() && wrong == 0);
    }
}

/// The formula's class scores.
pub(crate) fn formula(texts: &[TokenText], model: &ModelStore) -> Vec<Vec<f64>> {
    texts.par_iter().map(|text| text.scores(&model.table())).collect()
}

/// Random heads give nearly all texts one label, so that equal labels would say little. The head with another bias of the first of two
/// classes, by which the formula gives half of these texts each label; and the formula's class scores, which it moves by as much.
pub(crate) fn balanced(
    head: &dyn TokenClassifier,
    mut expected: Vec<Vec<f64>>,
) -> (Arc<dyn TokenClassifier>, Vec<Vec<f64>>) {
    let mut margins: Vec<f64> = expected.iter().map(|scores| scores[0] - scores[1]).collect();
    margins.sort_by(f64::total_cmp);
    let mut layers = head.classifier().layers().to_vec();
    let bias = &mut layers.last_mut().expect("a layer").bias[0];
    let before = *bias;
    *bias -= margins[margins.len() / 2] as f32;
    let moved = f64::from(*bias) - f64::from(before);
    expected.iter_mut().for_each(|scores| scores[0] += moved);
    let (dim, convolutions) = (head.classifier().dim(), head.classifier().convolutions().to_vec());
    let classifier = Classifier::new(dim, convolutions, layers).expect("shapes that fit");
    (Arc::new(Random { classifier, rows: head.tokens(), longest: head.longest_text() }), expected)
}

/// Compares class scores with the formula's.
pub(crate) fn compare(found: &[Vec<f64>], expected: &[Vec<f64>], precision: Precision) -> Compared {
    let all = found.iter().zip(expected);
    all.map(|(found, expected)| Compared::of(found, expected, precision))
        .fold(Compared::default(), Compared::and)
}

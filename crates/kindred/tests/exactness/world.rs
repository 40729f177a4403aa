//! Random models with attributes, an expander and a classifier.

use std::sync::Arc;

use contract::Row;
use kindred::ModelStore;
use kindred::contract::classifier::{Classifier, Convolution, Layer};
use kindred::heads::{
    Cut, Description, Expander, ExpanderDescription, ExpanderWeights, Head, HeadKind, MadeFor,
    Probabilities, TextClassifier, Tokeniser, Tokens,
};
use model_store::head::{ConvolutionShape, HEAD_VERSION, Parts};

use crate::draw::Draw;
use crate::naive::{Item, attributes};
use crate::oracle::norm;

/// A model, as plain values and as Kindred has it.
pub(crate) struct World {
    pub(crate) store: Arc<ModelStore>,
    pub(crate) words: Vec<String>,
    pub(crate) vectors: Vec<Vec<f32>>,
    pub(crate) norms: Vec<f64>,
    /// Under the metric `dot`, one for each row.
    pub(crate) biases: Option<Vec<f32>>,
    pub(crate) items: Vec<Item>,
    pub(crate) expander: Arc<Expander>,
    /// The row of each of the expander's terms, and its bias.
    pub(crate) terms: Vec<(usize, f32)>,
    pub(crate) head: TextClassifier,
}

/// Rows and components, and what the components are like.
struct Shape {
    rows: u64,
    dim: u64,
    /// Few distinct components: many equal scores.
    is_coarse: bool,
    /// Rows repeat after so many.
    period: usize,
    /// One component in so many is at an end of float32's range; 0 for none.
    extreme: u64,
    /// One row in so many is zero.
    zero: u64,
}

impl Shape {
    fn new(number: usize, draw: &mut Draw) -> Self {
        let mut from = |low: u64, high: u64| low + draw.random.below(high - low);
        let (rows, dim) = match number % 8 {
            0 => (from(1, 60), from(1, 6)),
            1 => (from(1, 300), from(1, 40)),
            2 => (from(1500, 3000), from(2, 34)),
            3 => (from(300, 900), from(1, 20)),
            4 | 5 => (from(20, 400), from(1, 70)),
            6 => (from(2000, 3000), from(1, 9)),
            _ if number % 32 == 7 => (from(20_000, 21_000), from(3, 9)),
            _ => (32 * from(1, 40) + from(0, 3) - 1, from(1, 9)),
        };
        let extreme = if matches!(number % 8, 4 | 5) { 40 } else { 0 };
        let is_coarse = matches!(number % 8, 0 | 1 | 6) || number % 32 == 15;
        let period = if number % 8 == 3 { 1 + from(1, 200) as usize } else { usize::MAX };
        Self { rows, dim, is_coarse, period, extreme, zero: if number % 8 == 5 { 5 } else { 30 } }
    }

    fn vectors(&self, draw: &mut Draw) -> Vec<Vec<f32>> {
        let mut vectors: Vec<Vec<f32>> = Vec::new();
        for row in 0..self.rows as usize {
            let vector = match row.checked_sub(self.period) {
                Some(same) => vectors[same].clone(),
                None if draw.random.one_in(self.zero) => vec![0.0; self.dim as usize],
                None => (0..self.dim).map(|_| self.component(draw)).collect(),
            };
            vectors.push(vector);
        }
        vectors
    }

    fn component(&self, draw: &mut Draw) -> f32 {
        if self.extreme > 0 && draw.random.one_in(self.extreme) {
            return draw.random.pick(&[3.0e38, -3.0e38, f32::from_bits(1)]);
        }
        if self.is_coarse { draw.random.below(5) as f32 - 2.0 } else { draw.real() }
    }
}

impl World {
    /// The world of this number.
    pub(crate) fn new(number: usize, draw: &mut Draw) -> Self {
        let shape = Shape::new(number, draw);
        let vectors = shape.vectors(draw);
        let under_dot = matches!(number % 8, 1 | 4 | 6);
        let some_biases = |draw: &mut Draw| -> Vec<f32> {
            vectors.iter().map(|_| draw.random.below(9) as f32 / 2.0 - 2.0).collect()
        };
        let biases = under_dot.then(|| some_biases(draw)).filter(|_| number % 16 != 6);
        let (words, items) = (words(vectors.len(), draw), draw.items(vectors.len(), number % 3));
        let rows = words.iter().map(String::as_str).zip(vectors.iter().map(Vec::as_slice));
        let dim = shape.dim as usize;
        let store = match under_dot {
            true => ModelStore::from_rows_under_dot("random", dim, rows, biases.as_deref()),
            false => ModelStore::from_rows("random", dim, rows),
        };
        let store = Arc::new(store.unwrap().with_attributes(attributes(&items)).unwrap());
        let biases = under_dot.then(|| biases.unwrap_or_else(|| vec![0.0; vectors.len()]));

        // All rows as terms, with the model's biases or others, or some of the rows.
        let own = (!under_dot || draw.random.one_in(2)).then(|| some_biases(draw));
        let mut terms: Vec<usize> = (0..vectors.len()).collect();
        let are_some = number % 4 > 1;
        if are_some {
            terms.retain(|&row| row == 0 || !draw.random.one_in(3));
        }
        let all_biases = own.as_ref().or(biases.as_ref()).expect("cosine has own ones");
        let terms: Vec<(usize, f32)> = terms.iter().map(|&row| (row, all_biases[row])).collect();
        let weights = ExpanderWeights {
            rows: are_some.then(|| terms.iter().map(|&(row, _)| Row(row as u32)).collect()),
            biases: own.map(|_| terms.iter().map(|&(_, bias)| bias).collect()),
            ..ExpanderWeights::default()
        };
        let description = ExpanderDescription::of_model(&store, tokens());
        let description = ExpanderDescription { log1p: false, ..description };
        let expander = Expander::from_memory(description, weights, &store).unwrap();
        let head = Arc::new(head(&store, draw)).into();
        let (expander, norms) = (Arc::new(expander), vectors.iter().map(|row| norm(row)).collect());
        Self { store, words, vectors, norms, biases, items, expander, terms, head }
    }
}

fn tokens() -> Tokens {
    Tokens { tokeniser: Tokeniser::Words, lower_case: false, limit: 512, cut: Cut::End }
}

/// `w0`, `w1` and so on; some are the word before in capitals.
fn words(rows: usize, draw: &mut Draw) -> Vec<String> {
    let word = |row: usize| match row > 0 && draw.random.one_in(5) {
        true => format!("W{}", row - 1),
        false => format!("w{row}"),
    };
    (0..rows).map(word).collect()
}

/// A small classifier.
fn head(store: &ModelStore, draw: &mut Draw) -> Head {
    let (dim, width, channels, classes) = (store.dim(), 2, 6, 3);
    let mut values = |count: usize| -> Vec<f32> { (0..count).map(|_| draw.real()).collect() };
    let weights = values(channels * width * dim);
    let convolution = Convolution { width, padding: 1, weights, bias: values(channels) };
    let layer = Layer { weights: values(channels * classes), bias: values(classes) };
    let description = Description {
        kind: HeadKind::Classifier,
        version: HEAD_VERSION,
        model: MadeFor::of(store),
        tokens: tokens(),
        labels: ["a", "b", "c"].map(str::to_owned).to_vec(),
        probabilities: Probabilities::Softmax,
        temperature: 1.0,
        convolutions: vec![ConvolutionShape { width, channels, padding: 1 }],
        layers: vec![classes],
        words: Vec::new(),
        other_words: 1.0,
        weights: String::new(),
        training: serde_json::Map::new(),
        checksum: None,
    };
    let classifier = Classifier::new(dim, vec![convolution], vec![layer]).unwrap();
    let tuned = (Vec::new(), Vec::new());
    let parts = Parts { description, classifier, tuned, added: Vec::new(), unknown: None };
    Head::from_memory(&parts, store).unwrap()
}

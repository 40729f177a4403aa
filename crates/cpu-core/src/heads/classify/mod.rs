//! Class scores of texts, without a product at inference but for the dense layers.
//!
//! Convolution is linear in the tokens' vectors. So each token is multiplied by all filters once
//! (`products`), and a text's convolutions are sums of what its tokens gave (`loops`). A token's
//! products are computed when a text has it for the first time: in float64, in the order of
//! components, and rounded to float16 or float32 once. Every sum has one order, so a text's scores
//! have the same bits in every batch, and with any number of threads.
//!
//! A classifier with weights so large that a sum might overflow float32 is computed by the formula
//! instead.

pub mod float16;
mod loops;
mod products;
mod slots;

use std::sync::Arc;

use contract::classifier::Convolution;
use contract::{Precision, Table, Token, TokenClassifier, TokenText};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::InstructionSet;
use loops::{Dense, WindowSums};
use products::Products;
pub use slots::{Assigned, Slots};

/// The memory for the products of one classifier, in bytes, unless others are asked for. The system
/// gives it when it is used.
pub const PRODUCTS_MEMORY: usize = 2 << 30;

/// The products of a new token take as long as `dim / COMPONENTS_OF_A_TOKEN` tokens whose products
/// are there: 65 tokens at 100 components.
const COMPONENTS_OF_A_TOKEN: f64 = 1.5;

/// Computes the class scores of one classifier.
#[derive(Debug)]
pub struct Classifying {
    head: Arc<dyn TokenClassifier>,
    products: Products,
    /// Whether float32 holds all products and their sums; `None` before the first texts.
    fits: Option<bool>,
}

/// The classifiers that an engine was asked for.
#[derive(Debug)]
pub struct Classifiers {
    all: Vec<Classifying>,
    memory: usize,
    precision: Precision,
}

impl Classifiers {
    /// None yet. The products of each will take at most about `memory` bytes; [`PRODUCTS_MEMORY`]
    /// if `None`. They are float32 where the machine or the classifier can't have float16.
    pub fn new(memory: Option<u64>, precision: Precision) -> Self {
        let memory = memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Self { all: Vec::new(), memory: memory.unwrap_or(PRODUCTS_MEMORY), precision }
    }

    /// The class scores of the first of these texts: of all if `go_on` stays true.
    pub fn scores(
        &mut self,
        table: &Table<'_>,
        texts: &[&TokenText],
        pool: &ThreadPool,
        go_on: &dyn Fn() -> bool,
    ) -> Vec<Vec<f64>> {
        // Nobody else has those that were replaced.
        self.all.retain(|one| Arc::strong_count(&one.head) > 1);
        let mut scores = Vec::with_capacity(texts.len());
        for own in texts.chunk_by(|a, b| Arc::ptr_eq(a.classifier(), b.classifier())) {
            let head = own[0].classifier();
            let tokens: Vec<&[Token]> = own.iter().map(|text| text.tokens()).collect();
            let found = self.of(head, table).scores_part(table, &tokens, pool, go_on);
            let found = found.chunks_exact(head.classifier().classes()).map(<[f64]>::to_vec);
            let before = scores.len();
            scores.extend(found);
            if scores.len() - before < own.len() {
                break;
            }
        }
        scores
    }

    /// The cost of a text, in tokens whose products are loaded.
    pub fn cost(&self, text: &TokenText) -> usize {
        let (head, tokens) = (text.classifier(), text.tokens());
        let known = self.all.iter().find(|one| Arc::ptr_eq(&one.head, head));
        let missing = known.map_or(tokens.len(), |one| one.products.missing(tokens));
        // Each component is multiplied with every filter; a token that is loaded takes an addition
        // for each.
        let of_missing = (head.classifier().dim() as f64 / COMPONENTS_OF_A_TOKEN).ceil() as usize;
        tokens.len() + missing * of_missing
    }

    fn of(&mut self, head: &Arc<dyn TokenClassifier>, table: &Table<'_>) -> &mut Classifying {
        let known = self.all.iter().position(|one| Arc::ptr_eq(&one.head, head));
        let index = known.unwrap_or_else(|| {
            let instructions = InstructionSet::best();
            let can = instructions.has_float16() && float16::holds(&**head, table);
            let precision = if can { self.precision } else { Precision::Float32 };
            self.all.push(Classifying::new(head.clone(), self.memory, precision, instructions));
            self.all.len() - 1
        });
        &mut self.all[index]
    }
}

/// A convolution's place in a token's products.
#[derive(Debug, Clone)]
struct Shape {
    width: usize,
    padding: usize,
    /// Its channels, filled up with zeros.
    channels: usize,
    /// The channels that are features.
    features: usize,
    /// Where its products begin: `[width, channels]`.
    column: usize,
    /// `[channels]`.
    bias: Vec<f32>,
}

/// Channels, filled up with zeros.
fn padded(channels: usize) -> usize {
    channels.next_multiple_of(loops::CHANNELS)
}

impl Shape {
    /// The shapes of these convolutions, and the number of products of a token.
    fn all(convolutions: &[Convolution]) -> (Vec<Self>, usize) {
        let mut columns = 0;
        let shape = |one: &Convolution| {
            let (features, column) = (one.channels(), columns);
            let channels = padded(features);
            columns += one.width * channels;
            let mut bias = one.bias.clone();
            bias.resize(channels, 0.0);
            Self { width: one.width, padding: one.padding, channels, features, column, bias }
        };
        let shapes = convolutions.iter().map(shape).collect();
        (shapes, columns)
    }
}

impl Classifying {
    /// Products take at most about `memory` bytes, so far as a single text does not need more:
    /// first those of the model's most frequent words, and an eighth of it for all others, in
    /// turns. Scores have the same bits with any instructions.
    pub fn new(
        head: Arc<dyn TokenClassifier>,
        memory: usize,
        precision: Precision,
        instructions: InstructionSet,
    ) -> Self {
        let products = Products::new(&*head, memory, precision, instructions);
        Self { head, products, fits: None }
    }

    /// The class scores of texts, `[texts, classes]`. Texts are tokens of the classifier, of which
    /// there may be none. The table is always that of its model.
    pub fn scores(&mut self, table: &Table<'_>, texts: &[&[Token]], pool: &ThreadPool) -> Vec<f64> {
        self.scores_part(table, texts, pool, &|| true)
    }

    /// The same of the first texts, as many as are done when `go_on` says to stop; perhaps of none,
    /// but then some products are computed.
    fn scores_part(
        &mut self,
        table: &Table<'_>,
        texts: &[&[Token]],
        pool: &ThreadPool,
        go_on: &dyn Fn() -> bool,
    ) -> Vec<f64> {
        let classes = self.head.classifier().classes();
        let mut scores = vec![0.0; texts.len() * classes];
        let head = &*self.head;
        if !*self.fits.get_or_insert_with(|| float16::float32_holds(head, table)) {
            pool.install(|| {
                let parts = scores.par_chunks_mut(classes).zip(texts);
                parts
                    .for_each(|(scores, text)| scores.copy_from_slice(&formula(head, table, text)));
            });
            return scores;
        }
        let mut done = 0;
        while done < texts.len() {
            let loaded = self.products.load(table, &*self.head, &texts[done..], pool, go_on);
            let Some(Assigned { texts: count, slots: places, ends, .. }) = loaded else { break };
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let texts: Vec<&[u32]> =
                starts.zip(&ends).map(|(start, &end)| &places[start..end]).collect();
            let scores = &mut scores[done * classes..][..count * classes];
            let this = &*self;
            pool.install(|| {
                let parts = scores.par_chunks_mut(classes).enumerate().with_min_len(4);
                parts.for_each_init(Buffers::default, |buffers, (index, scores)| {
                    this.score(texts[index], buffers, scores);
                });
            });
            done += count;
            if !go_on() {
                break;
            }
        }
        scores.truncate(done * classes);
        scores
    }

    /// The class scores of a text, as places of its tokens.
    fn score(&self, text: &[u32], buffers: &mut Buffers, scores: &mut [f64]) {
        self.products.features(text, &mut buffers.sums);
        buffers.inputs.clear();
        let mut maxima = &buffers.sums.maxima[..];
        for shape in &self.products.shapes {
            let (own, rest) = maxima.split_at(shape.channels);
            buffers.inputs.extend(own[..shape.features].iter().map(|&feature| f64::from(feature)));
            maxima = rest;
        }
        let instructions = self.products.instructions;
        let (last, before) = self.head.classifier().layers().split_last().expect("a layer");
        for layer in before {
            buffers.outputs.resize(layer.bias.len(), 0.0);
            let (inputs, outputs) = (&buffers.inputs[..], &mut buffers.outputs[..]);
            instructions.run(Dense { layer, inputs, outputs });
            buffers.outputs.iter_mut().for_each(|output| *output = output.max(0.0));
            std::mem::swap(&mut buffers.inputs, &mut buffers.outputs);
        }
        let inputs = &buffers.inputs[..];
        instructions.run(Dense { layer: last, inputs, outputs: scores });
    }
}

/// The class scores of a text in float64, by the formula: slower, and right where float32
/// overflows.
fn formula(head: &dyn TokenClassifier, table: &Table<'_>, text: &[Token]) -> Vec<f64> {
    let vectors: Vec<_> = text.iter().map(|&token| head.vector(table, token)).collect();
    let vectors: Vec<&[f32]> = vectors.iter().map(|vector| &vector[..]).collect();
    head.classifier().forward(&vectors).scores
}

/// A thread's buffers.
#[derive(Default)]
struct Buffers {
    sums: WindowSums,
    inputs: Vec<f64>,
    outputs: Vec<f64>,
}

#[cfg(test)]
mod tests;

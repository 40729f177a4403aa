//! Class scores of texts, without a product at inference but for the dense layers.
//!
//! Convolution is linear in the tokens' vectors. So each token is multiplied by all filters once (`products`), and a text's
//! convolutions are sums of what its tokens gave (`loops`). A token's products are computed when a text has it for the first
//! time: in float64, in the order of components, and rounded to float32 once. Every sum has one order, so a text's scores have
//! the same bits in every batch, and with any number of threads.

mod loops;
mod products;
mod slots;

use std::sync::Arc;

use contract::classifier::Convolution;
use contract::{Table, Token, TokenClassifier, TokenText};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::InstructionSet;
use products::Products;
pub use slots::{Assigned, Slots};

/// The bound of the difference between a class score and its formula in float64, for heads whose features are of the size that
/// training gives them.
pub const SCORE_ERROR: f64 = 1e-5;

/// The memory for the products of one classifier, in bytes, unless others are asked for. The system gives it when it is used.
pub const PRODUCTS_MEMORY: usize = 2 << 30;

/// Computes the class scores of one classifier.
#[derive(Debug)]
pub struct Classifying {
    head: Arc<dyn TokenClassifier>,
    instructions: InstructionSet,
    products: Products,
}

/// The classifiers that an engine was asked for.
#[derive(Debug)]
pub struct Classifiers {
    all: Vec<Classifying>,
    memory: usize,
}

impl Classifiers {
    /// None yet. The products of each will take at most about `memory` bytes; [`PRODUCTS_MEMORY`] if `None`.
    pub fn new(memory: Option<u64>) -> Self {
        let memory = memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Self { all: Vec::new(), memory: memory.unwrap_or(PRODUCTS_MEMORY) }
    }

    /// The class scores of each text.
    pub fn scores(
        &mut self,
        table: &Table<'_>,
        texts: &[&TokenText],
        pool: &ThreadPool,
    ) -> Vec<Vec<f64>> {
        // Nobody else has those that were replaced.
        self.all.retain(|one| Arc::strong_count(&one.head) > 1);
        let mut scores = vec![Vec::new(); texts.len()];
        let mut rest: Vec<usize> = (0..texts.len()).collect();
        while let Some(&first) = rest.first() {
            let head = texts[first].classifier();
            let is_own = |index: &usize| Arc::ptr_eq(texts[*index].classifier(), head);
            let (own, others): (Vec<usize>, Vec<usize>) = rest.into_iter().partition(is_own);
            rest = others;
            let tokens: Vec<&[Token]> = own.iter().map(|&index| texts[index].tokens()).collect();
            let found = self.of(head).scores(table, &tokens, pool);
            for (index, found) in
                own.into_iter().zip(found.chunks_exact(head.classifier().classes()))
            {
                scores[index] = found.to_vec();
            }
        }
        scores
    }

    fn of(&mut self, head: &Arc<dyn TokenClassifier>) -> &mut Classifying {
        let known = self.all.iter().position(|one| Arc::ptr_eq(&one.head, head));
        let index = known.unwrap_or_else(|| {
            self.all.push(Classifying::new(head.clone(), self.memory));
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
    /// Its channels, and zeros if they are fewer than a block.
    channels: usize,
    /// The channels that are features.
    features: usize,
    /// Where its products begin: `[width, channels]`.
    column: usize,
    /// `[channels]`.
    bias: Vec<f32>,
}

impl Shape {
    /// The shapes of these convolutions, and the number of products of a token.
    fn all(convolutions: &[Convolution]) -> (Vec<Self>, usize) {
        let mut columns = 0;
        let shape = |one: &Convolution| {
            let (features, column) = (one.channels(), columns);
            let channels = features.max(loops::SMALL_BLOCK);
            columns += one.width * channels;
            let mut bias = one.bias.clone();
            bias.resize(channels, 0.0);
            Self { width: one.width, padding: one.padding, channels, features, column, bias }
        };
        let shapes = convolutions.iter().map(shape).collect();
        (shapes, columns)
    }

    /// The number of positions in a text of `tokens` tokens: as of its convolution.
    fn positions(&self, tokens: usize) -> usize {
        (tokens + 2 * self.padding + 1).saturating_sub(self.width).max(1)
    }
}

impl Classifying {
    /// Products take at most about `memory` bytes, so far as a single text does not need more: first those of the model's most
    /// frequent words, and an eighth of it for all others, in turns.
    pub fn new(head: Arc<dyn TokenClassifier>, memory: usize) -> Self {
        Self::with_instructions(head, memory, InstructionSet::best())
    }

    /// The same with other instructions, for tests: the scores have the same bits.
    pub fn with_instructions(
        head: Arc<dyn TokenClassifier>,
        memory: usize,
        instructions: InstructionSet,
    ) -> Self {
        let products = Products::new(&*head, memory, instructions);
        Self { head, instructions, products }
    }

    /// The class scores of texts, `[texts, classes]`. Texts are tokens of the classifier, of which there may be none. The table is
    /// always that of its model.
    pub fn scores(&mut self, table: &Table<'_>, texts: &[&[Token]], pool: &ThreadPool) -> Vec<f64> {
        let classes = self.head.classifier().classes();
        let mut scores = vec![0.0; texts.len() * classes];
        let mut done = 0;
        while done < texts.len() {
            let Assigned { texts: count, slots, ends, .. } =
                self.products.load(table, &*self.head, &texts[done..], pool);
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let texts: Vec<&[u32]> =
                starts.zip(&ends).map(|(start, &end)| &slots[start..end]).collect();
            let scores = &mut scores[done * classes..][..count * classes];
            let this = &*self;
            pool.install(|| {
                let parts = scores.par_chunks_mut(classes).enumerate().with_min_len(4);
                parts.for_each_init(
                    || Space::new(this),
                    |space, (index, scores)| {
                        // While one text is summed up, the next one comes from memory.
                        if let Some(next) = texts.get(index + 1) {
                            this.products.view().prefetch(next);
                        }
                        this.score(texts[index], space, scores);
                    },
                );
            });
            done += count;
        }
        scores
    }

    /// The class scores of a text, as slots of its tokens.
    fn score(&self, text: &[u32], space: &mut Space, scores: &mut [f64]) {
        let products = self.products.view();
        self.instructions.features(text, products, &mut space.features);
        space.inputs.clear();
        space.inputs.extend(space.features.iter().map(|&feature| f64::from(feature)));
        let (last, before) = self.head.classifier().layers().split_last().expect("a layer");
        for layer in before {
            space.outputs.resize(layer.bias.len(), 0.0);
            self.instructions.dense(layer, &space.inputs, &mut space.outputs);
            space.outputs.iter_mut().for_each(|output| *output = output.max(0.0));
            std::mem::swap(&mut space.inputs, &mut space.outputs);
        }
        self.instructions.dense(last, &space.inputs, scores);
    }
}

/// A thread's buffers.
struct Space {
    features: Vec<f32>,
    inputs: Vec<f64>,
    outputs: Vec<f64>,
}

impl Space {
    fn new(classifying: &Classifying) -> Self {
        let features = vec![0.0; classifying.head.classifier().features()];
        Self { features, inputs: Vec::new(), outputs: Vec::new() }
    }
}

#[cfg(test)]
mod tests;

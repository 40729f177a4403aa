//! Trains expanders ([`gradients`](super::gradients) has their formula) on queries with relevant texts, by AdamW.
//!
//! A token's vector is `x = P · e`: its row `e` of the table under a projection `P`, which starts as the identity; each component is
//! the contract's dot product, rounded to float32. A term has a bias and a vector: its row of the table, or a vector of its own that
//! starts there. A text's weight of a term is `f`, or `ln(1 + f)`. A query's score of a text is `Σ over terms of w_q[v] · w_d[v]`.
//!
//! - `batch`: the texts of a step, and their tokens' vectors;
//! - `forward`: the terms that they touch, exactly;
//! - `loss`: InfoNCE or a margin, and the FLOPS regulariser; derivatives by weights;
//! - `step`: derivatives by what is trained, and how that changes (`adam`);
//! - `start`: a bias with which a text touches a given number of terms.
//!
//! Every sum has one order, and first stages only skip what cannot matter. So the same data, settings and seed give the same weights
//! on any number of threads.
//!
//! Sources: Formal et al. 2021, "SPLADE"; Paria et al. 2020, "Minimizing FLOPs to learn efficient sparse representations";
//! van den Oord et al. 2018 (InfoNCE); Loshchilov and Hutter 2019 (AdamW).

mod adam;
mod batch;
mod forward;
mod loss;
mod start;
mod step;

use std::borrow::Cow;
use std::ops::ControlFlow;

use model_store::synth::split_mix;
use rayon::ThreadPool;

use crate::heads::train::shuffled;
use batch::Batch;
use step::Trainer;

/// A query with a text that is relevant for it, and perhaps one that is not. Texts are tokens: words, by their rows in
/// [`Data::vectors`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The query.
    pub query: Vec<u32>,
    /// The relevant text.
    pub relevant: Vec<u32>,
    /// The irrelevant text.
    pub irrelevant: Option<Vec<u32>>,
}

/// Which words are terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terms<'a> {
    /// The first ones.
    First(usize),
    /// These, in this order: a collection's vocabulary.
    Words(&'a [u32]),
}

/// What an expander learns from.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// Examples to learn from.
    pub train: &'a [Example],
    /// Examples that decide which epoch is the best; there may be none.
    pub dev: &'a [Example],
    /// The words' vectors, `[words, dim]`.
    pub vectors: &'a [f32],
    /// Components of a vector.
    pub dim: usize,
    /// The terms.
    pub terms: Terms<'a>,
}

/// What is minimised, beside the regulariser. A mean over queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// The cross-entropy of a softmax over scores divided by `temperature`. Candidates are all relevant and irrelevant texts of the
    /// batch. A text that equals the query's relevant text is no candidate.
    InfoNce {
        /// What scores are divided by.
        temperature: f32,
    },
    /// `max(0, margin − score of the relevant text + score of the irrelevant text)`. Every example needs an irrelevant text.
    Margin {
        /// How much higher the relevant text should score.
        margin: f32,
    },
}

/// The terms' first bias.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StartBias {
    /// This number.
    Value(f32),
    /// The number with which a text touches about as many terms as this, by a sample of the relevant texts.
    ///
    /// About half of all dot products of word vectors are above zero. Without a bias below zero, a text would touch nearly every
    /// term.
    TermsPerText(f32),
}

/// How an expander is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What is minimised.
    pub loss: Loss,
    /// Whether weights are `ln(1 + f)` instead of `f`.
    pub log1p: bool,
    /// The regulariser's factor for queries: of `Σ over terms of (the batch's mean weight)²`.
    pub flops_queries: f32,
    /// The same for texts, relevant and irrelevant together.
    pub flops_texts: f32,
    /// Steps in which both factors grow from zero with the square of the step's number; 0: they start as they are.
    pub warm_up: usize,
    /// The first bias of all terms.
    pub bias: StartBias,
    /// Whether a projection of the tokens' vectors is trained.
    pub projection: bool,
    /// Whether the terms' vectors are trained.
    pub own_vectors: bool,
    /// Examples in a step. An epoch leaves out the last ones that are fewer, unless there are no others.
    pub batch: usize,
    /// Passes over the data.
    pub epochs: usize,
    /// The size of steps of the projection and of the terms' vectors.
    pub learning_rate: f32,
    /// The size of steps of biases, whose scale is that of dot products.
    pub bias_learning_rate: f32,
    /// How much weights are drawn towards where they started, beside the gradients' steps (AdamW).
    pub weight_decay: f32,
    /// Decides everything that is random: the order of examples.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            loss: Loss::InfoNce { temperature: 1.0 },
            log1p: true,
            flops_queries: 1e-3,
            flops_texts: 1e-3,
            warm_up: 500,
            bias: StartBias::TermsPerText(100.0),
            projection: true,
            own_vectors: false,
            batch: 64,
            epochs: 10,
            learning_rate: 1e-3,
            bias_learning_rate: 1e-2,
            weight_decay: 0.01,
            seed: 1,
        }
    }
}

/// How far training is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The epoch, from 1.
    pub epoch: usize,
    /// Steps of all epochs.
    pub step: usize,
    /// Examples of the epoch that were learned from.
    pub examples: usize,
    /// Means over the epoch so far.
    pub means: Means,
    /// How good it is on the deciding examples ([`Trained::quality`]), at the end of an epoch.
    pub quality: Option<f64>,
}

/// What steps gave.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Means {
    /// The loss, without the regulariser.
    pub loss: f64,
    /// `Σ over terms of (the batch's mean weight)²` of queries, without its factor.
    pub flops_queries: f64,
    /// The same of texts.
    pub flops_texts: f64,
    /// Terms that a query touches.
    pub terms_per_query: f64,
    /// Terms that a text touches.
    pub terms_per_text: f64,
}

impl Means {
    fn map2(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            loss: f(self.loss, other.loss),
            flops_queries: f(self.flops_queries, other.flops_queries),
            flops_texts: f(self.flops_texts, other.flops_texts),
            terms_per_query: f(self.terms_per_query, other.terms_per_query),
            terms_per_text: f(self.terms_per_text, other.terms_per_text),
        }
    }
}

/// A trained expander.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The terms' biases, `[terms]`.
    pub biases: Vec<f32>,
    /// `P`, `[dim, dim]`, if it was trained.
    pub projection: Option<Vec<f32>>,
    /// The terms' vectors, `[terms, dim]`, if they were trained.
    pub vectors: Option<Vec<f32>>,
    /// Steps until then.
    pub steps: usize,
    /// The mean reciprocal rank of the relevant text among all texts of up to 256 deciding examples, where equal scores rank before
    /// it. `None` without deciding examples, or before an epoch was complete.
    pub quality: Option<f64>,
}

/// Deciding examples that are ranked together.
const RANKED_TOGETHER: usize = 256;

/// Trains an expander. Calls `on_progress` after each step and each epoch; if it breaks, training ends.
///
/// With deciding examples the best epoch is returned, the later of two equal ones, among those that ended after the warm-up: before,
/// more terms than wanted are touched. If there is none, or no deciding examples, the last step is.
///
/// # Panics
/// If there is nothing to learn from, or an example or the terms name a word that does not exist, or [`Loss::Margin`] lacks an
/// irrelevant text, or a vector or a setting is not a finite number, or the temperature is not above zero.
pub fn train(
    data: Data<'_>,
    settings: &Settings,
    pool: &ThreadPool,
    on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Trained {
    check(data, settings);
    let mut trainer = Trainer::new(data, settings, pool);
    let mut best: Option<Trained> = None;
    'epochs: for epoch in 1..=settings.epochs {
        let order = shuffled(data.train.len(), split_mix(settings.seed).wrapping_add(epoch as u64));
        let together = settings.batch.clamp(1, order.len());
        let (mut sums, mut count) = (Means::default(), 0);
        let progress = |sums: Means, count: usize, step: usize, quality: Option<f64>| Progress {
            epoch,
            step,
            examples: count * together,
            means: sums.map2(sums, |sum, _| sum / count as f64),
            quality,
        };
        for batch in order.chunks_exact(together) {
            let examples: Vec<&Example> = batch.iter().map(|&index| &data.train[index]).collect();
            sums = sums.map2(trainer.step(&examples), |sum, own| sum + own);
            count += 1;
            if on_progress(progress(sums, count, trainer.steps(), None)).is_break() {
                break 'epochs;
            }
        }
        let quality = quality(&trainer, data.dev);
        let is_better = quality > best.as_ref().and_then(|best| best.quality)
            || best.is_some() && quality == best.as_ref().and_then(|best| best.quality);
        if quality.is_some() && is_better && trainer.steps() >= settings.warm_up {
            best = Some(trainer.trained(quality));
        }
        if on_progress(progress(sums, count, trainer.steps(), quality)).is_break() {
            break;
        }
    }
    best.unwrap_or_else(|| trainer.trained(None))
}

/// [`Trained::quality`].
fn quality(trainer: &Trainer<'_>, examples: &[Example]) -> Option<f64> {
    let mut sum = 0.0;
    for some in examples.chunks(RANKED_TOGETHER) {
        let some: Vec<&Example> = some.iter().collect();
        let batch = Batch::new(&some);
        let scores = trainer.scores(&batch);
        for (query, scores) in scores.iter().enumerate() {
            let is_before = |text: &usize| {
                batch.is_candidate(query, *text) && *text != query && scores[*text] >= scores[query]
            };
            sum += 1.0 / (1 + (0..scores.len()).filter(is_before).count()) as f64;
        }
    }
    (!examples.is_empty()).then(|| sum / examples.len() as f64)
}

fn check(data: Data<'_>, settings: &Settings) {
    assert!(!data.train.is_empty() && data.dim > 0, "something to learn from");
    assert!(data.vectors.iter().all(|x| x.is_finite()), "finite vectors");
    let words = data.vectors.len() / data.dim;
    let exist = |all: &[u32]| all.iter().all(|&word| (word as usize) < words);
    assert!(
        match data.terms {
            Terms::First(count) => count <= words,
            Terms::Words(all) => exist(all),
        },
        "terms that exist"
    );
    let is_margin = matches!(settings.loss, Loss::Margin { .. });
    for one in data.train.iter().chain(data.dev) {
        let irrelevant = one.irrelevant.as_deref().unwrap_or_default();
        assert!([&one.query, &one.relevant, irrelevant].into_iter().all(exist), "words that exist");
        assert!(one.irrelevant.is_some() || !is_margin, "an irrelevant text for a margin");
    }
    let of_loss = match settings.loss {
        Loss::InfoNce { temperature } => {
            assert!(temperature > 0.0, "a temperature above zero");
            temperature
        }
        Loss::Margin { margin } => margin,
    };
    let (StartBias::Value(bias) | StartBias::TermsPerText(bias)) = settings.bias;
    let Settings { flops_queries, flops_texts, learning_rate, bias_learning_rate, .. } = *settings;
    let numbers = [of_loss, bias, flops_queries, flops_texts, learning_rate, bias_learning_rate];
    assert!(
        numbers.iter().chain([&settings.weight_decay]).all(|x| x.is_finite()),
        "finite settings"
    );
}

/// The vectors of these words, `[terms, dim]`.
fn term_vectors<'a>(data: Data<'a>) -> Cow<'a, [f32]> {
    let row = |&word: &u32| &data.vectors[word as usize * data.dim..][..data.dim];
    match data.terms {
        Terms::First(count) => Cow::Borrowed(&data.vectors[..count * data.dim]),
        Terms::Words(words) => words.iter().flat_map(row).copied().collect(),
    }
}

#[cfg(test)]
mod tests;

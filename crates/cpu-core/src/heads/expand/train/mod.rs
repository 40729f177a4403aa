//! Trains expanders ([`gradients`](super::gradients) has their formula) on queries with relevant texts, by AdamW.
//!
//! A token's vector is `x = P · e`: its row `e` of the table under a projection `P`, which starts as the identity; each component is
//! the contract's dot product, rounded to float32. A term has a bias and a vector: its row of the table, or a vector of its own that
//! starts there. A text's weight of a term is `f`, or `ln(1 + f)`. A query's score of a text is `Σ over terms of w_q[v] · w_d[v]`.
//!
//! - `settings`: what an expander learns from, and how;
//! - `batch`: the texts of a step, and their tokens' vectors;
//! - `forward`: the terms that they touch, exactly;
//! - `loss`: InfoNCE or a margin, and the FLOPS regulariser; derivatives by weights;
//! - `step`: derivatives by what is trained, and how that changes (`adam`);
//! - `start`: a bias with which a text touches a given number of terms;
//! - `accelerator`: what computes instead of the host, with the same bits.
//!
//! Every sum has one order, and first stages only skip what cannot matter. So the same data, settings and seed give the same weights
//! on any number of threads.
//!
//! Sources: Formal et al. 2021, "SPLADE"; Paria et al. 2020, "Minimizing FLOPs to learn efficient sparse representations";
//! van den Oord et al. 2018 (InfoNCE); Loshchilov and Hutter 2019 (AdamW).

mod accelerator;
mod adam;
mod batch;
mod forward;
mod loss;
mod settings;
mod start;
mod step;

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::ControlFlow;

use model_store::synth::split_mix;
use rayon::ThreadPool;

use crate::heads::Diverged;
use crate::heads::train::shuffled;
use accelerator::{Accelerated, token_norm};
use batch::Batch;
use step::Trainer;

pub use accelerator::{Accelerate, Accelerator, Declined};
pub use settings::{Data, Example, Loss, Settings, StartBias, Terms};

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
    /// Why the accelerator failed, if it did. The host then went on alone.
    pub accelerator_failure: Option<String>,
}

/// Why nothing was trained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure<E> {
    /// No accelerator can be made.
    Accelerator(E),
    /// The loss or a weight is not finite any more.
    Diverged(Diverged),
}

/// Deciding examples that are ranked together.
const RANKED_TOGETHER: usize = 256;

/// Trains an expander. Calls `on_progress` after each step and each epoch; if it breaks, training ends.
///
/// With deciding examples the best epoch is returned, the later of two equal ones, among those that ended after the warm-up: before,
/// more terms than wanted are touched. If there is none, or no deciding examples, the last step is.
///
/// # Errors
/// If the loss or a weight is not finite any more.
///
/// # Panics
/// If there is nothing to learn from, or an example or the terms name a word that does not exist, or [`Loss::Margin`] lacks an
/// irrelevant text, or a vector or a setting is not a finite number, or the temperature is not above zero.
pub fn train(
    data: Data<'_>,
    settings: &Settings,
    pool: &ThreadPool,
    on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Trained, Diverged> {
    let host = &mut |_: &[f32], _: &[f32], _| Ok::<_, Infallible>(None);
    train_with(data, settings, pool, host, on_progress).map_err(|failure| match failure {
        Failure::Diverged(diverged) => diverged,
    })
}

/// The same with an accelerator. It changes nothing but the time.
///
/// # Errors
/// If none can be made, by `accelerate`; as [`train`].
///
/// # Panics
/// As [`train`].
pub fn train_with<E>(
    data: Data<'_>,
    settings: &Settings,
    pool: &ThreadPool,
    accelerate: Accelerate<'_, E>,
    on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Trained, Failure<E>> {
    settings::check(data, settings);
    let mut trainer = Trainer::new(data, settings, pool);
    let accelerator = accelerate(&trainer.vectors, &trainer.biases, token_norm(data))
        .map_err(Failure::Accelerator)?;
    trainer.accelerated = Accelerated::new(accelerator);
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
            let means = trainer.step(&examples).ok_or(Failure::Diverged(Diverged { epoch }))?;
            sums = sums.map2(means, |sum, own| sum + own);
            count += 1;
            if on_progress(progress(sums, count, trainer.steps(), None)).is_break() {
                break 'epochs;
            }
        }
        let quality = quality(&mut trainer, data.dev);
        let is_better = quality > best.as_ref().and_then(|best| best.quality)
            || best.is_some() && quality == best.as_ref().and_then(|best| best.quality);
        if quality.is_some() && is_better && trainer.steps() >= settings.warm_up {
            best = Some(trainer.trained(quality));
        }
        if on_progress(progress(sums, count, trainer.steps(), quality)).is_break() {
            break;
        }
    }
    let trained = best.unwrap_or_else(|| trainer.trained(None));
    Ok(Trained { accelerator_failure: trainer.accelerated.failure, ..trained })
}

/// [`Trained::quality`].
fn quality(trainer: &mut Trainer<'_>, examples: &[Example]) -> Option<f64> {
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

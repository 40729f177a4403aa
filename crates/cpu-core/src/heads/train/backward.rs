//! Gradients of the loss. Only the position at which a channel had its maximum gets one, and only
//! above zero.

use contract::classifier::{Convolution, Layer, sigmoid, softmax};
use model_store::head::Probabilities;
use rayon::prelude::*;

use super::batch::{Batch, Forward};
use super::{Example, Settings, Trainer, scores};

/// The gradients of a step, in the shapes of what they change.
pub(super) struct Gradients {
    /// The sum of the losses.
    pub(super) loss: f64,
    pub(super) filters: Vec<Convolution>,
    pub(super) dense: Layer,
    /// Of the batch's distinct words, `[words, dim]`.
    pub(super) vectors: Vec<f32>,
}

impl Gradients {
    pub(super) fn new(
        trainer: &Trainer<'_>,
        examples: &[&Example],
        batch: &Batch,
        forward: &Forward,
        masks: &[f32],
    ) -> Self {
        let (dim, width) = (trainer.data.dim, trainer.features());
        let (loss, dense, features) = head(trainer, examples, forward, masks);
        let mut first = 0;
        let filters = trainer
            .filters
            .iter()
            .map(|one| {
                let mut own = Convolution {
                    weights: vec![0.0; one.weights.len()],
                    bias: vec![0.0; one.channels()],
                    ..*one
                };
                let size = one.width * dim;
                // Each thread has some channels, and adds the texts in their order.
                trainer.pool.install(|| {
                    own.weights
                        .par_chunks_mut(size)
                        .zip(own.bias.par_iter_mut())
                        .enumerate()
                        .for_each(|(channel, (weights, bias))| {
                            for (index, text) in batch.texts.iter().enumerate() {
                                let at = index * width + first + channel;
                                let gradient = features[at];
                                if gradient == 0.0 {
                                    continue;
                                }
                                *bias += gradient;
                                for (tap, token) in window(one, forward.positions[at], text) {
                                    let word = batch.words[token as usize] as usize;
                                    let row = &trainer.vectors[word * dim..][..dim];
                                    add(&mut weights[tap * dim..][..dim], row, gradient);
                                }
                            }
                        });
                });
                first += one.channels();
                own
            })
            .collect();
        let mut vectors = Vec::new();
        if trainer.settings.fine_tune {
            vectors = vec![0.0; batch.words.len() * dim];
            // Each text by itself, then all in their order.
            let of_texts: Vec<Vec<f32>> = trainer.pool.install(|| {
                (0..batch.texts.len())
                    .into_par_iter()
                    .map(|index| {
                        let text = &batch.texts[index];
                        let gradients = &features[index * width..][..width];
                        let positions = &forward.positions[index * width..][..width];
                        text_gradient(&trainer.filters, text, gradients, positions, dim)
                    })
                    .collect()
            });
            for (text, own) in batch.texts.iter().zip(&of_texts) {
                for (&token, own) in text.iter().zip(own.chunks_exact(dim)) {
                    add(&mut vectors[token as usize * dim..][..dim], own, 1.0);
                }
            }
        }
        Self { loss, filters, dense, vectors }
    }
}

/// The loss, and the gradients of the dense layer and of the features, `[texts, features]`.
fn head(
    trainer: &Trainer<'_>,
    examples: &[&Example],
    forward: &Forward,
    masks: &[f32],
) -> (f64, Layer, Vec<f32>) {
    let (width, dense) = (trainer.features(), &trainer.dense);
    let settings = trainer.settings;
    let all: f32 = examples.iter().map(|one| text_weight(settings, one)).sum();
    let mut loss = 0.0;
    let mut own =
        Layer { weights: vec![0.0; dense.weights.len()], bias: vec![0.0; dense.bias.len()] };
    let mut features = vec![0.0; examples.len() * width];
    for (index, example) in examples.iter().enumerate() {
        let range = index * width..(index + 1) * width;
        let (of_text, mask) = (&forward.features[range.clone()], &masks[range.clone()]);
        let inputs: Vec<f32> = of_text.iter().zip(mask).map(|(f, mask)| f * mask).collect();
        let scores: Vec<f64> = scores(dense, &inputs).into_iter().map(f64::from).collect();
        let (of_scores, derivatives) = match settings.probabilities {
            Probabilities::Softmax => one_class(settings, &scores, example.classes[0]),
            Probabilities::Sigmoid => any_classes(settings, &scores, &example.classes),
        };
        loss += of_scores;
        let below = &mut features[range];
        for (output, derivative) in derivatives.into_iter().enumerate() {
            let gradient = derivative / all;
            own.bias[output] += gradient;
            add(&mut own.weights[output * width..][..width], &inputs, gradient);
            add(below, &dense.weights[output * width..][..width], gradient);
        }
        for ((gradient, mask), feature) in below.iter_mut().zip(mask).zip(of_text) {
            *gradient = if *feature > 0.0 { *gradient * mask } else { 0.0 };
        }
    }
    (loss, own, features)
}

fn class_weight(settings: &Settings, class: u32) -> f32 {
    settings.class_weights.get(class as usize).copied().unwrap_or(1.0)
}

/// What a text counts for in the mean of a batch.
pub(super) fn text_weight(settings: &Settings, example: &Example) -> f32 {
    match settings.probabilities {
        Probabilities::Softmax => class_weight(settings, example.classes[0]),
        Probabilities::Sigmoid => 1.0,
    }
}

/// The cross-entropy of a softmax, and its derivatives by the class scores.
fn one_class(settings: &Settings, scores: &[f64], class: u32) -> (f64, Vec<f32>) {
    let weight = class_weight(settings, class);
    let probabilities = softmax(scores, 1.0);
    let own = probabilities[class as usize];
    // What is no number stays none.
    let own = if own < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { own };
    let loss = -f64::from(weight) * own.ln();
    let derivative = |(output, probability): (usize, f64)| {
        let target = if output == class as usize { 1.0 } else { 0.0 };
        (probability - target) as f32 * weight
    };
    (loss, probabilities.into_iter().enumerate().map(derivative).collect())
}

/// The sum of the cross-entropies of a sigmoid for each class, and its derivatives by the class
/// scores.
fn any_classes(settings: &Settings, scores: &[f64], classes: &[u32]) -> (f64, Vec<f32>) {
    let mut loss = 0.0;
    let derivative = |(output, &score): (u32, &f64)| {
        let (target, weight) = match classes.contains(&output) {
            true => (1.0, class_weight(settings, output)),
            false => (0.0, 1.0),
        };
        // −ln σ(s) if the text has the class, −ln σ(−s) otherwise.
        let towards = if target == 1.0 { score } else { -score };
        loss += f64::from(weight) * ((-towards.abs()).exp().ln_1p() + (-towards).max(0.0));
        (sigmoid(score, 1.0) - target) as f32 * weight
    };
    let derivatives = (0..).zip(scores).map(derivative).collect();
    (loss, derivatives)
}

/// The taps of a filter at a position that meet tokens, and these.
fn window<'a>(
    filters: &'a Convolution,
    position: u32,
    text: &'a [u32],
) -> impl Iterator<Item = (usize, u32)> + 'a {
    (0..filters.width).filter_map(move |tap| {
        let token = (position as usize + tap).checked_sub(filters.padding)?;
        text.get(token).map(|&token| (tap, token))
    })
}

/// The gradient of each token's vector, `[tokens, dim]`.
fn text_gradient(
    filters: &[Convolution],
    text: &[u32],
    gradients: &[f32],
    positions: &[u32],
    dim: usize,
) -> Vec<f32> {
    let mut own = vec![0.0; text.len() * dim];
    let mut feature = 0;
    for one in filters {
        for channel in 0..one.channels() {
            let (gradient, position) = (gradients[feature], positions[feature] as usize);
            feature += 1;
            if gradient == 0.0 {
                continue;
            }
            for tap in 0..one.width {
                let Some(token) = (position + tap).checked_sub(one.padding) else { continue };
                let Some(to) = own.get_mut(token * dim..(token + 1) * dim) else { continue };
                add(to, &one.weights[(channel * one.width + tap) * dim..][..dim], gradient);
            }
        }
    }
    own
}

fn add(to: &mut [f32], from: &[f32], factor: f32) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

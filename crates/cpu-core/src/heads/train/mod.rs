//! Trains classifiers ([`contract::classifier`]) with one dense layer, by Adam on the
//! cross-entropy, with dropout on the features. A text has one class (softmax), or any number of
//! them (a sigmoid for each).
//!
//! Convolution is linear in the tokens' vectors. So a batch's distinct words are multiplied by all
//! filters once (`project`), and a text's convolutions are sums of what its words gave. The maximum
//! makes gradients sparse: only the position that won gets one (`backward`).
//!
//! Every sum has one order, whatever the number of threads and the instructions, and products are
//! rounded before they are added. So the same data, settings and seed give the same weights
//! everywhere.
//!
//! Sources: Kim 2014, "Convolutional Neural Networks for Sentence Classification"; Kingma and Ba
//! 2015, "Adam".

mod adam;
mod backward;
mod batch;
mod numbers;
mod project;

use std::ops::ControlFlow;

use contract::classifier::{Classifier, Convolution, Layer};
use model_store::head::Probabilities;
use rayon::ThreadPool;

use super::Diverged;
use adam::{Adam, NEVER_MET, NOT_MET};
use backward::Gradients;
use batch::{Batch, Forward};
use numbers::Numbers;
use project::random;

/// A text with its classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Its tokens: indices of words.
    pub words: Vec<u32>,
    /// Its classes, each once: one with [`Probabilities::Softmax`], any number with
    /// [`Probabilities::Sigmoid`].
    pub classes: Vec<u32>,
}

/// What a classifier learns from.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// Texts to learn from.
    pub train: &'a [Example],
    /// Texts that decide when to stop.
    pub dev: &'a [Example],
    /// The words' vectors, `[words, dim]`.
    pub vectors: &'a [f32],
    /// Components of a vector.
    pub dim: usize,
    /// The number of classes.
    pub classes: usize,
}

/// How a classifier is trained. The defaults are Kim's shape, with Adam.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Widths of the filters.
    pub widths: Vec<usize>,
    /// Channels of each width.
    pub channels: usize,
    /// Whether texts have zero vectors at both ends, one fewer than a filter is wide.
    pub padding: bool,
    /// Whether exactly one class is right, or any number of them.
    pub probabilities: Probabilities,
    /// Whether words' vectors are trained, too.
    pub fine_tune: bool,
    /// The part of the features that is left out in each step.
    pub dropout: f32,
    /// Texts in a step.
    pub batch: usize,
    /// The size of steps.
    pub learning_rate: f32,
    /// How much weights are drawn towards zero.
    pub weight_decay: f32,
    /// The most passes over the data.
    pub epochs: usize,
    /// Training stops after this number of epochs without a better result on the deciding texts.
    pub patience: usize,
    /// What each class counts for; all alike if empty. With sigmoids: what a text that has the
    /// class counts for, beside one that does not have it.
    pub class_weights: Vec<f32>,
    /// Decides everything that is random.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            widths: vec![3, 4, 5],
            channels: 100,
            padding: true,
            probabilities: Probabilities::Softmax,
            fine_tune: true,
            dropout: 0.5,
            batch: 50,
            learning_rate: 1e-3,
            weight_decay: 1e-5,
            epochs: 12,
            patience: 4,
            class_weights: Vec::new(),
            seed: 1,
        }
    }
}

/// How far training is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The epoch, from 1.
    pub epoch: usize,
    /// Texts of the epoch that were learned from.
    pub texts: usize,
    /// The mean loss of the epoch so far.
    pub loss: f64,
    /// How good it is on the deciding texts ([`Trained::quality`]), at the end of an epoch.
    pub quality: Option<f64>,
}

/// A trained classifier: that of the epoch with the best result.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// Its weights.
    pub classifier: Classifier,
    /// The words' vectors, `[words, dim]`, if they were trained.
    pub vectors: Option<Vec<f32>>,
    /// How good it is on the deciding texts. Softmax: the share of them whose class is right
    /// (accuracy). Sigmoid: F1 over all texts and classes together (micro-averaged), where a class
    /// is given at a probability of one half.
    pub quality: f64,
    /// The epoch.
    pub epoch: usize,
}

/// The numbers below `count` in an order that the seed decides.
pub fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    Numbers::new(seed).shuffle(&mut order);
    order
}

/// A vector that nothing is known of, for a word with this number: components with the given root
/// of their mean square.
pub fn random_vector(width: f32, dim: usize, seed: u64, word: u32) -> Vec<f32> {
    // Of uniform numbers in [−b, b), the mean square is b² / 3.
    Numbers::new(seed ^ u64::from(word) << 32).within(width * 3f32.sqrt(), dim)
}

/// All weights, and how they change.
struct Trainer<'a> {
    data: Data<'a>,
    settings: &'a Settings,
    pool: &'a ThreadPool,
    filters: Vec<Convolution>,
    dense: Layer,
    vectors: Vec<f32>,
    /// For each word, [`NOT_MET`] if a text to learn from has it, and [`NEVER_MET`] otherwise.
    learned: Vec<u32>,
    adam: Adam,
    numbers: Numbers,
}

/// Trains a classifier. Calls `on_progress` after each batch and each epoch; if it breaks, the best
/// so far is returned; `None` if there is none yet.
///
/// # Errors
/// If the loss or a weight is not finite any more.
///
/// # Panics
/// If there are no texts or classes, or an example has a word or a class that does not exist, or
/// not one class where there must be one.
pub fn train(
    data: Data<'_>,
    settings: &Settings,
    pool: &ThreadPool,
    on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Option<Trained>, Diverged> {
    assert!(!data.train.is_empty() && data.classes > 0 && data.dim > 0, "something to learn from");
    let words = data.vectors.len() / data.dim;
    let is_one = settings.probabilities == Probabilities::Softmax;
    let is_there = |one: &Example| {
        (!is_one || one.classes.len() == 1)
            && one.classes.iter().all(|&class| (class as usize) < data.classes)
            && one.words.iter().all(|&word| (word as usize) < words)
    };
    assert!(data.train.iter().chain(data.dev).all(is_there), "words and classes that exist");
    let mut trainer = Trainer::new(data, settings, pool);
    let mut best: Option<Trained> = None;
    let mut order: Vec<usize> = (0..data.train.len()).collect();
    for epoch in 1..=settings.epochs {
        trainer.numbers.shuffle(&mut order);
        let (mut texts, mut loss) = (0, 0.0);
        for batch in order.chunks(settings.batch.max(1)) {
            let examples: Vec<&Example> = batch.iter().map(|&index| &data.train[index]).collect();
            loss += trainer.step(&examples);
            if !loss.is_finite() {
                return Err(Diverged { epoch });
            }
            texts += examples.len();
            let mean = loss / texts as f64;
            let progress = Progress { epoch, texts, loss: mean, quality: None };
            if on_progress(progress).is_break() {
                return Ok(best);
            }
        }
        if !trainer.is_finite() {
            return Err(Diverged { epoch });
        }
        let quality = trainer.quality();
        // The later of two equal results has seen more.
        if best.as_ref().is_none_or(|best| quality >= best.quality) {
            best = Some(trainer.trained(quality, epoch));
        }
        let loss = loss / texts as f64;
        let progress = Progress { epoch, texts, loss, quality: Some(quality) };
        let is_late = best.as_ref().is_some_and(|best| epoch - best.epoch >= settings.patience);
        if on_progress(progress).is_break() || is_late {
            break;
        }
    }
    Ok(best)
}

impl<'a> Trainer<'a> {
    fn new(data: Data<'a>, settings: &'a Settings, pool: &'a ThreadPool) -> Self {
        let mut numbers = Numbers::new(settings.seed);
        let filters: Vec<Convolution> = settings
            .widths
            .iter()
            .map(|&width| {
                let padding = if settings.padding { width - 1 } else { 0 };
                random(width, padding, settings.channels, data.dim, &mut numbers)
            })
            .collect();
        let features: usize = filters.iter().map(Convolution::channels).sum();
        let bound = 1.0 / (features as f32).sqrt();
        let dense = Layer {
            weights: numbers.within(bound, features * data.classes),
            bias: numbers.within(bound, data.classes),
        };
        let words = if settings.fine_tune { data.vectors.len() } else { 0 };
        let sizes = filters.iter().map(|one| one.weights.len() + one.bias.len()).sum::<usize>()
            + dense.weights.len()
            + dense.bias.len();
        let adam = Adam::new(sizes, words, settings.learning_rate, settings.weight_decay);
        let vectors = data.vectors.to_vec();
        let mut learned = vec![NEVER_MET; vectors.len() / data.dim];
        for &word in data.train.iter().flat_map(|one| &one.words) {
            learned[word as usize] = NOT_MET;
        }
        Self { data, settings, pool, filters, dense, vectors, learned, adam, numbers }
    }

    /// Learns from some texts. Returns the sum of their losses.
    fn step(&mut self, examples: &[&Example]) -> f64 {
        let (features, keep) = (self.features(), 1.0 - self.settings.dropout);
        let masks: Vec<f32> = (0..examples.len() * features)
            .map(|_| if self.numbers.unit() < keep { 1.0 / keep } else { 0.0 })
            .collect();
        let batch = Batch::new(examples.iter().map(|one| &one.words[..]));
        let forward = self.forward(&batch);
        let gradients = Gradients::new(self, examples, &batch, &forward, &masks);
        self.adam.begin();
        let Self { filters, dense, adam, .. } = self;
        let filters = filters.iter_mut().zip(&gradients.filters);
        let filters = filters
            .flat_map(|(one, own)| [(&mut one.weights, &own.weights), (&mut one.bias, &own.bias)]);
        let Layer { weights, bias } = &gradients.dense;
        let dense = [(&mut dense.weights, weights), (&mut dense.bias, bias)];
        let mut at = 0;
        for (weights, gradient) in filters.chain(dense) {
            adam.update(at, weights, gradient);
            at += weights.len();
        }
        if self.settings.fine_tune {
            let dim = self.data.dim;
            let mut met = self.learned.clone();
            for (index, &word) in batch.words.iter().enumerate() {
                met[word as usize] = index as u32;
            }
            adam.update_rows(&mut self.vectors, dim, &met, &gradients.vectors, self.pool);
        }
        gradients.loss
    }

    fn is_finite(&self) -> bool {
        let filters = self.filters.iter().flat_map(|one| [&one.weights, &one.bias]);
        let mut all = filters.chain([&self.dense.weights, &self.dense.bias, &self.vectors]);
        all.all(|weights| weights.iter().all(|weight| weight.is_finite()))
    }

    fn features(&self) -> usize {
        self.filters.iter().map(Convolution::channels).sum()
    }

    fn forward(&self, batch: &Batch) -> Forward {
        Forward::new(batch, &self.filters, &self.vectors, self.data.dim, self.pool)
    }

    /// [`Trained::quality`].
    fn quality(&self) -> f64 {
        const TOGETHER: usize = 256;
        let mut counts = Counts::default();
        for examples in self.data.dev.chunks(TOGETHER) {
            let batch = Batch::new(examples.iter().map(|one| &one.words[..]));
            let forward = self.forward(&batch);
            for (example, features) in
                examples.iter().zip(forward.features.chunks_exact(self.features()))
            {
                let scores = scores(&self.dense, features);
                let given: Vec<u32> = match self.settings.probabilities {
                    Probabilities::Softmax => vec![largest(&scores)],
                    // Above zero, the sigmoid is above one half.
                    Probabilities::Sigmoid => (0..scores.len() as u32)
                        .filter(|&class| scores[class as usize] > 0.0)
                        .collect(),
                };
                counts.add(&given, &example.classes);
            }
        }
        // With one class of each, this is the share of right ones.
        counts.f1()
    }

    fn trained(&self, quality: f64, epoch: usize) -> Trained {
        let classifier =
            Classifier::new(self.data.dim, self.filters.clone(), vec![self.dense.clone()])
                .expect("shapes that fit, and finite weights");
        let vectors = self.settings.fine_tune.then(|| self.vectors.clone());
        Trained { classifier, vectors, quality, epoch }
    }
}

/// Classes that were given, and classes that texts have.
#[derive(Default)]
struct Counts {
    given: usize,
    had: usize,
    both: usize,
}

impl Counts {
    fn add(&mut self, given: &[u32], had: &[u32]) {
        self.given += given.len();
        self.had += had.len();
        self.both += given.iter().filter(|class| had.contains(class)).count();
    }

    /// The harmonic mean of precision and recall; 1 if there was nothing to give and nothing was
    /// given.
    fn f1(&self) -> f64 {
        match self.given + self.had {
            0 => 1.0,
            sum => 2.0 * self.both as f64 / sum as f64,
        }
    }
}

/// The first of the largest.
fn largest(scores: &[f32]) -> u32 {
    let mut best = 0;
    for (class, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = class;
        }
    }
    best as u32
}

/// The outputs of a dense layer.
fn scores(dense: &Layer, inputs: &[f32]) -> Vec<f32> {
    let rows = dense.weights.chunks_exact(inputs.len()).zip(&dense.bias);
    rows.map(|(weights, bias)| {
        bias + weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum::<f32>()
    })
    .collect()
}

#[cfg(test)]
mod tests;

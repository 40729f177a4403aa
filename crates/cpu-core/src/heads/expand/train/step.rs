//! A step: the gradients of what is trained, and how that changes.

use std::borrow::Cow;

use contract::Table;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::accelerator::Accelerated;
use super::adam::{Change, Moments};
use super::batch::{Batch, project};
use super::forward::Forward;
use super::loss::{Weights, derivatives};
use super::{Data, Example, Means, Settings, StartBias, Trained, start, term_vectors};
use crate::InstructionSet;
use crate::heads::expand::gradients::kernel::{Columns, Item, Sums};
use crate::heads::expand::gradients::{
    Entry, Rows, TermGradients, TextVectors, Touched, bias_gradients, term_gradients,
    token_gradients,
};

/// All weights, and how they change.
pub(super) struct Trainer<'a> {
    data: Data<'a>,
    settings: &'a Settings,
    pool: &'a ThreadPool,
    /// `[terms]`
    pub(super) biases: Vec<f32>,
    /// `[dim, dim]`
    pub(super) projection: Option<Vec<f32>>,
    /// `[terms, dim]`: borrowed from the data as long as they may.
    pub(super) vectors: Cow<'a, [f32]>,
    /// All biases at the start.
    start_bias: f32,
    /// The terms' vectors at the start, if they are trained.
    start_vectors: Cow<'a, [f32]>,
    /// Zeros for a table that has no use for norms.
    norms: Vec<f64>,
    of_biases: Moments,
    of_projection: Moments,
    of_vectors: Moments,
    steps: usize,
    pub(super) accelerated: Accelerated,
}

/// The gradients of a step, in the shapes of what they change.
pub(super) struct Gradients {
    pub(super) means: Means,
    pub(super) biases: Vec<f32>,
    pub(super) projection: Option<Vec<f32>>,
    pub(super) vectors: Option<TermGradients>,
}

/// What a batch gave.
struct Found {
    /// Where each text's words end, and the words' vectors after the projection, one text after the other.
    words_end: Vec<usize>,
    expanded: Vec<f32>,
    /// Whether the accelerator has these texts.
    is_accelerated: bool,
    /// The words' vectors before the projection, `[words, dim]`.
    rows: Vec<f32>,
    touched: Vec<Touched>,
    ends: Vec<usize>,
    weights: Vec<f64>,
}

impl<'a> Trainer<'a> {
    pub(super) fn new(data: Data<'a>, settings: &'a Settings, pool: &'a ThreadPool) -> Self {
        let (dim, vectors) = (data.dim, term_vectors(data));
        let terms = vectors.len() / dim;
        let start_bias = match settings.bias {
            StartBias::Value(bias) => bias,
            StartBias::TermsPerText(wanted) => start::bias(data, &vectors, wanted, pool),
        };
        let identity = || (0..dim * dim).map(|i| if i / dim == i % dim { 1.0 } else { 0.0 });
        let projection: Option<Vec<f32>> = settings.projection.then(|| identity().collect());
        let own = if settings.own_vectors { vectors.len() } else { 0 };
        Self {
            data,
            settings,
            pool,
            biases: vec![start_bias; terms],
            start_bias,
            start_vectors: if settings.own_vectors { vectors.clone() } else { Cow::default() },
            norms: vec![0.0; terms],
            of_biases: Moments::new(terms),
            of_projection: Moments::new(projection.as_ref().map_or(0, Vec::len)),
            of_vectors: Moments::new(own),
            projection,
            vectors,
            steps: 0,
            accelerated: Accelerated::default(),
        }
    }

    /// Steps so far.
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// Whether biases, projection and the vectors of these terms are finite.
    fn are_finite(&self, terms: &[u32]) -> bool {
        let (dim, projection) = (self.data.dim, self.projection.as_deref().unwrap_or_default());
        let rows = terms.iter().flat_map(|&term| &self.vectors[term as usize * dim..][..dim]);
        self.biases.iter().chain(projection).chain(rows).all(|weight| weight.is_finite())
    }

    pub(super) fn trained(&self, quality: Option<f64>) -> Trained {
        Trained {
            biases: self.biases.clone(),
            projection: self.projection.clone(),
            vectors: self.settings.own_vectors.then(|| self.vectors.to_vec()),
            steps: self.steps,
            quality,
            accelerator_failure: None,
        }
    }

    /// Learns from some examples. `None` if the loss, or a weight that has changed, is not finite
    /// any more.
    pub(super) fn step(&mut self, examples: &[&Example]) -> Option<Means> {
        self.steps += 1;
        let gradients = self.gradients(&Batch::new(examples), self.flops_factors());
        let Self { settings, steps, start_bias, .. } = *self;
        let change = |learning_rate| Change::new(steps, learning_rate, settings.weight_decay);
        let of_biases = change(settings.bias_learning_rate);
        let start = |_| start_bias;
        let before = if self.accelerated.is_there() { self.biases.clone() } else { Vec::new() };
        of_biases.apply(&mut self.biases, &mut self.of_biases, &gradients.biases, start);
        let (change, dim) = (change(settings.learning_rate), self.data.dim);
        if let (Some(projection), Some(gradient)) = (&mut self.projection, &gradients.projection) {
            let identity = |i| if i / dim == i % dim { 1.0 } else { 0.0 };
            change.apply(projection, &mut self.of_projection, gradient, identity);
        }
        let mut with_vectors: &[u32] = &[];
        if let Some(TermGradients { terms: Some(terms), vectors, .. }) = &gradients.vectors {
            change.apply_rows(
                self.vectors.to_mut(),
                &mut self.of_vectors,
                (terms, vectors),
                &self.start_vectors,
                dim,
                self.pool,
            );
            with_vectors = terms;
        }
        if !(gradients.means.loss.is_finite() && self.are_finite(with_vectors)) {
            return None;
        }
        self.accelerated.replace(&before, &self.biases, with_vectors, &self.vectors, dim);
        Some(gradients.means)
    }

    /// The regulariser's factors at this step.
    fn flops_factors(&self) -> [f64; 2] {
        let Settings { flops_queries, flops_texts, warm_up, .. } = *self.settings;
        let part = match warm_up {
            0 => 1.0,
            warm_up => (self.steps as f64 / warm_up as f64).min(1.0).powi(2),
        };
        [flops_queries, flops_texts].map(|factor| f64::from(factor) * part)
    }

    fn found(&mut self, batch: &Batch<'_>) -> Found {
        let dim = self.data.dim;
        let rows = batch.rows(self.data.vectors, dim);
        let words = project(rows.clone(), self.projection.as_deref(), dim, self.pool);
        let (terms, biases) = (&self.vectors[..], &self.biases[..]);
        let (expanded, words_end) = (batch.expanded(&words, dim), batch.ends());
        let found = self.accelerated.ask(|accelerator| accelerator.touched(&expanded, &words_end));
        let is_accelerated = found.is_some();
        let (touched, ends) = match found {
            Some(touched) => {
                let end = |text| touched.partition_point(|one| (one.text as usize) <= text);
                let ends = (0..words_end.len()).map(end).collect();
                (touched, ends)
            }
            None => {
                let forward = Forward { words: &words, texts: &batch.texts, terms, biases, dim };
                forward.touched(self.pool)
            }
        };
        let weight = |one: &Touched| match self.settings.log1p {
            true => one.value.ln_1p(),
            false => one.value,
        };
        let weights = touched.iter().map(weight).collect();
        Found { words_end, expanded, is_accelerated, rows, touched, ends, weights }
    }

    fn weights<'b>(&self, batch: &Batch<'_>, found: &'b Found) -> Weights<'b> {
        let Found { touched, ends, weights, .. } = found;
        Weights { touched, ends, weights, terms: self.biases.len(), queries: batch.queries }
    }

    /// The scores of all texts of a batch for each query.
    pub(super) fn scores(&mut self, batch: &Batch<'_>) -> Vec<Vec<f64>> {
        let found = self.found(batch);
        self.weights(batch, &found).scores(self.pool)
    }

    /// The gradients of the loss and of the FLOPS by these factors.
    pub(super) fn gradients(&mut self, batch: &Batch<'_>, flops: [f64; 2]) -> Gradients {
        let (dim, terms, pool) = (self.data.dim, self.biases.len(), self.pool);
        let found = self.found(batch);
        let weights = self.weights(batch, &found);
        let (means, by_weights) = derivatives(batch, &weights, self.settings.loss, flops, pool);
        let entry = |(one, derivative): (&Touched, f64)| {
            // The derivative of ln(1 + f) is 1 / (1 + f).
            let slope = if self.settings.log1p { 1.0 / (1.0 + one.value) } else { 1.0 };
            one.with((derivative * slope) as f32)
        };
        let entries: Vec<Entry> = found.touched.iter().zip(by_weights).map(entry).collect();
        let texts = TextVectors::new(&found.expanded, dim, &found.words_end);
        let own_vectors = self.settings.own_vectors;
        let accelerated = (found.is_accelerated && (own_vectors || self.projection.is_some()))
            .then(|| self.accelerated.ask(|by| by.gradients(&entries, own_vectors)))
            .flatten();
        let (of_terms, of_tokens) = accelerated.map(|all| (all.terms, all.tokens)).unzip();
        let vectors = own_vectors.then(|| {
            of_terms.unwrap_or_else(|| term_gradients(texts, terms, &entries, Rows::Touched, pool))
        });
        let projection = self.projection.is_some().then(|| {
            let of_tokens = of_tokens.unwrap_or_else(|| {
                let table = Table::new(&self.vectors, &self.norms, dim);
                token_gradients(texts, &table.under_dot(Some(&self.biases)), &entries, pool)
            });
            self.projection_gradient(batch, &found.rows, &of_tokens)
        });
        Gradients { means, biases: bias_gradients(terms, &entries), projection, vectors }
    }

    /// `dP = Σ over words of dx · eᵀ`, from the gradients of the texts' words.
    fn projection_gradient(&self, batch: &Batch<'_>, rows: &[f32], of_tokens: &[f32]) -> Vec<f32> {
        let dim = self.data.dim;
        let mut of_words = vec![0.0f64; rows.len()];
        for (&word, own) in batch.texts.iter().flatten().zip(of_tokens.chunks_exact(dim)) {
            let sums = &mut of_words[word as usize * dim..][..dim];
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += f64::from(*own));
        }
        let instructions = InstructionSet::best();
        let mut gradient = vec![0.0; dim * dim];
        self.pool.install(|| {
            gradient.par_chunks_mut(dim).enumerate().for_each(|(component, gradient)| {
                let factor = |words: &[f64]| words[component] as f32;
                let item = |(from, factor)| Item { to: 0, from, factor };
                let items: Vec<Item> =
                    (0..).zip(of_words.chunks_exact(dim).map(factor)).map(item).collect();
                let mut sums = vec![0.0; dim];
                let to = Sums { sums: &mut sums, width: dim, first: 0 };
                instructions.add_rows(to, Columns { rows, dim, first: 0 }, &items);
                gradient.iter_mut().zip(sums).for_each(|(to, sum)| *to = sum as f32);
            });
        });
        gradient
    }
}

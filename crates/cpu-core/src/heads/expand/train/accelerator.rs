//! What computes parts of a step instead of the host: a GPU that has the terms. Its results have the host's bits, so what is learnt
//! does not depend on it.

use contract::score;

use super::Data;
use crate::heads::expand::gradients::{Entry, Gradients, Touched};

/// Terms on an accelerator. Whenever it declines, the host computes.
pub trait Accelerator {
    /// The terms that each text touches, ordered by text, then by term. `vectors` are those of the texts' tokens, `[tokens, dim]`; each
    /// text `ends` at a token.
    ///
    /// # Errors
    /// If it declines.
    fn touched(&mut self, vectors: &[f32], ends: &[usize]) -> Result<Vec<Touched>, Declined>;

    /// The gradients of the texts of the last [`touched`](Self::touched); those of terms only if `of_terms`, for the touched ones.
    ///
    /// # Errors
    /// If it declines.
    fn gradients(&mut self, entries: &[Entry], of_terms: bool) -> Result<Gradients, Declined>;

    /// Gives some terms these biases, and the first of them these vectors, `[some, dim]`.
    ///
    /// # Errors
    /// If it declines; then it is not asked again.
    fn replace(&mut self, terms: &[u32], biases: &[f32], vectors: &[f32]) -> Result<(), Declined>;
}

/// Why an accelerator did not compute something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declined {
    /// It is too much at once.
    TooMany,
    /// It failed. It is not asked again.
    Failed(String),
}

/// Makes an accelerator of terms' vectors `[terms, dim]` and biases `[terms]`, for tokens whose norm is about the number; or none.
pub type Accelerate<'a, E> =
    &'a mut dyn FnMut(&[f32], &[f32], f64) -> Result<Option<Box<dyn Accelerator>>, E>;

/// The accelerator, as long as it does not fail.
#[derive(Default)]
pub(super) struct Accelerated {
    accelerator: Option<Box<dyn Accelerator>>,
    pub(super) failure: Option<String>,
}

impl Accelerated {
    pub(super) fn new(accelerator: Option<Box<dyn Accelerator>>) -> Self {
        Self { accelerator, failure: None }
    }

    pub(super) fn is_there(&self) -> bool {
        self.accelerator.is_some()
    }

    /// What it computes; `None` if it is not there or declines.
    pub(super) fn ask<T>(
        &mut self,
        what: impl FnOnce(&mut dyn Accelerator) -> Result<T, Declined>,
    ) -> Option<T> {
        match what(self.accelerator.as_deref_mut()?) {
            Ok(computed) => Some(computed),
            Err(Declined::TooMany) => None,
            Err(Declined::Failed(reason)) => {
                self.accelerator = None;
                self.failure = Some(reason);
                None
            }
        }
    }

    /// As [`Accelerator::replace`], for terms whose biases were `before`, and those that have new vectors.
    pub(super) fn replace(
        &mut self,
        before: &[f32],
        biases: &[f32],
        with_vectors: &[u32],
        vectors: &[f32],
        dim: usize,
    ) {
        if !self.is_there() {
            return;
        }
        let mut has_vector = vec![false; biases.len()];
        with_vectors.iter().for_each(|&term| has_vector[term as usize] = true);
        let has_bias = |&term: &u32| {
            let term = term as usize;
            !has_vector[term] && before[term].to_bits() != biases[term].to_bits()
        };
        let terms: Vec<u32> =
            with_vectors.iter().copied().chain((0..biases.len() as u32).filter(has_bias)).collect();
        let own: Vec<f32> = terms.iter().map(|&term| biases[term as usize]).collect();
        let row = |&term: &u32| &vectors[term as usize * dim..][..dim];
        let rows: Vec<f32> = with_vectors.iter().flat_map(row).copied().collect();
        // One that declines has other terms than the host from now on.
        self.ask(|accelerator| {
            accelerator.replace(&terms, &own, &rows).map_err(|declined| match declined {
                Declined::TooMany => Declined::Failed("too many terms have changed".to_owned()),
                failed => failed,
            })
        });
    }
}

/// The mean norm of the tokens of some texts.
pub(super) fn token_norm(data: Data<'_>) -> f64 {
    const EXAMPLES: usize = 64;
    let some = || data.train.iter().take(EXAMPLES).flat_map(|example| &example.relevant);
    let norm = |&word: &u32| score::norm(&data.vectors[word as usize * data.dim..][..data.dim]);
    some().map(norm).sum::<f64>() / some().count().max(1) as f64
}

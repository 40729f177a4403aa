//! Random terms of an expander and random vectors, the same in every run, for the benches `expand` of both engines.

use std::sync::Arc;

use contract::{HasTable, Table, TermExpander, score};
use model_store::synth::split_mix;
use rayon::prelude::*;

#[derive(Debug)]
pub(crate) struct Terms {
    components: Vec<f32>,
    norms: Vec<f64>,
    biases: Vec<f32>,
    dim: usize,
}

impl Terms {
    /// Rows of norm 1, about: scores of tokens have unit variance. All have the same bias.
    pub(crate) fn new(terms: usize, dim: usize, bias: f32) -> Self {
        let components = normal(1, terms * dim, (dim as f32).sqrt().recip());
        let norms = components.par_chunks_exact(dim).map(score::norm).collect();
        Self { components, norms, biases: vec![bias; terms], dim }
    }
}

impl HasTable for Terms {
    fn table(&self) -> Table<'_> {
        Table::new(&self.components, &self.norms, self.dim).under_dot(Some(&self.biases))
    }
}

#[derive(Debug)]
pub(crate) struct Plain(pub(crate) Arc<dyn HasTable>);

impl TermExpander for Plain {
    fn terms(&self) -> &Arc<dyn HasTable> {
        &self.0
    }

    fn projection(&self) -> Option<&[f32]> {
        None
    }
}

/// Normally distributed numbers (Box and Muller 1958).
pub(crate) fn normal(seed: u64, count: usize, deviation: f32) -> Vec<f32> {
    let one = |index: usize| {
        let uniform = |part: u64| {
            (split_mix(seed << 40 | (2 * index as u64 + part)) >> 11) as f64 / (1u64 << 53) as f64
        };
        let (radius, angle) = ((-2.0 * (1.0 - uniform(0)).ln()).sqrt(), uniform(1));
        (radius * (std::f64::consts::TAU * angle).cos()) as f32 * deviation
    };
    (0..count).into_par_iter().map(one).collect()
}

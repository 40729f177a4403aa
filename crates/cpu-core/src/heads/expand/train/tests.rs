//! Tests of training, by what they need: plain loops, finite differences, or a task whose answer is planted.

mod accelerator;
mod forward;
mod gradients;
mod learning;

use contract::Table;
use model_store::synth::split_mix;

use super::*;
use crate::heads::expand::gradients::{TextVectors, Touched, touched};

fn pool(threads: usize) -> ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Random numbers in [−1, 1).
fn random(count: usize, seed: u64) -> Vec<f32> {
    let number = |i: u64| (split_mix(seed << 32 | i) >> 40) as f32 / (1u32 << 23) as f32 - 1.0;
    (0..count as u64).map(number).collect()
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// What texts of words touch, by the plain loops.
fn plain(
    words: &[f32],
    texts: &[Vec<u32>],
    terms: &[f32],
    biases: &[f32],
    dim: usize,
) -> Vec<Touched> {
    let row = |&word: &u32| &words[word as usize * dim..][..dim];
    let expanded: Vec<f32> = texts.iter().flatten().flat_map(row).copied().collect();
    let ends: Vec<usize> = (1..=texts.len()).map(|to| texts[..to].concat().len()).collect();
    let norms = vec![0.0; biases.len()];
    let table = Table::new(terms, &norms, dim).under_dot(Some(biases));
    touched(TextVectors::new(&expanded, dim, &ends), &table)
}

//! The texts of a step: their distinct words, and the features.

use std::collections::HashMap;

use contract::classifier::Convolution;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::project::project;

/// Some texts.
pub(super) struct Batch {
    /// The distinct words, in the order of their first occurrence.
    pub(super) words: Vec<u32>,
    /// For each text, its tokens as indices of these.
    pub(super) texts: Vec<Vec<u32>>,
}

impl Batch {
    pub(super) fn new<'a>(texts: impl Iterator<Item = &'a [u32]>) -> Self {
        let (mut words, mut known) = (Vec::new(), HashMap::new());
        let texts = texts
            .map(|text| {
                let token = |&word: &u32| {
                    *known.entry(word).or_insert_with(|| {
                        words.push(word);
                        words.len() as u32 - 1
                    })
                };
                text.iter().map(token).collect()
            })
            .collect();
        Self { words, texts }
    }
}

/// What the texts gave.
pub(super) struct Forward {
    /// `[texts, features]`, after the ReLU.
    pub(super) features: Vec<f32>,
    /// The positions of the maxima, `[texts, features]`: the lowest of several.
    pub(super) positions: Vec<u32>,
}

impl Forward {
    pub(super) fn new(
        batch: &Batch,
        filters: &[Convolution],
        vectors: &[f32],
        dim: usize,
        pool: &ThreadPool,
    ) -> Self {
        let (products, stride) = project(&batch.words, vectors, dim, filters, pool);
        let width: usize = filters.iter().map(Convolution::channels).sum();
        let mut features = vec![0.0; batch.texts.len() * width];
        let mut positions = vec![0; batch.texts.len() * width];
        pool.install(|| {
            features
                .par_chunks_mut(width)
                .zip(positions.par_chunks_mut(width))
                .zip(&batch.texts)
                .for_each(|((features, positions), text)| {
                    let (mut feature, mut column) = (0, 0);
                    for one in filters {
                        let end = feature + one.channels();
                        let of_columns = |token: u32, tap: usize| {
                            let from = token as usize * stride + column + tap * one.channels();
                            &products[from..from + one.channels()]
                        };
                        maxima(
                            one,
                            text,
                            of_columns,
                            &mut features[feature..end],
                            &mut positions[feature..end],
                        );
                        (feature, column) = (end, column + one.width * one.channels());
                    }
                });
        });
        Self { features, positions }
    }
}

fn maxima<'a>(
    filters: &Convolution,
    text: &[u32],
    of_columns: impl Fn(u32, usize) -> &'a [f32],
    features: &mut [f32],
    positions: &mut [u32],
) {
    let mut values = vec![0.0; filters.channels()];
    features.fill(f32::NEG_INFINITY);
    for position in 0..filters.positions(text.len()) {
        values.copy_from_slice(&filters.bias);
        for tap in 0..filters.width {
            let token = (position + tap).checked_sub(filters.padding);
            if let Some(&token) = token.and_then(|token| text.get(token)) {
                for (value, product) in values.iter_mut().zip(of_columns(token, tap)) {
                    *value += product;
                }
            }
        }
        for ((feature, best), &value) in features.iter_mut().zip(&mut *positions).zip(&values) {
            let is_more = value > *feature;
            *feature = if is_more { value } else { *feature };
            *best = if is_more { position as u32 } else { *best };
        }
    }
    features.iter_mut().for_each(|feature| *feature = feature.max(0.0));
}

//! Random models and heads, the same in every run, for the benches `classify` of both engines.

use std::sync::Arc;

use contract::classifier::{Classifier, Convolution};
use contract::{Row, Token, TokenClassifier, VectorSource};
use model_store::ModelStore;
use rayon::prelude::*;

/// A head whose tokens are the rows of a model.
#[derive(Debug)]
pub(crate) struct Random {
    pub(crate) classifier: Classifier,
    pub(crate) rows: usize,
    pub(crate) longest: usize,
}

impl TokenClassifier for Random {
    fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    fn tokens(&self) -> usize {
        self.rows
    }

    fn longest_text(&self) -> usize {
        self.longest
    }

    fn source(&self, token: Token) -> VectorSource<'_> {
        VectorSource::Row { row: Row(token.0), scale: 1.0 }
    }
}

/// Numbers in [-size, size).
pub(crate) fn values(seed: usize, count: usize, size: f32) -> Vec<f32> {
    let one = |index: usize| {
        let mut x = (index as u64 ^ (seed as u64) << 40).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * size
    };
    (0..count).into_par_iter().map(one).collect()
}

pub(crate) fn model(rows: usize, dim: usize) -> Arc<ModelStore> {
    let components = values(7, rows * dim, 0.6);
    let words: Vec<String> = (0..rows).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(String::as_str).zip(components.chunks_exact(dim));
    Arc::new(ModelStore::from_rows("bench", dim, rows).expect("rows that fit"))
}

/// A convolution without padding, whose weights are in [-size, size).
pub(crate) fn convolution(width: usize, channels: usize, dim: usize, size: f32) -> Convolution {
    Convolution {
        width,
        padding: 0,
        weights: values(width, channels * width * dim, size),
        bias: values(100 + width, channels, 0.1),
    }
}

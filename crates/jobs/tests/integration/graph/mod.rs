//! The graph of nearest neighbours: what it holds, and what stops and tears it.

mod content;
mod engines;
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
mod resume;

use std::ops::ControlFlow;
use std::path::Path;

use cpu_core::ReferenceEngine;
use jobs::JobError;
use jobs::graph::{self, GraphOptions, GraphProgress, GraphSummary};
use kindred::{Kindred, Model, ModelStore, Settings};

/// Goes on until the end.
fn on(_: GraphProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The plain engine for a model.
fn plain(model: Model) -> Kindred {
    Kindred::with_engine(model, Settings::default(), |model| {
        Ok(Box::new(ReferenceEngine::new(model.clone())))
    })
    .unwrap()
}

/// A model under the metric `dot`, or cosine.
fn model(rows: &[Vec<f32>], biases: Option<&[f32]>) -> Model {
    let words: Vec<String> = (0..rows.len()).map(|row| format!("word{row}")).collect();
    let named: Vec<(&str, &[f32])> =
        words.iter().zip(rows).map(|(word, row)| (&word[..], &row[..])).collect();
    match biases {
        None => Model::from_rows("tiny", &named).unwrap(),
        Some(biases) => {
            let dim = rows[0].len();
            let store = ModelStore::from_rows_under_dot("tiny", dim, named, Some(biases));
            store.unwrap().into()
        }
    }
}

/// Rows with few values, so that many scores are equal and some rows are zero; the same for the
/// same seed.
fn few_values(rows: usize, dim: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        [0.0, 1.0, -1.0, 0.5, 0.0][(state >> 33) as usize % 5]
    };
    (0..rows).map(|_| (0..dim).map(|_| next()).collect()).collect()
}

fn make(kindred: &Kindred, file: &Path, options: &GraphOptions) -> Result<GraphSummary, JobError> {
    graph::make(kindred, file, options, on)
}

//! An expander that nothing was learnt for: the words near those of a text.
//!
//! The value of a term `w` for a token `x` is `x · w − |w|² / 2 − reach`, which is
//! `(|x|² − |x − w|²) / 2 − reach`: it grows as the distance of the two vectors falls. Without
//! `|w|²`, long vectors would be terms of everything.

use std::sync::Arc;

use contract::{Query, QueryVector, Row, SearchEngine};
use cpu_core::FullScanEngine;
use model_store::ModelStore;
use model_store::head::{Expander, ExpanderDescription, ExpanderWeights, HeadError, Tokens};

/// Words that the reach is chosen by, evenly spaced among the most frequent ones.
const SAMPLE: usize = 64;
const MOST_FREQUENT: usize = 20_000;

/// The description and the weights of a plain expander. Vectors of huge numbers give weights that
/// are not finite, which no expander may have.
pub fn plain_expander(
    model: &ModelStore,
    tokens: Tokens,
    reach: f64,
) -> (ExpanderDescription, ExpanderWeights) {
    let table = model.table();
    let bias = |&norm: &f64| (-norm * norm / 2.0 - reach) as f32;
    let biases: Vec<f32> = table.norms().iter().map(bias).collect();
    let description = ExpanderDescription {
        training: serde_json::Map::from_iter([("reach".to_owned(), reach.into())]),
        ..ExpanderDescription::of_model(model, tokens)
    };
    let weights = ExpanderWeights { biases: Some(biases), ..ExpanderWeights::default() };
    (description, weights)
}

/// The reach with which half of the frequent words have `terms` terms or more.
///
/// # Errors
/// If the weights are not finite, or the system refuses to start the threads.
pub fn reach_of(
    model: &Arc<ModelStore>,
    tokens: Tokens,
    terms: usize,
    threads: usize,
) -> Result<f64, ReachError> {
    let (description, weights) = plain_expander(model, tokens, 0.0);
    let expander = Expander::from_memory(description, weights, model)?;
    let frequent = model.rows().min(MOST_FREQUENT);
    let step = frequent.div_ceil(SAMPLE);
    let owner = contract::TermExpander::terms(&expander).clone();
    let table = owner.table();
    let query = |row: usize| {
        Query::new(&table, QueryVector::Row(Row(row as u32)), terms, contract::Filter::default())
    };
    let queries: Vec<Query> =
        (0..frequent).step_by(step).filter_map(|row| query(row).ok()).collect();
    let mut engine = FullScanEngine::new(owner.clone(), threads)?;
    let batch: Vec<&Query> = queries.iter().collect();
    let found = engine.search(&batch).map_err(ReachError::Engine)?;
    let mut last: Vec<f64> =
        found.iter().filter_map(|hits| hits.last()).map(|hit| hit.score).collect();
    last.sort_unstable_by(f64::total_cmp);
    Ok(last[last.len() / 2])
}

/// Why there is no reach.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// The expander can't be made.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The threads can't be started.
    #[error(transparent)]
    Threads(#[from] cpu_core::StartError),
    /// The engine failed.
    #[error("the words near a sample can't be searched: {0}")]
    Engine(contract::EngineError),
}

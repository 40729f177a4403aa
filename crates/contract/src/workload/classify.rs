//! Classifying texts as a workload. A pass of tokens that the engine has met is short; new ones
//! take slices.

use super::{PassError, Slice, Workload, retain};
use crate::{Engine, TokenText};

/// Tokens that take about as long as a plain query.
const TOKENS_PER_SLOT: usize = 256;

/// A text takes as long as these tokens, however short it is: its dense layers, and its way through
/// the pass.
const TOKENS_PER_TEXT: usize = 4;

/// Texts for classifiers. Costs are counted in tokens.
#[derive(Debug, Clone, Copy, Default)]
pub struct Classify;

impl Workload for Classify {
    type Device = dyn Engine;
    type Request = TokenText;
    /// The class scores.
    type Response = Vec<f64>;
    type Gathered = ();
    /// The class scores of the first texts.
    type Pass = Vec<Vec<f64>>;

    fn name(&self) -> &'static str {
        "a classification"
    }

    fn slots(&self, text: &TokenText) -> usize {
        1 + text.tokens().len() / TOKENS_PER_SLOT
    }

    fn cost(&self, engine: &Self::Device, text: &TokenText) -> usize {
        engine.classification_cost(text) + TOKENS_PER_TEXT
    }

    fn room(&self, engine: &Self::Device, waiting: usize) -> usize {
        engine.tokens_per_pass().min(waiting).max(1)
    }

    fn run(
        &self,
        engine: &mut Self::Device,
        texts: &[&TokenText],
        done: &mut Vec<Vec<f64>>,
        slice: Slice<'_>,
    ) -> Result<Option<Vec<Vec<f64>>>, PassError> {
        (slice.meanwhile)();
        done.extend(engine.classify_part(&texts[done.len()..], slice.go_on)?);
        Ok((done.len() == texts.len()).then(|| std::mem::take(done)))
    }

    fn retain(&self, done: &mut Vec<Vec<f64>>, stays: &mut dyn FnMut(usize) -> bool) {
        retain(done, stays);
    }

    fn start(
        &self,
        engine: &mut Self::Device,
        texts: &[&TokenText],
        _: bool,
    ) -> Result<bool, PassError> {
        Ok(engine.start_classify(texts)?)
    }

    fn finish(
        &self,
        engine: &mut Self::Device,
        texts: &[&TokenText],
    ) -> Result<Vec<Vec<f64>>, PassError> {
        Ok(engine.finish_classify(texts)?)
    }
}

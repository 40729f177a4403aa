//! Classifying texts as a workload: one pass computes the class scores of its texts, in one slice.

use super::{PassError, Slice, Workload};
use crate::{Engine, TokenText};

/// Tokens that take about as long as a plain query.
const TOKENS_PER_SLOT: usize = 256;

/// A text takes as long as these tokens, however short it is: its dense layers, and its way through the pass.
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
    type Pass = ();

    fn name(&self) -> &'static str {
        "a classification"
    }

    fn slots(&self, text: &TokenText) -> usize {
        1 + text.tokens().len() / TOKENS_PER_SLOT
    }

    fn cost(&self, _: &Self::Device, text: &TokenText) -> usize {
        text.tokens().len() + TOKENS_PER_TEXT
    }

    fn room(&self, engine: &Self::Device, waiting: usize) -> usize {
        engine.tokens_per_pass().min(waiting).max(1)
    }

    fn run(
        &self,
        engine: &mut Self::Device,
        texts: &[&TokenText],
        (): &mut (),
        slice: Slice<'_>,
    ) -> Result<Option<Vec<Vec<f64>>>, PassError> {
        (slice.meanwhile)();
        Ok(Some(engine.classify(texts)?))
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

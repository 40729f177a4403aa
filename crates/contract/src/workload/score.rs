//! Scoring texts as a workload, cut between texts.

use super::{PassError, Slice, Workload, retain};
use crate::{Engine, TextToScore};

/// Words that take about as long as a plain query.
const WORDS_PER_SLOT: usize = 256;

/// Words of a pass: their sums take a few milliseconds on one core.
const WORDS_PER_PASS: usize = 1 << 15;

/// Texts for scorers. Costs are counted in words.
#[derive(Debug, Clone, Copy, Default)]
pub struct Score;

impl Workload for Score {
    type Device = dyn Engine;
    type Request = TextToScore;
    type Response = f64;
    type Gathered = ();
    /// The scores of the first texts.
    type Pass = Vec<f64>;

    fn name(&self) -> &'static str {
        "a scoring of texts"
    }

    fn slots(&self, text: &TextToScore) -> usize {
        1 + text.rows().len() / WORDS_PER_SLOT
    }

    fn cost(&self, _: &Self::Device, text: &TextToScore) -> usize {
        text.rows().len()
    }

    fn room(&self, _: &Self::Device, waiting: usize) -> usize {
        WORDS_PER_PASS.min(waiting).max(1)
    }

    fn run(
        &self,
        engine: &mut Self::Device,
        texts: &[&TextToScore],
        done: &mut Vec<f64>,
        slice: Slice<'_>,
    ) -> Result<Option<Vec<f64>>, PassError> {
        (slice.meanwhile)();
        done.extend(engine.score_part(&texts[done.len()..], slice.go_on)?);
        Ok((done.len() == texts.len()).then(|| std::mem::take(done)))
    }

    fn retain(&self, done: &mut Vec<f64>, stays: &mut dyn FnMut(usize) -> bool) {
        retain(done, stays);
    }
}

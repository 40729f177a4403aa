//! Expanding texts as a workload: one pass searches for the terms of its texts' tokens, in slices.

use super::{PassError, Slice, Workload};
use crate::{Engine, Expansion, PartOfExpansion, Term};

/// The part of a pass that one caller gets while other callers wait.
const PART_BESIDE_OTHERS: usize = 4;

/// Texts for expanders. Costs are counted in plain queries (k = 10, all rows).
#[derive(Debug, Clone, Copy)]
pub struct Expand {
    /// Maximum cost of one pass; the engine may prefer less.
    pub max_batch: usize,
}

/// A pass between two slices.
#[derive(Debug, Default)]
pub struct PartlyExpanded {
    parts: Vec<PartOfExpansion>,
}

impl Workload for Expand {
    type Device = dyn Engine;
    type Request = Expansion;
    /// The terms, best first.
    type Response = Vec<Term>;
    type Gathered = ();
    type Pass = PartlyExpanded;

    fn name(&self) -> &'static str {
        "an expansion"
    }

    /// A search for each token, but never more than a pass takes.
    fn slots(&self, text: &Expansion) -> usize {
        text.tokens().clamp(1, self.max_batch)
    }

    fn cost(&self, engine: &Self::Device, text: &Expansion) -> usize {
        engine.expansion_cost(text).max(1)
    }

    fn room(&self, engine: &Self::Device, waiting: usize) -> usize {
        engine.preferred_batch(waiting).min(self.max_batch).max(1)
    }

    fn max_room_per_caller(&self, largest: usize) -> usize {
        (largest / PART_BESIDE_OTHERS).max(8)
    }

    fn run(
        &self,
        engine: &mut Self::Device,
        texts: &[&Expansion],
        pass: &mut PartlyExpanded,
        slice: Slice<'_>,
    ) -> Result<Option<Vec<Vec<Term>>>, PassError> {
        if pass.parts.is_empty() {
            pass.parts = texts.iter().map(|&text| PartOfExpansion::new(text.clone())).collect();
        }
        (slice.meanwhile)();
        engine.expand_part(&mut pass.parts, slice.go_on)?;
        if !pass.parts.iter().all(PartOfExpansion::is_complete) {
            return Ok(None);
        }
        let parts = std::mem::take(&mut pass.parts);
        Ok(Some(parts.into_iter().map(PartOfExpansion::into_terms).collect()))
    }

    fn retain(&self, pass: &mut PartlyExpanded, stays: &mut dyn FnMut(usize) -> bool) {
        let mut index = 0;
        pass.parts.retain(|_| {
            index += 1;
            stays(index - 1)
        });
    }
}

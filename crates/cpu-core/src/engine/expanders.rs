//! The expanders that an engine was asked for. A text is a search for each of its tokens, in the
//! table of the terms.

use std::sync::Arc;

use contract::token_search::{TermSearch, expand_some, is_same, next_expander, usual_norm};
use contract::{
    EngineError, FullPassEngine, FullPassPart, HasTable, Hit, PartOfExpansion, Query, Table,
    TermExpander, UsualCosts,
};

use crate::certified::{CertifiedSearch, Options, Paths};

#[derive(Debug)]
pub(super) struct Expanders {
    /// Those whose terms are not the engine's own rows, or have other biases.
    pub(super) all: Vec<(Arc<dyn TermExpander>, CertifiedSearch)>,
    pub(super) paths: Paths,
}

impl Expanders {
    /// Searches for the terms of tokens, piece by piece, as long as `go_on` says.
    pub(super) fn expand(
        &mut self,
        model: &Arc<dyn HasTable>,
        own: &mut CertifiedSearch,
        parts: &mut [PartOfExpansion],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), EngineError> {
        let table = model.table();
        if !parts.iter().all(|part| part.expansion().fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        // Nobody else has those that were replaced.
        self.all.retain(|(expander, _)| Arc::strong_count(expander) > 1);
        let mut is_first = true;
        while let Some(expander) = next_expander(parts) {
            if !std::mem::take(&mut is_first) && !go_on() {
                break;
            }
            let completed = |parts: &[PartOfExpansion]| {
                parts.iter().filter(|part| part.is_complete()).count() as u64
            };
            let (before, counted) = (completed(parts), own.counters);
            let search = if is_same(expander.terms(), model) {
                &mut *own
            } else {
                self.of(&expander, own, &table)?
            };
            // It counts on from the engine's own.
            search.counters = counted;
            expand_some(parts, &table, search, go_on)?;
            let counted = search.counters;
            own.counters = counted;
            own.counters.expanded += completed(parts) - before;
        }
        Ok(())
    }

    fn of(
        &mut self,
        expander: &Arc<dyn TermExpander>,
        own: &CertifiedSearch,
        model: &Table<'_>,
    ) -> Result<&mut CertifiedSearch, EngineError> {
        let known = self.all.iter().position(|(known, _)| Arc::ptr_eq(known, expander));
        let index = match known {
            Some(index) => index,
            None => {
                let full = own.full.of(expander.terms().clone());
                let options = Options { paths: self.paths, ..Options::default() };
                let norm = usual_norm(&**expander, model);
                let search = CertifiedSearch::new(full, None, norm, options)
                    .map_err(|error| EngineError::Device(error.into()))?;
                self.all.push((expander.clone(), search));
                self.all.len() - 1
            }
        };
        Ok(&mut self.all[index].1)
    }
}

impl TermSearch for CertifiedSearch {
    fn cost(&self, query: &Query) -> usize {
        self.costs.search(query)
    }

    fn batch_cost(&self) -> usize {
        self.full.instructions.preferred_batch()
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        // Others may wait: until the table is derived, a full pass answers, which can be cut into
        // slices.
        self.search_now(batch)
    }

    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        self.full.full_pass_part(parts, from, go_on)
    }
}

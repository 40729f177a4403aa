//! The expanders that an engine was asked for. A text is a search for each of its tokens, in the
//! table of the terms, which has an engine of its own on the same device.

use std::sync::Arc;

use contract::token_search::{TermSearch, expand_some, is_same, next_expander, usual_norm};
use contract::{
    EngineError, FullPassEngine, FullPassPart, Hit, PartOfExpansion, Query, Row, SearchEngine,
    Table, Term, TermExpander,
};

use super::CudaEngine;
use super::abi::{MAX_K, ScoredRow};
use super::expand::{MAX_TEXTS, MAX_TOKENS, TokenVectors, Tokens};
use super::workspace::MAX_BATCH;
use crate::GpuError;

/// An expander whose terms are not the engine's own rows, or have other biases.
pub(super) struct Expanding {
    expander: Arc<dyn TermExpander>,
    pub(super) engine: CudaEngine,
}

impl CudaEngine {
    /// Searches for the terms of tokens, piece by piece, as long as `go_on` says.
    pub(super) fn expand_pieces(
        &mut self,
        parts: &mut [PartOfExpansion],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), EngineError> {
        let model = self.resident.of.clone();
        let table = model.table();
        if !parts.iter().all(|part| part.expansion().fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        assert!(self.started.is_empty(), "a pass was started and not finished");
        // Nobody else has those that were replaced.
        self.expanders.retain(|one| Arc::strong_count(&one.expander) > 1);
        let completed = |parts: &[PartOfExpansion]| {
            parts.iter().filter(|part| part.is_complete()).count() as u64
        };
        let before = completed(parts);
        let mut is_first = true;
        while let Some(expander) = next_expander(parts) {
            if !std::mem::take(&mut is_first) && !go_on() {
                break;
            }
            let engine = if is_same(expander.terms(), &model) {
                &mut *self
            } else {
                self.engine_of(&expander, &table)?
            };
            if !engine.merge_texts(parts, &expander, &table)? {
                expand_some(parts, &table, engine, go_on)?;
            }
        }
        self.counters.expanded += completed(parts) - before;
        Ok(())
    }

    /// Expands texts of this expander, whose terms this engine has, that want more terms than the
    /// device ranks: as many as one pass takes. Returns whether that completed the first text that
    /// was not complete.
    fn merge_texts(
        &mut self,
        parts: &mut [PartOfExpansion],
        expander: &Arc<dyn TermExpander>,
        model: &Table<'_>,
    ) -> Result<bool, EngineError> {
        let is_mergeable = |part: &PartOfExpansion| {
            let text = part.expansion();
            Arc::ptr_eq(text.expander(), expander)
                && !part.is_complete()
                && part.searched() == 0
                && !part.is_scanned()
                && text.top() > MAX_K
                // The pass has all terms.
                && text.rows().is_all()
        };
        let Some(first) = parts.iter().position(|part| !part.is_complete()) else {
            return Ok(false);
        };
        if !self.costs.certifies || !is_mergeable(&parts[first]) {
            return Ok(false);
        }
        let (mut vectors, mut ends, mut leasts) = (Vec::new(), Vec::new(), Vec::new());
        let (mut indices, mut tokens) = (Vec::new(), 0);
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| is_mergeable(part)) {
            let text = part.expansion();
            let fits = tokens + text.tokens() <= MAX_TOKENS && indices.len() < MAX_TEXTS;
            let start = vectors.len();
            if !fits || !text.add_vectors(model, &mut vectors) {
                vectors.truncate(start);
                // The first one is searched for token by token.
                if indices.is_empty() {
                    return Ok(false);
                }
                break;
            }
            tokens += text.tokens();
            indices.push(index);
            ends.push(tokens);
            leasts.push(text.least());
        }
        let found = Tokens { vectors: TokenVectors::Host(&vectors), ends: &ends, leasts: &leasts };
        let found = self.terms_of(found).map_err(|error| self.failed(error))?;
        let mut start = 0;
        for ((index, terms), &end) in indices.into_iter().zip(found).zip(&ends) {
            if let Some(terms) = terms {
                let term = |ScoredRow { row, score, query: token }| Term {
                    row: Row(row),
                    value: score,
                    position: token - start as u32,
                };
                parts[index].complete(terms.into_iter().map(term).collect());
            }
            start = end;
        }
        Ok(parts[first].is_complete())
    }

    /// The engine of an expander's terms, which is made when it is asked for first.
    fn engine_of(
        &mut self,
        expander: &Arc<dyn TermExpander>,
        model: &Table<'_>,
    ) -> Result<&mut Self, EngineError> {
        let known = self.expanders.iter().position(|one| Arc::ptr_eq(&one.expander, expander));
        let index = match known {
            Some(index) => index,
            None => {
                let engine = self.beside(expander.terms(), usual_norm(&**expander, model));
                let engine = engine.map_err(|error| match error {
                    // The engine itself is fine.
                    GpuError::DoesNotFit { .. } => EngineError::NoExpander(error.into()),
                    error => self.failed(error),
                })?;
                self.expanders.push(Expanding { expander: expander.clone(), engine });
                self.expanders.len() - 1
            }
        };
        Ok(&mut self.expanders[index].engine)
    }
}

impl TermSearch for CudaEngine {
    fn cost(&self, query: &Query) -> usize {
        self.search_cost(query)
    }

    fn batch_cost(&self) -> usize {
        MAX_BATCH
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        self.search_overlapped(batch, &mut || ())
    }

    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        FullPassEngine::full_pass_part(self, parts, from, go_on)
    }
}

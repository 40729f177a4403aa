//! The expanders that an engine was asked for. A text is a search for each of its tokens, in the table of the terms.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use contract::{
    Engine, EngineError, Expansion, HasTable, Hit, PartOfExpansion, Query, QueryBatch, Row, Table,
    TermExpander, UsualCosts,
};
use model_store::ModelStore;

use crate::InstructionSet;
use crate::certified::{CertifiedSearch, Costs, Options, Paths};

/// Queries without a certificate that are answered together, by scoring every row.
const FULL_SCAN_TOGETHER: usize = 8;

/// The expanders that an engine was asked for.
#[derive(Debug)]
pub(super) struct Expanders {
    all: Vec<Expanding>,
    paths: Paths,
}

/// An expander whose terms are not the engine's own rows, or have other biases.
#[derive(Debug)]
struct Expanding {
    expander: Arc<dyn TermExpander>,
    search: CertifiedSearch,
}

impl Expanders {
    pub(super) fn new(paths: Paths) -> Self {
        Self { all: Vec::new(), paths }
    }

    /// The estimated cost of a text, in plain queries.
    pub(super) fn cost(&self, text: &Expansion, instructions: InstructionSet) -> usize {
        let table = text.expander().terms().table();
        let (rows, dim, always_certify) = (table.rows(), table.dim(), self.paths.always_certify);
        let costs = Costs { rows, dim, instructions, always_certify };
        costs.of_k(text.top()).saturating_mul(text.tokens())
    }

    /// Searches for the terms of tokens, piece by piece, as long as `go_on` says.
    pub(super) fn expand(
        &mut self,
        model: &Arc<ModelStore>,
        own: &mut CertifiedSearch,
        parts: &mut [PartOfExpansion],
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), EngineError> {
        let table = model.table();
        if !parts.iter().all(|part| part.expansion().fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        // Nobody else has those that were replaced.
        self.all.retain(|one| Arc::strong_count(&one.expander) > 1);
        let mut is_first = true;
        while let Some(first) = parts.iter().position(|part| !part.is_complete()) {
            if !std::mem::take(&mut is_first) && !go_on() {
                break;
            }
            let expander = parts[first].expansion().expander().clone();
            let completed = |parts: &[PartOfExpansion]| {
                parts.iter().filter(|part| part.is_complete()).count() as u64
            };
            let before = completed(parts);
            let search =
                if is_same(expander.terms(), model) { &mut *own } else { self.of(&expander, own)? };
            Piece::gather(parts, first, &table, search).search(parts, search, go_on)?;
            own.counters.expanded += completed(parts) - before;
        }
        Ok(())
    }

    fn of(
        &mut self,
        expander: &Arc<dyn TermExpander>,
        own: &mut CertifiedSearch,
    ) -> Result<&mut CertifiedSearch, EngineError> {
        let known = self.all.iter().position(|one| Arc::ptr_eq(&one.expander, expander));
        let index = match known {
            Some(index) => index,
            None => {
                let full = own.full().of(expander.terms().clone());
                let options = Options { paths: self.paths, ..Options::default() };
                let search = CertifiedSearch::new(full, None, options)
                    .map_err(|error| EngineError::Device(error.to_string()))?;
                self.all.push(Expanding { expander: expander.clone(), search });
                self.all.len() - 1
            }
        };
        Ok(&mut self.all[index].search)
    }
}

/// Whether the terms are the model's own rows, with its biases.
fn is_same(terms: &Arc<dyn HasTable>, model: &Arc<ModelStore>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(terms), Arc::as_ptr(model))
}

/// Tokens that are searched for together.
struct Piece {
    /// Texts, and their tokens.
    tokens: Vec<(usize, Range<usize>)>,
    /// The queries of the tokens, in the same order: the index of a query, or `None` if the token has no terms.
    indices: Vec<Option<usize>>,
    queries: Vec<Query>,
}

impl Piece {
    /// The next tokens of texts for the same expander, from the text `first` on. Equal tokens share a query.
    fn gather(
        parts: &[PartOfExpansion],
        first: usize,
        model: &Table<'_>,
        search: &CertifiedSearch,
    ) -> Self {
        let mut piece = Self { tokens: Vec::new(), indices: Vec::new(), queries: Vec::new() };
        let expander = parts[first].expansion().expander();
        let (costs, most) = (search.costs(), search.instructions().preferred_batch());
        let (mut cost, mut known) = (0, HashMap::<(Row, usize, u64), Option<usize>>::new());
        for (index, part) in parts.iter().enumerate().skip(first) {
            let text = part.expansion();
            if !Arc::ptr_eq(text.expander(), expander) {
                continue;
            }
            let start = part.searched();
            let mut end = start;
            while end < text.tokens() && (cost < most || piece.indices.is_empty()) {
                let mut query = || {
                    let query = text.query(model, end)?;
                    cost += costs.search(&query);
                    piece.queries.push(query);
                    Some(piece.queries.len() - 1)
                };
                piece.indices.push(match text.row(end) {
                    Some(row) => *known
                        .entry((row, text.top(), text.least().to_bits()))
                        .or_insert_with(query),
                    None => query(),
                });
                end += 1;
            }
            if end > start {
                piece.tokens.push((index, start..end));
            }
            if cost >= most {
                break;
            }
        }
        piece
    }

    /// Searches, and adds what is found to the texts. Where a search has no certificate, every row must be scored: if `go_on` says no
    /// before that, the remaining tokens are left to the next call.
    fn search(
        self,
        parts: &mut [PartOfExpansion],
        search: &mut CertifiedSearch,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), EngineError> {
        let batch: QueryBatch<'_> = self.queries.iter().collect();
        let mut found = search.search_overlapped(&batch, &mut || ())?;
        let mut indices = self.indices.into_iter();
        let mut is_first = true;
        for (part, tokens) in self.tokens {
            for index in tokens.zip(&mut indices).map(|(_, index)| index) {
                if let Some(index) = index.filter(|&index| found[index].is_none()) {
                    if !std::mem::take(&mut is_first) && !go_on() {
                        return Ok(());
                    }
                    answer(&mut found, index, &self.queries, search)?;
                }
                let hits = index.and_then(|index| found[index].as_deref());
                parts[part].add(hits.unwrap_or_default());
            }
        }
        Ok(())
    }
}

/// Answers some queries that have no answer yet, from this one on, by scoring every row.
fn answer(
    found: &mut [Option<Vec<Hit>>],
    from: usize,
    queries: &[Query],
    search: &mut CertifiedSearch,
) -> Result<(), EngineError> {
    let open = (from..queries.len()).filter(|&index| found[index].is_none());
    let open: Vec<usize> = open.take(FULL_SCAN_TOGETHER).collect();
    let batch: QueryBatch<'_> = open.iter().map(|&index| &queries[index]).collect();
    for (index, hits) in open.into_iter().zip(search.full().search(&batch)?) {
        found[index] = Some(hits);
    }
    Ok(())
}

//! Expands texts by searches: which tokens are searched for together, and what becomes of their hits.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::{
    EngineError, HasTable, Hit, PartOfExpansion, Query, QueryBatch, Row, Table, TermExpander,
};

/// Queries without a certificate that are answered together, by scoring every row.
const FULL_SCAN_TOGETHER: usize = 8;

/// Searches an expander's terms.
pub trait TermSearch {
    /// The estimated cost of a query, in plain queries of a full batch.
    fn cost(&self, query: &Query) -> usize;

    /// The cost of the queries that are best searched for together.
    fn batch_cost(&self) -> usize;

    /// Answers queries, but those that only a scan of all rows can answer, which become `None`.
    ///
    /// # Errors
    /// If the engine fails.
    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Option<Vec<Hit>>>, EngineError>;

    /// Answers queries by scoring every row.
    ///
    /// # Errors
    /// If the engine fails.
    fn scan_all(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError>;
}

/// Searches for tokens of texts, as many as are best searched for together: of the first text that is not complete, and of later
/// ones of the same expander, whose terms `search` has. Queries that need a scan of all rows take long: between them, `go_on` says
/// whether to stop early. `model` is the table whose rows tokens may be.
///
/// # Errors
/// If the engine fails.
///
/// # Panics
/// If all texts are complete, or one does not [fit](crate::Expansion::fits) the model.
pub fn expand_some(
    parts: &mut [PartOfExpansion],
    model: &Table<'_>,
    search: &mut dyn TermSearch,
    go_on: &dyn Fn() -> bool,
) -> Result<(), EngineError> {
    Piece::gather(parts, model, search).search(parts, search, go_on)
}

/// The expander of the first text that is not complete.
pub fn next_expander(parts: &[PartOfExpansion]) -> Option<Arc<dyn TermExpander>> {
    let first = parts.iter().find(|part| !part.is_complete())?;
    Some(first.expansion().expander().clone())
}

/// Whether an expander's terms are a model's own table: its rows, with its biases.
pub fn is_same<T: ?Sized>(terms: &Arc<dyn HasTable>, own: &Arc<T>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(terms), Arc::as_ptr(own))
}

/// The mean norm of the tokens of the first text of this expander that has tokens.
pub fn first_norm(
    parts: &[PartOfExpansion],
    expander: &Arc<dyn TermExpander>,
    model: &Table<'_>,
) -> Option<f64> {
    let own = parts.iter().map(PartOfExpansion::expansion);
    own.filter(|text| Arc::ptr_eq(text.expander(), expander)).find_map(|text| text.mean_norm(model))
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
    /// Equal tokens share a query.
    fn gather(parts: &[PartOfExpansion], model: &Table<'_>, search: &dyn TermSearch) -> Self {
        let mut piece = Self { tokens: Vec::new(), indices: Vec::new(), queries: Vec::new() };
        let expander = next_expander(parts).expect("a text is not complete");
        let (mut cost, most) = (0, search.batch_cost());
        let mut known = HashMap::<(Row, usize, u64), Option<usize>>::new();
        for (index, part) in parts.iter().enumerate() {
            let text = part.expansion();
            if !Arc::ptr_eq(text.expander(), &expander) {
                continue;
            }
            let start = part.searched();
            let mut end = start;
            while end < text.tokens() && (cost < most || piece.indices.is_empty()) {
                let mut query = || {
                    let query = text.query(model, end)?;
                    cost += search.cost(&query);
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

    /// Adds what is found to the texts. Tokens from a query on that was not answered are searched for another time.
    fn search(
        self,
        parts: &mut [PartOfExpansion],
        search: &mut dyn TermSearch,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), EngineError> {
        let mut found = search.search(&self.queries.iter().collect())?;
        let mut indices = self.indices.into_iter();
        let mut is_first = true;
        for (part, tokens) in self.tokens {
            for index in tokens.zip(&mut indices).map(|(_, index)| index) {
                if let Some(index) = index.filter(|&index| found[index].is_none()) {
                    if !std::mem::take(&mut is_first) && !go_on() {
                        return Ok(());
                    }
                    scan_some(&mut found, index, &self.queries, search)?;
                }
                let hits = index.and_then(|index| found[index].as_deref());
                parts[part].add(hits.unwrap_or_default());
            }
        }
        Ok(())
    }
}

/// Answers some queries that have no answer yet, from this one on.
fn scan_some(
    found: &mut [Option<Vec<Hit>>],
    from: usize,
    queries: &[Query],
    search: &mut dyn TermSearch,
) -> Result<(), EngineError> {
    let open = (from..queries.len()).filter(|&index| found[index].is_none());
    let open: Vec<usize> = open.take(FULL_SCAN_TOGETHER).collect();
    let batch: QueryBatch<'_> = open.iter().map(|&index| &queries[index]).collect();
    for (index, hits) in open.into_iter().zip(search.scan_all(&batch)?) {
        found[index] = Some(hits);
    }
    Ok(())
}

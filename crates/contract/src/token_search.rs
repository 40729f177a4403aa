//! Expands texts by searches: which tokens are searched for together, and what becomes of their
//! hits.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::{
    EngineError, FullPassPart, HasTable, Hit, PartOfExpansion, Query, Row, RowSet, RowSetParts,
    Table, TermExpander, score,
};

/// Tokens without a certificate that are searched for together, by a full pass.
const FULL_PASS_TOGETHER: usize = 8;

/// About the number of rows that tell the usual norm of tokens.
const ROWS_FOR_NORM: usize = 256;

/// Searches an expander's terms.
///
/// # Errors
/// If the engine fails.
pub trait TermSearch {
    /// The estimated cost of a query, in plain queries of a full batch.
    fn cost(&self, query: &Query) -> usize;

    /// The cost of the queries that are best searched for together.
    fn batch_cost(&self) -> usize;

    /// Answers queries, but those that only a scan of all rows can answer, which become `None`.
    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Option<Vec<Hit>>>, EngineError>;

    /// Runs a slice of a full pass over the terms; see
    /// [`FullPassEngine::full_pass_part`](crate::FullPassEngine::full_pass_part).
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError>;
}

/// Searches for tokens of texts, as many as are best searched for together: of the first text that
/// is not complete, and of later ones of the same expander, whose terms `search` has. Tokens
/// without a certificate take a full pass, a slice of it at a time, which lasts as long as `go_on`
/// says. `model` is the table whose rows tokens may be.
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
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(), EngineError> {
    let first = parts.iter_mut().find(|part| !part.is_complete()).expect("a text is not complete");
    if first.is_scanned() {
        return first.scan(|tokens, from| search.full_pass_part(tokens, from, go_on));
    }
    TokenBatch::gather(parts, model, search).search(parts, search)
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

/// The mean norm of usual tokens of an expander: of some rows of the model, as the terms are
/// compared with them; of the first rows more, because frequent words come first. `None` if tokens
/// are no rows of the model.
///
/// It is computed from the model's rows alone: tables derived with it outlive a request, so no
/// request may influence it.
pub fn usual_norm(expander: &dyn TermExpander, model: &Table<'_>) -> Option<f64> {
    if model.dim() != expander.token_dim() || model.rows() == 0 {
        return None;
    }
    let last = (model.rows() - 1) as f64;
    // Evenly spaced logarithms: as often as Zipf's law says.
    let row = |step: usize| last.powf(step as f64 / (ROWS_FOR_NORM - 1) as f64) as u32;
    let mut rows: Vec<u32> = (0..ROWS_FOR_NORM).map(row).map(|row| row.min(last as u32)).collect();
    rows.dedup();
    let norm = |row| Some(score::norm(&expander.project(model.row(Row(row))).ok()?));
    let norms: Vec<f64> = rows.into_iter().filter_map(norm).collect();
    (!norms.is_empty()).then(|| norms.iter().sum::<f64>() / norms.len() as f64)
}

/// Tells sets of rows apart: the limit, the bitmap's identity, and the rows left out.
type SetKey<'a> = (Option<u32>, Option<u64>, &'a [Row]);

fn key_of(rows: &RowSet) -> SetKey<'_> {
    let RowSetParts { limit, bitmap, excluded } = rows.parts();
    (limit, bitmap.map(|bitmap| bitmap.id()), excluded)
}

/// Tokens that are searched for together.
struct TokenBatch {
    /// Texts, and their tokens.
    tokens: Vec<(usize, Range<usize>)>,
    /// The queries of the tokens, in the same order: the index of a query, or `None` if the token
    /// has no terms.
    indices: Vec<Option<usize>>,
    queries: Vec<Query>,
}

impl TokenBatch {
    /// Equal tokens share a query.
    fn gather(parts: &[PartOfExpansion], model: &Table<'_>, search: &dyn TermSearch) -> Self {
        let mut batch = Self { tokens: Vec::new(), indices: Vec::new(), queries: Vec::new() };
        let expander = next_expander(parts).expect("a text is not complete");
        let (mut cost, most) = (0, search.batch_cost());
        let mut known = HashMap::<(Row, usize, u64, SetKey<'_>), Option<usize>>::new();
        for (index, part) in parts.iter().enumerate() {
            let text = part.expansion();
            if part.is_scanned() || !Arc::ptr_eq(text.expander(), &expander) {
                continue;
            }
            let start = part.searched();
            let mut end = start;
            while end < text.tokens() && (cost < most || batch.indices.is_empty()) {
                let mut query = || {
                    let query = text.query(model, end)?;
                    cost += search.cost(&query);
                    batch.queries.push(query);
                    Some(batch.queries.len() - 1)
                };
                batch.indices.push(match text.row(end) {
                    Some(row) => *known
                        .entry((row, text.top(), text.least().to_bits(), key_of(text.rows())))
                        .or_insert_with(query),
                    None => query(),
                });
                end += 1;
            }
            if end > start {
                batch.tokens.push((index, start..end));
            }
            if cost >= most {
                break;
            }
        }
        batch
    }

    /// Adds what is found to the texts. From the first token of a text on that has no certificate,
    /// some tokens are left to a full pass, and the rest are searched for another time.
    fn search(
        self,
        parts: &mut [PartOfExpansion],
        search: &mut dyn TermSearch,
    ) -> Result<(), EngineError> {
        let found = search.search(&self.queries.iter().collect::<Vec<_>>())?;
        let hits = |index: &Option<usize>| match index {
            None => Some(&[][..]),
            Some(index) => found[*index].as_deref(),
        };
        let mut indices = &self.indices[..];
        for (part, tokens) in self.tokens {
            let (own, rest) = indices.split_at(tokens.len());
            indices = rest;
            let proven = own.iter().take_while(|index| hits(index).is_some()).count();
            own[..proven].iter().filter_map(hits).for_each(|hits| parts[part].add(hits));
            let left = &own[proven..];
            if !left.is_empty() {
                let left = left.iter().take(FULL_PASS_TOGETHER);
                parts[part].begin_scan(left.map(|index| match (hits(index), index) {
                    (Some(hits), _) => Ok(hits.to_vec()),
                    (None, index) => Err(self.queries[index.expect("a query")].clone()),
                }));
            }
        }
        Ok(())
    }
}

//! The candidates of a certified pass: rows that may be in a query's answer.

use contract::Row;

/// A row that may be in a query's answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) row: Row,
    /// An upper bound on its score.
    pub(crate) upper: f32,
}

/// The candidates that one thread found, query by query.
pub(crate) struct Found {
    candidates: Vec<Candidate>,
    /// Where each query's candidates end, `[queries]`.
    ends: Vec<usize>,
}

impl Found {
    /// Of no query yet, with room for the ends of this many.
    pub(super) fn with_capacity(queries: usize) -> Self {
        Self { candidates: Vec::new(), ends: Vec::with_capacity(queries) }
    }

    /// Adds the candidates of the next query.
    pub(super) fn push(&mut self, candidates: impl Iterator<Item = Candidate>) {
        self.candidates.extend(candidates);
        self.ends.push(self.candidates.len());
    }

    /// The number of candidates of all queries.
    pub(super) fn len(&self) -> usize {
        self.candidates.len()
    }

    pub(super) fn of_query(&self, query: usize) -> &[Candidate] {
        let start = query.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.candidates[start..self.ends[query]]
    }
}

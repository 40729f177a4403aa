//! The terms that a text implies, with values: SPLADE's head, as a search under the metric `dot`
//! for each token.
//!
//! `f[v] = max over l of (x[l] · w[v] + bias[v])`, of the terms where it is above zero. `x[l]` is
//! the vector of token `l`, `w[v]` a row of the terms' table. So `f[v]` is the best of the scores
//! that the contract gives term `v` as a neighbour of the tokens. The
//! *position* is the first token with that score. Terms rank by value, highest first, then by row.
//!
//! Source: Formal et al. 2021, "SPLADE v2", equation 6, without its logarithm, which is monotone
//! and is applied to the result.

mod best;
mod part;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::{Filter, HasTable, Metric, Query, QueryError, Row, RowSet, Table, score};
pub use best::BestTerms;
use best::rank;
pub use part::PartOfExpansion;

/// The least value of a term: the smallest number above zero.
pub const LEAST: f64 = f64::from_bits(1);

/// An expander: its terms, and what happens to the vectors of tokens.
pub trait TermExpander: fmt::Debug + Send + Sync {
    /// The terms, `[terms, dim]`, under [`Metric::Dot`].
    fn terms(&self) -> &Arc<dyn HasTable>;

    /// The matrix that tokens' vectors are multiplied by, `[dim, token_dim]`; `None` if they stay
    /// as they are.
    fn projection(&self) -> Option<&[f32]>;

    /// Components of a token's vector.
    fn token_dim(&self) -> usize {
        let dim = self.terms().table().dim();
        self.projection().map_or(dim, |projection| projection.len() / dim)
    }

    /// A token's vector as the terms are compared with it, `[dim]`: each component is a [dot
    /// product](score::dot) of the contract, rounded to float32 once.
    ///
    /// # Errors
    /// [`QueryError::NotFinite`] if a component is too large for float32.
    ///
    /// # Panics
    /// If the vector does not have [`token_dim`](Self::token_dim) components.
    fn project<'a>(&self, vector: &'a [f32]) -> Result<Cow<'a, [f32]>, QueryError> {
        assert_eq!(vector.len(), self.token_dim(), "a vector of a token");
        let Some(projection) = self.projection() else { return Ok(Cow::Borrowed(vector)) };
        let rows = projection.chunks_exact(vector.len());
        let projected: Vec<f32> = rows.map(|row| score::dot(row, vector) as f32).collect();
        match projected.iter().position(|component| !component.is_finite()) {
            None => Ok(Cow::Owned(projected)),
            Some(index) => Err(QueryError::NotFinite { index }),
        }
    }
}

/// The vectors of a text's tokens.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenVectors {
    /// Rows of the model's table.
    Rows(Vec<Row>),
    /// `[tokens, token_dim]`, from the caller.
    Vectors(Vec<f32>),
}

/// A text to expand, checked against its expander.
#[derive(Debug, Clone)]
pub struct Expansion {
    expander: Arc<dyn TermExpander>,
    vectors: TokenVectors,
    tokens: usize,
    top: usize,
    least: f64,
    /// The terms that it may have.
    rows: RowSet,
}

/// A term of an expansion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term {
    /// Its row in the terms' table.
    pub row: Row,
    /// Its value: above zero.
    pub value: f64,
    /// The first token that gives it this value.
    pub position: u32,
}

impl Expansion {
    /// The `top` best terms of at least the value `least`, or above zero if that is less. `model`
    /// is the table whose rows the tokens may be.
    ///
    /// # Errors
    /// If a vector is not finite, or has another number of components than the expander takes.
    ///
    /// # Panics
    /// If the terms are not under [`Metric::Dot`].
    pub fn new(
        expander: Arc<dyn TermExpander>,
        model: &Table<'_>,
        vectors: TokenVectors,
        top: usize,
        least: f64,
    ) -> Result<Self, QueryError> {
        assert_eq!(expander.terms().table().metric(), Metric::Dot, "terms are under dot");
        let dim = expander.token_dim();
        let tokens = match &vectors {
            TokenVectors::Rows(rows) => {
                if let Some(&row) = rows.iter().find(|row| row.index() >= model.rows()) {
                    return Err(QueryError::NoSuchRow { row, rows: model.rows() });
                }
                if model.dim() != dim {
                    return Err(QueryError::Dimension { found: model.dim(), expected: dim });
                }
                rows.len()
            }
            TokenVectors::Vectors(components) => {
                if !components.len().is_multiple_of(dim) {
                    let found = components.len() % dim;
                    return Err(QueryError::Dimension { found, expected: dim });
                }
                if let Some(index) = components.iter().position(|one| !one.is_finite()) {
                    return Err(QueryError::NotFinite { index: index % dim });
                }
                components.len() / dim
            }
        };
        let least = if least > LEAST { least } else { LEAST };
        Ok(Self { expander, vectors, tokens, top, least, rows: RowSet::all() })
    }

    /// The same text with the terms of a set alone: rows of the expander's terms.
    #[must_use]
    pub fn within(self, rows: RowSet) -> Self {
        Self { rows, ..self }
    }

    /// The expander.
    pub fn expander(&self) -> &Arc<dyn TermExpander> {
        &self.expander
    }

    /// The number of tokens.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The maximum number of terms.
    pub fn top(&self) -> usize {
        self.top
    }

    /// The least value of a term: above zero.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// The terms that it may have.
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// Whether a table of this shape may be the model's, and the set of terms is one of these.
    pub fn fits(&self, model: &Table<'_>) -> bool {
        let are_tokens = match &self.vectors {
            TokenVectors::Rows(rows) => {
                model.dim() == self.expander.token_dim()
                    && rows.iter().all(|row| row.index() < model.rows())
            }
            TokenVectors::Vectors(_) => true,
        };
        are_tokens && self.rows.fits(self.expander.terms().table().rows())
    }

    /// The search for the terms of one token. `None` if no term is above zero, because the
    /// projection of the token's vector is too large for float32: then it has no score.
    ///
    /// # Panics
    /// If there is no such token, or the model does not [fit](Self::fits).
    pub fn query(&self, model: &Table<'_>, position: usize) -> Option<Query> {
        let vector = self.expander.project(self.vector(model, position)).ok()?.into_owned();
        let rows = self.rows.clone();
        let filter = Filter { rows, min_score: Some(self.least), max_score: None };
        let terms = self.expander.terms().table();
        Query::new(&terms, vector.into(), self.top, filter).ok()
    }

    /// Adds the vectors of all tokens, as the terms are compared with them, `[tokens, dim]`.
    /// Returns whether all of them are finite; if not, some are missing.
    ///
    /// # Panics
    /// If the model does not [fit](Self::fits).
    pub fn add_vectors(&self, model: &Table<'_>, to: &mut Vec<f32>) -> bool {
        (0..self.tokens).all(|position| match self.expander.project(self.vector(model, position)) {
            Ok(vector) => {
                to.extend_from_slice(&vector);
                true
            }
            Err(_) => false,
        })
    }

    /// The same text for another expander, whose terms are a part of these, without rows of a
    /// model: `model` has those that the tokens are. `rows` are the terms that it may have there.
    ///
    /// # Panics
    /// If the model does not [fit](Self::fits), or the expander takes other vectors.
    #[must_use]
    pub fn moved(&self, expander: Arc<dyn TermExpander>, rows: RowSet, model: &Table<'_>) -> Self {
        assert_eq!(expander.token_dim(), self.expander.token_dim(), "vectors of the same length");
        let vectors = (0..self.tokens).flat_map(|position| self.vector(model, position)).copied();
        let vectors = TokenVectors::Vectors(vectors.collect());
        let &Self { tokens, top, least, .. } = self;
        Self { expander, vectors, tokens, top, least, rows }
    }

    fn vector<'a>(&'a self, model: &Table<'a>, position: usize) -> &'a [f32] {
        match &self.vectors {
            TokenVectors::Rows(rows) => model.row(rows[position]),
            TokenVectors::Vectors(components) => {
                let dim = self.expander.token_dim();
                &components[position * dim..][..dim]
            }
        }
    }

    /// Cuts a text into parts of at most this many tokens each, in order: the terms of the text are
    /// the [best](BestTerms) of theirs.
    ///
    /// # Panics
    /// If `tokens` is 0.
    pub fn cut(self, tokens: usize) -> Vec<Self> {
        assert!(tokens > 0, "a part has tokens");
        if self.tokens <= tokens {
            return vec![self];
        }
        let width = self.expander.token_dim();
        let starts = (0..self.tokens).step_by(tokens);
        let part = |start: usize| {
            let tokens = tokens.min(self.tokens - start);
            let vectors = match &self.vectors {
                TokenVectors::Rows(rows) => TokenVectors::Rows(rows[start..][..tokens].to_vec()),
                TokenVectors::Vectors(all) => {
                    TokenVectors::Vectors(all[start * width..][..tokens * width].to_vec())
                }
            };
            let (expander, rows) = (self.expander.clone(), self.rows.clone());
            Self { expander, vectors, tokens, rows, ..self }
        };
        starts.map(part).collect()
    }

    /// The row of the model that is a token, if it is one. Equal rows have equal searches.
    pub fn row(&self, position: usize) -> Option<Row> {
        match &self.vectors {
            TokenVectors::Rows(rows) => Some(rows[position]),
            TokenVectors::Vectors(_) => None,
        }
    }

    /// The terms by the formula, in plain loops over all terms.
    ///
    /// # Panics
    /// As [`query`](Self::query).
    pub fn terms(&self, model: &Table<'_>) -> Vec<Term> {
        let table = self.expander.terms().table();
        let queries: Vec<_> = (0..self.tokens).map(|at| self.query(model, at)).collect();
        let mut terms = Vec::new();
        let rows = (0..table.rows() as u32).map(Row);
        for row in rows.filter(|&row| self.rows.contains(row)) {
            let mut best: Option<Term> = None;
            for (position, query) in (0u32..).zip(&queries) {
                let Some(value) = query.as_ref().and_then(|query| query.score(&table, row)) else {
                    continue;
                };
                if value >= self.least && best.is_none_or(|best| value > best.value) {
                    best = Some(Term { row, value, position });
                }
            }
            terms.extend(best);
        }
        rank(&mut terms, self.top);
        terms
    }
}

#[cfg(test)]
mod tests;

//! The terms that a text implies, with values: SPLADE's head, as a search under the metric `dot` for each token.
//!
//! `f[v] = max over l of (x[l] · w[v] + bias[v])`, of the terms where it is above zero. `x[l]` is the vector of token `l`, `w[v]` a
//! row of the terms' table. So `f[v]` is the best of the scores that the contract gives term `v` as a neighbour of the tokens. The
//! *position* is the first token with that score. Terms rank by value, highest first, then by row.
//!
//! Source: Formal et al. 2021, "SPLADE v2", equation 6, without its logarithm, which is monotone and is applied to the result.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::fmt;
use std::sync::Arc;

use crate::{Filter, HasTable, Hit, Metric, Query, QueryError, Row, Table, score};

/// About the number of tokens that tell the usual norm of a text's tokens.
const TOKENS_FOR_NORM: usize = 64;

/// The least value of a term: the smallest number above zero.
pub const LEAST: f64 = f64::from_bits(1);

/// An expander: its terms, and what happens to the vectors of tokens.
pub trait TermExpander: fmt::Debug + Send + Sync {
    /// The terms, `[terms, dim]`, under [`Metric::Dot`].
    fn terms(&self) -> &Arc<dyn HasTable>;

    /// The matrix that tokens' vectors are multiplied by, `[dim, token_dim]`; `None` if they stay as they are.
    fn projection(&self) -> Option<&[f32]>;

    /// Components of a token's vector.
    fn token_dim(&self) -> usize {
        let dim = self.terms().table().dim();
        self.projection().map_or(dim, |projection| projection.len() / dim)
    }

    /// A token's vector as the terms are compared with it, `[dim]`: each component is a [dot product](score::dot) of the contract,
    /// rounded to float32 once.
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
    /// The `top` best terms of at least the value `least`, or above zero if that is less. `model` is the table whose rows the
    /// tokens may be.
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
        Ok(Self { expander, vectors, tokens, top, least })
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

    /// Whether a table of this shape may be the model's.
    pub fn fits(&self, model: &Table<'_>) -> bool {
        match &self.vectors {
            TokenVectors::Rows(rows) => {
                model.dim() == self.expander.token_dim()
                    && rows.iter().all(|row| row.index() < model.rows())
            }
            TokenVectors::Vectors(_) => true,
        }
    }

    /// The search for the terms of one token. `None` if no term is above zero, because the projection of the token's vector is too
    /// large for float32: then it has no score.
    ///
    /// # Panics
    /// If there is no such token, or the model does not [fit](Self::fits).
    pub fn query(&self, model: &Table<'_>, position: usize) -> Option<Query> {
        let vector = self.expander.project(self.vector(model, position)).ok()?.into_owned();
        let mut filter = Filter::default();
        filter.min_score = Some(self.least);
        let terms = self.expander.terms().table();
        Query::new(&terms, vector.into(), self.top, filter).ok()
    }

    /// Adds the vectors of all tokens, as the terms are compared with them, `[tokens, dim]`. Returns whether all of them are finite;
    /// if not, some are missing.
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

    /// The same text for another expander, whose terms are a part of these, without rows of a model: `model` has those that the
    /// tokens are.
    ///
    /// # Panics
    /// If the model does not [fit](Self::fits), or the expander takes other vectors.
    #[must_use]
    pub fn moved(&self, expander: Arc<dyn TermExpander>, model: &Table<'_>) -> Self {
        assert_eq!(expander.token_dim(), self.expander.token_dim(), "vectors of the same length");
        let vectors = (0..self.tokens).flat_map(|position| self.vector(model, position)).copied();
        let vectors = TokenVectors::Vectors(vectors.collect());
        let &Self { tokens, top, least, .. } = self;
        Self { expander, vectors, tokens, top, least }
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

    /// The mean norm of some tokens' vectors, as the terms are compared with them; `None` without tokens.
    ///
    /// # Panics
    /// If the model does not [fit](Self::fits).
    pub fn mean_norm(&self, model: &Table<'_>) -> Option<f64> {
        let some = (0..self.tokens).step_by(1 + self.tokens / TOKENS_FOR_NORM);
        let norm = |position| {
            let vector = self.expander.project(self.vector(model, position)).ok()?;
            Some(score::norm(&vector))
        };
        let norms: Vec<f64> = some.filter_map(norm).collect();
        (!norms.is_empty()).then(|| norms.iter().sum::<f64>() / norms.len() as f64)
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
        for row in (0..table.rows() as u32).map(Row) {
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

/// Sorts terms by value, highest first, then by row, and keeps the first `top`.
fn rank(terms: &mut Vec<Term>, top: usize) {
    terms.sort_unstable_by(|a, b| b.value.total_cmp(&a.value).then(a.row.cmp(&b.row)));
    terms.truncate(top);
    terms.shrink_to_fit();
}

/// An expansion of which some tokens have been searched.
///
/// The `top` best terms of the text are among the `top` best of its tokens: what ranks before a term in the list of a token that
/// gives it its value also ranks before it in the text.
#[derive(Debug)]
pub struct PartOfExpansion {
    expansion: Expansion,
    searched: usize,
    /// The best terms of tokens whose lists were joined, and the lists of the tokens after them: each best first.
    terms: Vec<Term>,
    lists: Vec<Vec<Term>>,
    /// The same text over parts of the terms, for an engine that is made of several.
    shards: Vec<Option<PartOfExpansion>>,
}

/// Lists that are joined together: more would take memory, fewer would be joined more often than needed.
const LISTS: usize = 16;

impl PartOfExpansion {
    /// An expansion of which no token has been searched.
    pub fn new(expansion: Expansion) -> Self {
        let (terms, lists, shards) = (Vec::new(), Vec::new(), Vec::new());
        Self { expansion, searched: 0, terms, lists, shards }
    }

    /// The same text over parts of the terms. Only an engine that is made of several uses this; it is empty before the first
    /// slice.
    pub fn shards(&mut self) -> &mut Vec<Option<Self>> {
        &mut self.shards
    }

    /// What is expanded.
    pub fn expansion(&self) -> &Expansion {
        &self.expansion
    }

    /// The tokens that have been searched are those before this one.
    pub fn searched(&self) -> usize {
        self.searched
    }

    /// Whether all tokens have been searched.
    pub fn is_complete(&self) -> bool {
        self.searched == self.expansion.tokens
    }

    /// Adds what the search for the next token found, best first.
    pub fn add(&mut self, hits: &[Hit]) {
        let position = self.searched as u32;
        self.searched += 1;
        let term = |&Hit { row, score }: &Hit| Term { row, value: score, position };
        self.lists.push(hits.iter().map(term).collect());
        if self.is_complete() || self.lists.len() == LISTS {
            self.lists.push(std::mem::take(&mut self.terms));
            self.terms = join(&self.lists, self.expansion.top);
            self.lists = Vec::new();
        }
    }

    /// Completes it with all of the text's terms above its least value, in any order.
    pub fn complete(&mut self, mut terms: Vec<Term>) {
        rank(&mut terms, self.expansion.top);
        (self.terms, self.searched, self.lists) = (terms, self.expansion.tokens, Vec::new());
    }

    /// The terms, once all tokens have been searched.
    ///
    /// # Panics
    /// If some have not.
    pub fn into_terms(self) -> Vec<Term> {
        assert!(self.is_complete(), "all tokens have been searched");
        self.terms
    }
}

/// The first `top` terms of lists that are each best first. Of equal rows the best stays, and of equal values the first position.
fn join(lists: &[Vec<Term>], top: usize) -> Vec<Term> {
    // The next term of each list. Better hits come first in the order of hits, so the best is the greatest here.
    let next = |list: usize, at: usize| {
        let &Term { row, value: score, position } = lists[list].get(at)?;
        Some((Reverse((Hit { row, score }, position)), list, at))
    };
    let mut heads: BinaryHeap<_> = (0..lists.len()).filter_map(|list| next(list, 0)).collect();
    let (mut joined, mut known) = (Vec::new(), HashSet::new());
    while let Some(mut head) = heads.peek_mut() {
        if joined.len() == top {
            break;
        }
        let (_, list, at) = *head;
        let term = lists[list][at];
        if known.insert(term.row) {
            joined.push(term);
        }
        match next(list, at + 1) {
            Some(next) => *head = next,
            None => drop(PeekMut::pop(head)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug)]
    struct Numbers {
        components: Vec<f32>,
        norms: Vec<f64>,
        biases: Option<Vec<f32>>,
        dim: usize,
    }

    impl Numbers {
        fn new(components: Vec<f32>, dim: usize, biases: Option<Vec<f32>>) -> Self {
            let norms = components.chunks(dim).map(score::norm).collect();
            Self { components, norms, biases, dim }
        }
    }

    impl HasTable for Numbers {
        fn table(&self) -> Table<'_> {
            Table::new(&self.components, &self.norms, self.dim).under_dot(self.biases.as_deref())
        }
    }

    #[derive(Debug)]
    struct Small {
        terms: Arc<dyn HasTable>,
        projection: Option<Vec<f32>>,
    }

    impl TermExpander for Small {
        fn terms(&self) -> &Arc<dyn HasTable> {
            &self.terms
        }

        fn projection(&self) -> Option<&[f32]> {
            self.projection.as_deref()
        }
    }

    fn small(projection: Option<Vec<f32>>) -> Arc<dyn TermExpander> {
        let terms = vec![1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 1.0, 1.0];
        let terms = Numbers::new(terms, 2, Some(vec![0.0, 0.5, -1.0, 0.0]));
        Arc::new(Small { terms: Arc::new(terms), projection })
    }

    fn terms(expansion: &Expansion, model: &Table<'_>) -> Vec<(u32, f64, u32)> {
        let term = |term: &Term| (term.row.0, term.value, term.position);
        expansion.terms(model).iter().map(term).collect()
    }

    #[test]
    fn values_are_maxima_above_zero_with_their_first_position() {
        let model = Numbers::new(vec![1.0, 0.0, 0.0, 2.0, 1.0, 0.0], 2, None);
        let model = model.table();
        let new =
            |vectors, top, least| Expansion::new(small(None), &model, vectors, top, least).unwrap();
        let tokens = || TokenVectors::Rows(vec![Row(0), Row(1), Row(2)]);
        let all = [(1, 2.5, 1), (3, 2.0, 1), (0, 1.0, 0), (2, 1.0, 0)];
        assert_eq!(terms(&new(tokens(), 9, 0.0), &model), all);
        assert_eq!(terms(&new(tokens(), 2, 0.0), &model), all[..2]);
        assert_eq!(terms(&new(tokens(), 9, 2.0), &model), all[..2], "the least value is inclusive");
        assert_eq!(terms(&new(TokenVectors::Rows(vec![]), 9, 0.0), &model), []);
        let away = TokenVectors::Vectors(vec![-1.0, -1.0]);
        assert_eq!(terms(&new(away, 9, -5.0), &model), [], "never zero or less");

        // Twice the second component, then the first.
        let turned = small(Some(vec![0.0, 2.0, 1.0, 0.0]));
        let turned = Expansion::new(turned, &model, tokens(), 1, 0.0).unwrap();
        assert_eq!(terms(&turned, &model), [(2, 7.0, 1)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let model = Numbers::new(vec![1.0; 4], 2, None);
        let model = model.table();
        let refused = |vectors| Expansion::new(small(None), &model, vectors, 1, 0.0).unwrap_err();
        assert_eq!(
            refused(TokenVectors::Rows(vec![Row(1), Row(2)])),
            QueryError::NoSuchRow { row: Row(2), rows: 2 }
        );
        assert_eq!(
            refused(TokenVectors::Vectors(vec![1.0; 3])),
            QueryError::Dimension { found: 1, expected: 2 }
        );
        assert_eq!(
            refused(TokenVectors::Vectors(vec![1.0, 1.0, 1.0, f32::NAN])),
            QueryError::NotFinite { index: 1 }
        );
        let large = small(Some(vec![f32::MAX; 4]));
        let tokens = TokenVectors::Vectors(vec![1.0, 1.0, 0.0, 0.0]);
        let large = Expansion::new(large, &model, tokens, 9, 0.0).unwrap();
        assert!(large.query(&model, 0).is_none() && large.query(&model, 1).is_some());
        assert_eq!(terms(&large, &model), [(1, 0.5, 1)]);
    }

    proptest! {
        #[test]
        fn searches_of_tokens_join_to_the_formula(
            // Few distinct numbers, so that ties are common.
            rows in prop::collection::vec(-2i8..3, 2..60),
            tokens in prop::collection::vec(-1i8..2, 0..90),
            top in 0usize..12,
            least in prop_oneof![Just(0.0), Just(1.0), Just(2.0)],
        ) {
            let float = |numbers: &[i8]| -> Vec<f32> {
                numbers[..numbers.len() / 2 * 2].iter().map(|&n| f32::from(n)).collect()
            };
            let terms = Arc::new(Numbers::new(float(&rows), 2, None));
            let expander = Arc::new(Small { terms: terms.clone(), projection: None });
            let model = terms.table();
            let vectors = TokenVectors::Vectors(float(&tokens));
            let expansion = Expansion::new(expander, &model, vectors, top, least).unwrap();
            let mut part = PartOfExpansion::new(expansion.clone());
            for position in 0..expansion.tokens() {
                let query = expansion.query(&model, position).unwrap();
                let hit = |row| Some(Hit { row, score: query.score(&model, row)? });
                let mut hits: Vec<Hit> = (0..model.rows() as u32).map(Row).filter_map(hit).collect();
                hits.retain(|hit| query.filter().admits(hit.row, hit.score));
                hits.sort();
                hits.truncate(query.k());
                part.add(&hits);
            }
            prop_assert_eq!(part.into_terms(), expansion.terms(&model));
        }
    }
}

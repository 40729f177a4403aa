//! A model's numbers as engines see them.

use std::fmt::Debug;
use std::ops::Range;

use super::Row;
use super::score;

/// What has a table, for those who keep it alive: a model, or the terms of an expander.
pub trait HasTable: Debug + Send + Sync {
    /// The table.
    fn table(&self) -> Table<'_>;
}

/// How a vector and a row become a score. A property of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The cosine similarity. A row of norm zero has no score.
    #[default]
    Cosine,
    /// The dot product plus the row's bias, not clamped. Every row has a score.
    Dot,
}

crate::names! { Metric { Cosine: "cosine", Dot: "dot" } }

/// The rows of a table one by one, wherever each of them lies: for questions about a few of them.
/// Engines have a [`Table`], whose rows are one block.
///
/// # Panics
/// Methods that take a row, if the table does not have it.
pub trait TableRows {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// Components per row.
    fn dim(&self) -> usize;

    /// How a vector and a row become a score.
    fn metric(&self) -> Metric;

    /// The components of one row, `[dim]`.
    fn row(&self, row: Row) -> &[f32];

    /// The norm of one row.
    fn norm(&self, row: Row) -> f64;

    /// The bias of one row.
    fn bias(&self, row: Row) -> f32;

    /// The components of a row that engines do not have, so that a query for it needs them.
    fn beyond_engines(&self, _row: Row) -> Option<&[f32]> {
        None
    }

    /// The contract's score of one row. `None` for a row of norm zero under [`Metric::Cosine`].
    ///
    /// # Panics
    /// Also if the query has a different dimension.
    fn score(&self, query: &[f32], query_norm: f64, row: Row) -> Option<f64> {
        self.score_of_dot(score::dot(query, self.row(row)), query_norm, row)
    }

    /// The contract's score of one row from the dot product of the query and the row
    /// ([`score::dot`]).
    #[inline]
    fn score_of_dot(&self, dot: f64, query_norm: f64, row: Row) -> Option<f64> {
        match self.metric() {
            Metric::Cosine => {
                let norm = self.norm(row);
                (norm > 0.0).then(|| score::cosine(dot, query_norm, norm))
            }
            Metric::Dot => Some(dot + f64::from(self.bias(row))),
        }
    }

    /// How similar two rows are: their cosine similarity, or under [`Metric::Dot`] their dot
    /// product, without a bias. `None` if one has norm zero under [`Metric::Cosine`].
    fn similarity(&self, a: Row, b: Row) -> Option<f64> {
        match self.metric() {
            Metric::Cosine if self.norm(a) == 0.0 => None,
            Metric::Cosine => self.score(self.row(a), self.norm(a), b),
            Metric::Dot => Some(score::dot(self.row(a), self.row(b))),
        }
    }
}

impl TableRows for Table<'_> {
    fn rows(&self) -> usize {
        Self::rows(self)
    }

    fn dim(&self) -> usize {
        Self::dim(self)
    }

    fn metric(&self) -> Metric {
        Self::metric(self)
    }

    fn row(&self, row: Row) -> &[f32] {
        Self::row(self, row)
    }

    fn norm(&self, row: Row) -> f64 {
        Self::norm(self, row)
    }

    fn bias(&self, row: Row) -> f32 {
        Self::bias(self, row)
    }
}

/// A borrowed view of a model's numbers: `rows × dim` float32 components, row by row, one float64
/// norm per row, and under [`Metric::Dot`] one float32 bias per row.
///
/// # Panics
/// Methods that take a row, if the table does not have it.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    components: &'a [f32],
    norms: &'a [f64],
    dim: usize,
    metric: Metric,
    biases: Option<&'a [f32]>,
}

impl<'a> Table<'a> {
    /// A view of `components` `[rows, dim]` and `norms` `[rows]`, under [`Metric::Cosine`].
    ///
    /// # Panics
    /// If the lengths do not match, `dim` is 0, or there are 2³² rows or more.
    pub fn new(components: &'a [f32], norms: &'a [f64], dim: usize) -> Self {
        assert!(dim > 0, "a table has at least one component a row");
        assert_eq!(
            components.len(),
            norms.len() * dim,
            "one norm for each row of {dim} components"
        );
        assert!(u32::try_from(norms.len()).is_ok(), "rows are counted in 32 bits");
        Self { components, norms, dim, metric: Metric::Cosine, biases: None }
    }

    /// The same numbers under [`Metric::Dot`], with these biases `[rows]`, which are finite;
    /// without any they are zero.
    ///
    /// # Panics
    /// If there is not one bias for each row.
    pub fn under_dot(self, biases: Option<&'a [f32]>) -> Self {
        if let Some(biases) = biases {
            assert_eq!(biases.len(), self.rows(), "one bias for each row");
        }
        Self { metric: Metric::Dot, biases, ..self }
    }

    /// The same numbers of some rows, which are numbered from 0 again.
    ///
    /// # Panics
    /// If there are no such rows.
    pub fn part(&self, rows: Range<usize>) -> Self {
        Self {
            components: &self.components[rows.start * self.dim..rows.end * self.dim],
            norms: &self.norms[rows.clone()],
            biases: self.biases.map(|biases| &biases[rows]),
            ..*self
        }
    }

    /// How a vector and a row become a score.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The biases `[rows]`; `None` if all are zero.
    pub fn biases(&self) -> Option<&'a [f32]> {
        self.biases
    }

    /// The bias of one row.
    #[inline]
    pub fn bias(&self, row: Row) -> f32 {
        self.biases.map_or(0.0, |biases| biases[row.index()])
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.norms.len()
    }

    /// Components per row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// All components, `[rows, dim]`.
    pub fn components(&self) -> &'a [f32] {
        self.components
    }

    /// All norms, `[rows]`. A norm of zero marks a row that is never a neighbour.
    pub fn norms(&self) -> &'a [f64] {
        self.norms
    }

    /// The components of one row, `[dim]`.
    pub fn row(&self, row: Row) -> &'a [f32] {
        &self.components[row.index() * self.dim..][..self.dim]
    }

    /// The norm of one row.
    pub fn norm(&self, row: Row) -> f64 {
        self.norms[row.index()]
    }

    /// The contract's score of one row. `None` for a row of norm zero under [`Metric::Cosine`].
    ///
    /// # Panics
    /// Also if the query has a different dimension.
    pub fn score(&self, query: &[f32], query_norm: f64, row: Row) -> Option<f64> {
        TableRows::score(self, query, query_norm, row)
    }

    /// The contract's score of one row from the dot product of the query and the row
    /// ([`score::dot`]).
    #[inline]
    pub fn score_of_dot(&self, dot: f64, query_norm: f64, row: Row) -> Option<f64> {
        TableRows::score_of_dot(self, dot, query_norm, row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_by_both_metrics() {
        let (components, norms, biases) = ([3.0, 4.0, 0.0, 0.0], [5.0, 0.0], [0.5, -1.5]);
        let cosine = Table::new(&components, &norms, 2);
        let scores = |table: Table<'_>| [0, 1].map(|row| table.score(&[2.0, 0.0], 2.0, Row(row)));
        assert_eq!((cosine.metric(), scores(cosine)), (Metric::Cosine, [Some(0.6), None]));
        let dot = cosine.under_dot(None);
        assert_eq!((dot.metric(), scores(dot)), (Metric::Dot, [Some(6.0), Some(0.0)]));
        let biased = cosine.under_dot(Some(&biases));
        assert_eq!(scores(biased), [Some(6.5), Some(-1.5)]);
        let similarity = |table: Table<'_>, b| table.similarity(Row(0), Row(b));
        assert_eq!((similarity(cosine, 0), similarity(cosine, 1)), (Some(1.0), None));
        assert_eq!(cosine.similarity(Row(1), Row(0)), None);
        assert_eq!((similarity(biased, 0), similarity(biased, 1)), (Some(25.0), Some(0.0)));
    }

    #[test]
    fn a_part_has_the_same_scores() {
        let (components, norms) = ([3.0, 4.0, 0.0, 0.0, 1.0, 0.0], [5.0, 0.0, 1.0]);
        let biases = [0.5, -1.5, 2.0];
        let all = Table::new(&components, &norms, 2);
        for table in [all, all.under_dot(None), all.under_dot(Some(&biases))] {
            let part = table.part(1..3);
            assert_eq!((part.rows(), part.metric()), (2, table.metric()));
            for row in 0..2 {
                let of_all = table.score(&[2.0, 1.0], 2.0, Row(row + 1));
                assert_eq!(part.score(&[2.0, 1.0], 2.0, Row(row)), of_all);
            }
            assert_eq!(table.part(2..2).rows(), 0);
        }
    }

    #[test]
    #[should_panic(expected = "one bias for each row")]
    fn a_bias_for_each_row() {
        let _ = Table::new(&[1.0, 2.0], &[1.0, 2.0], 1).under_dot(Some(&[1.0]));
    }
}

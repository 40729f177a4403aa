//! A model's numbers as engines see them.

use super::Row;
use super::score;

/// A borrowed view of a model's numbers: `rows × dim` float32 components, row by row, and one float64 norm
/// per row.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    components: &'a [f32],
    norms: &'a [f64],
    dim: usize,
}

impl<'a> Table<'a> {
    /// A view of `components` `[rows, dim]` and `norms` `[rows]`.
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
        Self { components, norms, dim }
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
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: Row) -> &'a [f32] {
        &self.components[row.index() * self.dim..][..self.dim]
    }

    /// The norm of one row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn norm(&self, row: Row) -> f64 {
        self.norms[row.index()]
    }

    /// The contract's score of one row, `None` for a row of norm zero.
    ///
    /// # Panics
    /// If there is no such row, or the query has a different dimension.
    pub fn score(&self, query: &[f32], query_norm: f64, row: Row) -> Option<f64> {
        let norm = self.norm(row);
        (norm > 0.0).then(|| score::cosine(score::dot(query, self.row(row)), query_norm, norm))
    }
}

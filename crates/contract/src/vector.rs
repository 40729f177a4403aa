//! Vectors that rows are compared with, checked against their table.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::{Metric, Row, Table, TableRows, score};

/// The source of a query's components.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryVector {
    /// A row of the table; an engine gathers it where the table is stored.
    Row(Row),
    /// Components from the caller, `[dim]`.
    Components(Components),
}

/// Components from the caller, `[dim]`: those of one vector, or of one among many that were copied
/// together.
#[derive(Debug, Clone)]
pub struct Components {
    of: Arc<Vec<f32>>,
    // Small, because queries are moved often.
    from: u32,
    len: u32,
}

impl Components {
    /// A part of these.
    ///
    /// # Panics
    /// If there is no such part, or it ends beyond 2³² components.
    pub fn part(of: &Arc<Vec<f32>>, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= of.len(), "{range:?} of {}", of.len());
        Self { of: of.clone(), from: number(range.start), len: number(range.len()) }
    }

    /// `count` components of those that it is a part of, from its first one on.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn and_after(&self, count: usize) -> &[f32] {
        &self.of[self.from as usize..][..count]
    }
}

fn number(components: usize) -> u32 {
    u32::try_from(components).expect("fewer than 2³² components")
}

impl From<Vec<f32>> for Components {
    fn from(all: Vec<f32>) -> Self {
        let len = number(all.len());
        Self { of: Arc::new(all), from: 0, len }
    }
}

impl Deref for Components {
    type Target = [f32];

    #[inline]
    fn deref(&self) -> &[f32] {
        &self.of[self.from as usize..][..self.len as usize]
    }
}

impl PartialEq for Components {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl From<Vec<f32>> for QueryVector {
    fn from(components: Vec<f32>) -> Self {
        Self::Components(components.into())
    }
}

impl QueryVector {
    /// The components, `[dim]`.
    ///
    /// # Panics
    /// If the table does not have the row.
    pub fn components<'a>(&'a self, table: &Table<'a>) -> &'a [f32] {
        match self {
            Self::Row(row) => table.row(*row),
            Self::Components(components) => components,
        }
    }

    /// The same of any table.
    ///
    /// # Panics
    /// If the table does not have the row.
    pub fn components_in<'a>(&'a self, table: &'a dyn TableRows) -> &'a [f32] {
        match self {
            Self::Row(row) => table.row(*row),
            Self::Components(components) => components,
        }
    }

    /// Its norm: above zero under [`Metric::Cosine`].
    ///
    /// # Errors
    /// A vector of the wrong dimension or not finite, under [`Metric::Cosine`] also zero; a row
    /// that does not exist.
    pub fn norm(&self, table: &dyn TableRows) -> Result<f64, QueryError> {
        let norm = match self {
            Self::Row(row) if row.index() >= table.rows() => {
                return Err(QueryError::NoSuchRow { row: *row, rows: table.rows() });
            }
            Self::Row(row) => table.norm(*row),
            Self::Components(components) => {
                if components.len() != table.dim() {
                    let (found, expected) = (components.len(), table.dim());
                    return Err(QueryError::Dimension { found, expected });
                }
                score::norm(components)
            }
        };
        self.check_norm(table, norm)?;
        Ok(norm)
    }

    /// Whether a vector of the table's dimension, with this norm, can be compared with rows.
    fn check_norm(&self, table: &dyn TableRows, norm: f64) -> Result<(), QueryError> {
        match self {
            // A finite component's square is finite in float64, so the norm is finite if and only
            // if all of them are.
            Self::Components(components) if !norm.is_finite() => {
                let index = components.iter().position(|c| !c.is_finite()).unwrap_or(0);
                Err(QueryError::NotFinite { index })
            }
            _ if norm == 0.0 && table.metric() == Metric::Cosine => Err(QueryError::Zero),
            _ => Ok(()),
        }
    }
}

/// A vector that rows are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoringVector {
    /// Where its components are.
    pub vector: QueryVector,
    /// Its norm: above zero under [`Metric::Cosine`].
    pub norm: f64,
}

impl ScoringVector {
    /// Checks a vector against its table.
    ///
    /// # Errors
    /// As [`QueryVector::norm`].
    pub fn new(table: &dyn TableRows, vector: QueryVector) -> Result<Self, QueryError> {
        let norm = vector.norm(table)?;
        Ok(Self { vector, norm })
    }

    /// The same for components `[dim]` whose [norm](score::norm) is known.
    ///
    /// # Errors
    /// As [`QueryVector::norm`].
    ///
    /// # Panics
    /// If the vector has another dimension than the table.
    pub fn with_norm(
        table: &Table<'_>,
        components: Components,
        norm: f64,
    ) -> Result<Self, QueryError> {
        assert_eq!(components.len(), table.dim(), "a vector has the table's dimension");
        debug_assert!(
            norm.is_nan() || norm == score::norm(&components),
            "the norm of other components"
        );
        let vector = QueryVector::Components(components);
        vector.check_norm(table, norm)?;
        Ok(Self { vector, norm })
    }

    /// Whether the vector fits a table of this shape.
    pub fn fits(&self, table: &dyn TableRows) -> bool {
        match &self.vector {
            QueryVector::Row(row) => row.index() < table.rows(),
            QueryVector::Components(components) => components.len() == table.dim(),
        }
    }

    /// Its components, `[dim]`.
    pub fn components<'a>(&'a self, table: &Table<'a>) -> &'a [f32] {
        self.vector.components(table)
    }
}

/// Why a query is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// The caller's vector and the table have different numbers of components.
    #[error("the vector has {found} components, but the model has {expected} dimensions")]
    Dimension {
        /// The caller's number of components.
        found: usize,
        /// The table's.
        expected: usize,
    },
    /// A component is NaN, infinite or outside the range of float32.
    #[error("component {index} of the vector is not a finite float32")]
    NotFinite {
        /// The component, from 0.
        index: usize,
    },
    /// Every component is zero: no direction, so no cosine.
    #[error("the query is a zero vector: it has no direction, so it has no neighbours")]
    Zero,
    /// There is no such row.
    #[error("row {row} does not exist; the model has {rows} rows, numbered from 0")]
    NoSuchRow {
        /// The row asked for.
        row: Row,
        /// The table's number of rows.
        rows: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_what_was_copied_together_are_vectors_of_their_own() {
        let all = Arc::new(vec![1.0, 2.0, 3.0, 4.0]);
        let parts = [Components::part(&all, 0..2), Components::part(&all, 2..4)];
        assert_eq!((&*parts[0], &*parts[1]), (&[1.0, 2.0][..], &[3.0, 4.0][..]));
        assert_eq!(parts[1], Components::from(vec![3.0, 4.0]));
        assert_ne!(parts[0], parts[1]);
        assert!(std::panic::catch_unwind(|| Components::part(&all, 3..5)).is_err());
    }
}

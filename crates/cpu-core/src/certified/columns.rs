//! The vectors that a pass scans for: one for each query that ranks by one vector, and one for each
//! half-space of a formula's cover.

use contract::certificate::Lift;
use contract::{HalfSpace, Query, Ranking, Scoring, ScoringVector, Table};

use super::bounds::round_down;

/// Covers the rounding of a normal's length.
const ROUNDING: f64 = 1e-9;

/// A vector that a pass scans for.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    /// The index of its query in the pass.
    pub(crate) query: usize,
    vector: Vector<'a>,
}

#[derive(Debug)]
enum Vector<'a> {
    /// `last` is the last component of a lifted query; `norm` is that of the lifted query.
    OfQuery {
        components: &'a [f32],
        last: Option<f64>,
        norm: f64,
    },
    OfHalfSpace {
        half_space: HalfSpace,
        normal: Vec<f64>,
        norm: f64,
    },
}

/// The columns of these queries, query by query.
pub(crate) fn columns<'a>(
    queries: &[&'a Query],
    table: &Table<'a>,
    lift: &Lift,
) -> Vec<Column<'a>> {
    let mut columns = Vec::with_capacity(queries.len());
    for (index, query) in queries.iter().enumerate() {
        match query.ranking() {
            Ranking::Vector(ScoringVector { vector, norm }) => {
                let (last, norm) = (lift.beta, lift.query_norm(*norm));
                let vector = Vector::OfQuery { components: vector.components(table), last, norm };
                columns.push(Column { query: index, vector });
            }
            Ranking::Formula(scoring) => columns.extend(of_formula(index, scoring, None, table)),
        }
    }
    columns
}

/// The columns of the query at `index` for a formula whose `k`-th best score is `likely`.
pub(crate) fn of_formula<'a>(
    index: usize,
    scoring: &Scoring,
    likely: Option<f64>,
    table: &Table<'_>,
) -> impl Iterator<Item = Column<'a>> {
    scoring.cover(likely).unwrap_or_default().into_iter().map(move |half_space| {
        let normal = half_space.normal(scoring, table);
        let norm = normal.iter().map(|x| x * x).sum::<f64>().sqrt();
        Column { query: index, vector: Vector::OfHalfSpace { half_space, normal, norm } }
    })
}

impl Column<'_> {
    /// Writes the vector's components into one lane, `[dim]`.
    pub(crate) fn fill<const LANES: usize>(&self, lane: usize, vectors: &mut [[f64; LANES]]) {
        let write = |(values, x): (&mut [f64; LANES], f64)| values[lane] = x;
        match &self.vector {
            Vector::OfQuery { components, last, .. } => {
                let components = components.iter().map(|&x| f64::from(x)).chain(*last);
                vectors.iter_mut().zip(components).for_each(write);
            }
            Vector::OfHalfSpace { normal, .. } => {
                vectors.iter_mut().zip(normal.iter().copied()).for_each(write);
            }
        }
    }

    /// The length of the vector.
    pub(crate) fn norm(&self) -> f64 {
        match self.vector {
            Vector::OfQuery { norm, .. } | Vector::OfHalfSpace { norm, .. } => norm,
        }
    }

    /// Whether scores are the cosines with this vector.
    pub(crate) fn is_query(&self) -> bool {
        matches!(self.vector, Vector::OfQuery { .. })
    }

    /// A lower bound of the cosine between this vector and every row whose score may reach `floor`,
    /// so far as this column covers the row.
    pub(crate) fn floor(&self, floor: f32) -> f32 {
        match &self.vector {
            Vector::OfQuery { .. } => floor,
            Vector::OfHalfSpace { half_space, norm, .. } => {
                let cosine = half_space.threshold(f64::from(floor)) / norm - ROUNDING;
                // No row is ruled out by a normal without a direction.
                if cosine.is_nan() { f32::NEG_INFINITY } else { round_down(cosine).min(2.0) }
            }
        }
    }
}

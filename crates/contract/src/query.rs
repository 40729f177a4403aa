//! Queries that are checked against their table, and their filters.

use super::{Hit, QueryError, QueryVector, Row, RowSet, Scoring, ScoringVector, Table, TableRows};

/// A query: what rows are ranked by, the number of neighbours, and which rows may be neighbours. It
/// is checked against its table when it is created.
///
/// ```
/// use contract::{Filter, Query, QueryError, QueryVector, Row, Table};
///
/// let table = Table::new(&[1.0, 0.0, 0.0, 2.0], &[1.0, 2.0], 2);
/// let of_a_row = Query::new(&table, QueryVector::Row(Row(1)), 10, Filter::excluding(vec![Row(1)]))?;
/// let mut filter = Filter::default();
/// filter.min_score = Some(0.5);
/// let of_a_vector = Query::new(&table, vec![0.6, 0.8].into(), 3, filter)?;
/// assert_eq!(of_a_row.vectors()[0].norm, 2.0);
///
/// // An invalid query is refused before it reaches an engine.
/// let zero = Query::new(&table, vec![0.0, 0.0].into(), 3, Filter::default());
/// assert_eq!(zero.unwrap_err(), QueryError::Zero);
///
/// assert!(of_a_row.fits(&table) && of_a_vector.fits(&table));
/// # Ok::<(), QueryError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Query {
    ranking: Ranking,
    /// The maximum number of neighbours.
    pub k: usize,
    /// Which rows may be neighbours.
    pub filter: Filter,
}

/// What the rows of a query are ranked by.
#[derive(Debug, Clone)]
pub enum Ranking {
    /// The score of one vector, by the model's metric.
    Vector(ScoringVector),
    /// A formula of the cosine similarities to several vectors.
    Formula(Box<Scoring>),
}

/// Which rows and which scores may be neighbours. Applies before `k`, inside the engine.
///
/// An engine destructures it without `..`, so that a new field does not compile until the engine
/// handles it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// The rows that may be neighbours.
    pub rows: RowSet,
    /// The minimum score, inclusive.
    pub min_score: Option<f64>,
    /// The maximum score, inclusive. Below the minimum, no row passes.
    pub max_score: Option<f64>,
}

impl Filter {
    /// A filter for these rows, whatever their scores.
    pub fn of(rows: RowSet) -> Self {
        Self { rows, ..Self::default() }
    }

    /// A filter that excludes these rows, in any order and with repetitions.
    pub fn excluding(excluded: Vec<Row>) -> Self {
        Self::of(RowSet::all().less(excluded))
    }

    /// Of a table of `rows` rows, none from here on passes.
    pub fn row_limit(&self, rows: usize) -> usize {
        self.rows.row_limit(rows)
    }

    /// Whether a row with this score may be a neighbour.
    #[inline]
    pub fn admits(&self, row: Row, score: f64) -> bool {
        let Self { rows, min_score, max_score } = self;
        min_score.is_none_or(|min| score >= min)
            && max_score.is_none_or(|max| score <= max)
            && rows.contains(row)
    }
}

impl Query {
    /// Creates a query for the `k` best rows of `table` that pass `filter`. If `k` exceeds the
    /// number of rows, the answer is all rows that pass.
    ///
    /// # Errors
    /// A vector of the wrong dimension, not finite or zero; a row that does not exist.
    pub fn new(
        table: &dyn TableRows,
        vector: QueryVector,
        k: usize,
        filter: Filter,
    ) -> Result<Self, QueryError> {
        Ok(Self::of_vector(ScoringVector::new(table, vector)?, k, filter))
    }

    /// The same for a vector that is checked already.
    pub fn of_vector(vector: ScoringVector, k: usize, filter: Filter) -> Self {
        Self { ranking: Ranking::Vector(vector), k, filter }
    }

    /// Creates a query for the `k` best rows by `scoring` that pass `filter`. The vectors of the
    /// scoring are not excluded unless `filter` excludes them.
    pub fn by(scoring: Scoring, k: usize, filter: Filter) -> Self {
        let ranking = match scoring.single_vector() {
            Some(vector) => Ranking::Vector(vector.clone()),
            None => Ranking::Formula(Box::new(scoring)),
        };
        Self { ranking, k, filter }
    }

    /// The same query with other sources of the same vectors, and another filter: for a part of its
    /// table.
    #[must_use]
    pub fn moved(&self, vector: impl Fn(&ScoringVector) -> ScoringVector, filter: Filter) -> Self {
        let ranking = match &self.ranking {
            Ranking::Vector(own) => Ranking::Vector(vector(own)),
            Ranking::Formula(scoring) => Ranking::Formula(Box::new(scoring.moved(vector))),
        };
        Self { ranking, k: self.k, filter }
    }

    /// What rows are ranked by.
    pub fn ranking(&self) -> &Ranking {
        &self.ranking
    }

    /// The vectors whose scores with a row, by the model's metric, decide the row's score; at least
    /// one.
    pub fn vectors(&self) -> &[ScoringVector] {
        match &self.ranking {
            Ranking::Vector(vector) => std::slice::from_ref(vector),
            Ranking::Formula(scoring) => scoring.vectors(),
        }
    }

    /// Whether the query fits a table of this shape, so that a query made for one table can't read
    /// past the end of another, nor have rows of another.
    pub fn fits(&self, table: &dyn TableRows) -> bool {
        self.filter.rows.fits(table.rows())
            && self.vectors().iter().all(|vector| vector.fits(table))
    }

    /// The number of vectors that a certified pass scans for: one, or one for each half-space of a
    /// formula's [cover](Scoring::cover). `None` if the formula has no cover, so that no certified
    /// pass takes the query.
    pub fn columns(&self) -> Option<usize> {
        match &self.ranking {
            Ranking::Vector(_) => Some(1),
            Ranking::Formula(scoring) => scoring.cover_len(),
        }
    }

    /// The formula of a row's score.
    pub fn scoring(&self) -> Scoring {
        match &self.ranking {
            Ranking::Vector(vector) => Scoring::of_vector(vector.clone()),
            Ranking::Formula(scoring) => (**scoring).clone(),
        }
    }

    /// The score of one row, whether or not it passes the filter. `None` if it has none, see
    /// [`Scoring::score`].
    ///
    /// # Panics
    /// If the query does not fit the table, or there is no such row.
    pub fn score(&self, table: &Table<'_>, row: Row) -> Option<f64> {
        match &self.ranking {
            Ranking::Vector(vector) => table.score(vector.components(table), vector.norm, row),
            Ranking::Formula(scoring) => scoring.score_of_row(table, row),
        }
    }
}

/// Completes what was found for some queries: `search` answers those without an answer together.
///
/// # Errors
/// As `search` says.
pub fn complete<E>(
    queries: &[&Query],
    found: Vec<Option<Vec<Hit>>>,
    search: impl FnOnce(&[&Query]) -> Result<Vec<Vec<Hit>>, E>,
) -> Result<Vec<Vec<Hit>>, E> {
    let is_open = |index: &usize| found[*index].is_none();
    let open: Vec<usize> = (0..queries.len()).filter(is_open).collect();
    let mut answers: Vec<Vec<Hit>> = found.into_iter().map(Option::unwrap_or_default).collect();
    if !open.is_empty() {
        let rest: Vec<&Query> = open.iter().map(|&index| queries[index]).collect();
        for (index, hits) in open.into_iter().zip(search(&rest)?) {
            answers[index] = hits;
        }
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::RowBitmap;

    const NORMS: [f64; 2] = [1.0, 0.0];
    const TABLE: [f32; 4] = [1.0, 0.0, 0.0, 0.0];

    fn ask(vector: QueryVector) -> Result<Query, QueryError> {
        Query::new(&Table::new(&TABLE, &NORMS, 2), vector, 1, Filter::default())
    }

    #[test]
    fn rows_of_a_table_of_another_size_are_refused() {
        let table = Table::new(&[1.0, 0.0, 0.0, 2.0], &[1.0, 2.0], 2);
        for (rows, fits) in [(2, true), (3, false)] {
            let bitmap = Arc::new(RowBitmap::of_rows([Row(1)], rows, "v"));
            let filter = Filter::of(RowSet::of(bitmap));
            let query = Query::new(&table, QueryVector::Row(Row(1)), 2, filter).unwrap();
            assert_eq!(query.fits(&table), fits);
        }
    }

    #[test]
    fn what_has_no_direction_or_does_not_fit_is_refused() {
        use QueryVector::{Components, Row as InTable};
        assert!(ask(InTable(Row(0))).is_ok());
        assert_eq!(ask(InTable(Row(1))).unwrap_err(), QueryError::Zero);
        assert_eq!(
            ask(InTable(Row(2))).unwrap_err(),
            QueryError::NoSuchRow { row: Row(2), rows: 2 }
        );
        assert_eq!(ask(Components(vec![0.0, -0.0].into())).unwrap_err(), QueryError::Zero);
        assert_eq!(
            ask(Components(vec![1.0; 3].into())).unwrap_err(),
            QueryError::Dimension { found: 3, expected: 2 }
        );
        for bad in [f32::NAN, f32::INFINITY] {
            assert_eq!(
                ask(Components(vec![1.0, bad].into())).unwrap_err(),
                QueryError::NotFinite { index: 1 }
            );
        }
    }

    #[test]
    fn filters_combine() {
        let rows = RowSet::first(5).less(vec![Row(3), Row(1), Row(3)]);
        let filter = Filter { rows, min_score: Some(0.5), max_score: Some(0.8) };
        assert!(filter.admits(Row(4), 0.5), "the minimum score is inclusive");
        assert!(filter.admits(Row(4), 0.8), "and so is the maximum");
        assert!(!filter.admits(Row(4), 0.4999));
        assert!(!filter.admits(Row(4), 0.8001));
        assert!(!filter.admits(Row(5), 0.6));
        assert!(!filter.admits(Row(3), 0.6));
        assert!(!filter.admits(Row(4), f64::NAN));
        assert_eq!((filter.row_limit(3), filter.row_limit(9)), (3, 5));
    }
}

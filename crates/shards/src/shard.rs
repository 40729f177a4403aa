//! A range of a table's rows as a table of its own, and queries in its terms.

use std::ops::Range;
use std::sync::Arc;

use contract::{Filter, HasTable, Query, QueryVector, Row, ScoringVector, Table};

/// Some rows of a table, numbered from 0 again.
#[derive(Debug)]
pub struct RowRange {
    of: Arc<dyn HasTable>,
    rows: Range<usize>,
}

impl RowRange {
    /// These rows.
    ///
    /// # Panics
    /// If there are no such rows.
    pub fn new(of: Arc<dyn HasTable>, rows: Range<usize>) -> Self {
        assert!(rows.start <= rows.end && rows.end <= of.table().rows(), "rows that there are");
        Self { of, rows }
    }
}

impl HasTable for RowRange {
    fn table(&self) -> Table<'_> {
        self.of.table().part(self.rows.clone())
    }
}

/// Cuts n rows into ranges whose lengths differ by at most one, the longer ones first.
pub fn split_evenly(rows: usize, ranges: usize) -> Vec<Range<usize>> {
    let (length, longer) = (rows / ranges, rows % ranges);
    let start = |index: usize| index * length + index.min(longer);
    (0..ranges).map(|index| start(index)..start(index + 1)).collect()
}

/// A shard: its rows, and what queries for the whole table are for it.
#[derive(Debug, Clone)]
pub(crate) struct Shard {
    /// The whole table.
    pub(crate) of: Arc<dyn HasTable>,
    /// The shard's own table, which its engine has.
    pub(crate) table: Arc<dyn HasTable>,
    pub(crate) rows: Range<usize>,
}

impl Shard {
    pub(crate) fn new(of: &Arc<dyn HasTable>, rows: Range<usize>) -> Self {
        let table = Arc::new(RowRange::new(of.clone(), rows.clone()));
        Self { of: of.clone(), table, rows }
    }
}

impl Part for Shard {
    fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    fn components(&self, row: Row) -> Vec<f32> {
        self.of.table().row(row).to_vec()
    }
}

/// Some rows of a whole, one behind another, which an engine has as a table of its own.
pub(crate) trait Part {
    /// The rows, by their numbers in the whole.
    fn rows(&self) -> Range<usize>;

    /// The components of any row of the whole.
    fn components(&self, row: Row) -> Vec<f32>;

    /// The number that a row has here, if it is here.
    fn here(&self, row: Row) -> Option<Row> {
        let rows = self.rows();
        rows.contains(&row.index()).then(|| Row(row.0 - rows.start as u32))
    }

    /// The number that a row from here has in the whole.
    fn everywhere(&self, row: Row) -> Row {
        Row(row.0 + self.rows().start as u32)
    }

    /// The filter for these rows. `None` if none of them passes.
    fn filter(&self, filter: &Filter) -> Option<Filter> {
        // Without `..`, so that a new field does not compile until it is moved.
        let Filter { ref rows, min_score, max_score } = *filter;
        Some(Filter { rows: rows.part(&self.rows())?, min_score, max_score })
    }

    /// A vector of a query, as the engine of this part takes it.
    fn vector(&self, vector: &ScoringVector) -> ScoringVector {
        let moved = match &vector.vector {
            QueryVector::Components(components) => QueryVector::Components(components.clone()),
            QueryVector::Row(row) => match self.here(*row) {
                Some(row) => QueryVector::Row(row),
                None => self.components(*row).into(),
            },
        };
        ScoringVector { vector: moved, norm: vector.norm }
    }

    /// The query for this part. `None` if none of its rows passes the filter.
    fn query(&self, query: &Query) -> Option<Query> {
        let filter = self.filter(&query.filter)?;
        Some(query.moved(|vector| self.vector(vector), filter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_rows() {
        for rows in 0..20 {
            for ranges in 1..6 {
                let split = split_evenly(rows, ranges);
                assert_eq!(split.len(), ranges);
                assert_eq!(split.iter().map(ExactSizeIterator::len).sum::<usize>(), rows);
                assert!(split.windows(2).all(|two| two[0].end == two[1].start), "{split:?}");
                let (longest, shortest) = (split[0].len(), split[ranges - 1].len());
                assert!(longest - shortest <= 1, "{split:?}");
            }
        }
    }
}

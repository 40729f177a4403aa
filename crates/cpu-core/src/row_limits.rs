//! Queries of one batch that cover different numbers of rows (`Filter::first_rows`).

use std::cmp::Reverse;

use contract::{Filter, FullPassQuery, Query};

/// Anything with a filter.
pub(crate) trait Filtered {
    fn filter(&self) -> &Filter;
}

impl Filtered for Query {
    fn filter(&self) -> &Filter {
        self.filter()
    }
}

impl Filtered for FullPassQuery {
    fn filter(&self) -> &Filter {
        self.filter()
    }
}

/// Sorts indices into `batch` by the number of rows that the queries cover, most first, so that the
/// queries of a row are always a prefix, see [`count_covering`].
pub(crate) fn most_rows_first<Q: Filtered>(batch: &[&Q], indices: &mut [usize], rows: usize) {
    indices.sort_by_key(|&index| Reverse(batch[index].filter().row_limit(rows)));
}

/// How many of these queries, in that order, cover this row.
pub(crate) fn count_covering<Q: Filtered>(row: usize, queries: &[&Q], rows: usize) -> usize {
    queries.partition_point(|query| query.filter().row_limit(rows) > row)
}

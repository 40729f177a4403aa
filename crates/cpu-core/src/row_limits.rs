//! Queries of one batch that look at different numbers of rows (`Filter::first_rows`).

use std::cmp::Reverse;

use contract::{Filter, FullPassQuery, Query};

/// What has a filter.
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

/// Orders places in `batch`: the queries that look at the most of `rows` rows first, so that those a row is
/// for are always the first so many, see [`looking_at`].
pub(crate) fn most_rows_first<Q: Filtered>(batch: &[&Q], places: &mut [usize], rows: usize) {
    places.sort_by_key(|&place| Reverse(batch[place].filter().row_limit(rows)));
}

/// How many of these queries, in that order, look at this row.
pub(crate) fn looking_at<Q: Filtered>(row: usize, queries: &[&Q], rows: usize) -> usize {
    queries.partition_point(|query| query.filter().row_limit(rows) > row)
}

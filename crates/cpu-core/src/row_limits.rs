//! Queries of one batch that look at different numbers of rows (`Filter::first_rows`).

use std::cmp::Reverse;

use model_store::Query;

/// Orders places in `batch`: the queries that look at the most of `rows` rows first, so that those a row is
/// for are always the first so many, see [`looking_at`].
pub(crate) fn most_rows_first(batch: &[&Query], places: &mut [usize], rows: usize) {
    places.sort_by_key(|&place| Reverse(batch[place].filter().row_limit(rows)));
}

/// How many of these queries, in that order, look at this row.
pub(crate) fn looking_at(row: usize, queries: &[&Query], rows: usize) -> usize {
    queries.partition_point(|query| query.filter().row_limit(rows) > row)
}

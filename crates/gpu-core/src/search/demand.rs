//! The demand of a query on a pass: slots, and elements of its lists.

use contract::{Query, Ranking};

use super::abi::MAX_K;
use super::workspace::MAX_EXCLUDED;

/// The slots of a pass that a query takes: one for each column.
pub(super) fn slots(query: &Query) -> usize {
    query.columns().unwrap_or(1)
}

pub(super) fn is_formula(query: &Query) -> bool {
    matches!(query.ranking(), Ranking::Formula(_))
}

/// Whether a query's hits and excluded rows fit the device's lists.
pub(super) fn fits_device_lists(query: &Query) -> bool {
    query.k <= MAX_K && fits_list(query)
}

/// Whether a query's excluded rows fit the list of a pass.
pub(super) fn fits_list(query: &Query) -> bool {
    listed(query) <= MAX_EXCLUDED
}

/// Whether some of these queries have sets of rows.
pub(super) fn have_sets(batch: &[&Query], indices: &[usize]) -> bool {
    indices.iter().any(|&index| batch[index].filter.rows.bitmap().is_some())
}

/// The most elements of the list that a query needs: excluded rows and their slots, and words.
pub(super) fn listed(query: &Query) -> usize {
    let words = match query.ranking() {
        Ranking::Vector(_) => 0,
        Ranking::Formula(_) => query.vectors().len(),
    };
    words + 2 * query.filter.rows.excluded().len()
}

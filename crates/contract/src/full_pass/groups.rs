//! Rows that count as one.

use std::collections::HashSet;
use std::fmt;

use crate::{Hit, Row};

/// Groups of a table's rows, such as those with the same value of an attribute. Of each group, only
/// the best row that passes the filter is a hit.
///
/// ```
/// use contract::full_pass::first_of_each;
/// use contract::{Hit, Row};
///
/// let groups = vec![Some(7), None, Some(9), Some(7), None];
/// let mut hits = [3, 1, 0, 4, 2].map(|row| Hit { row: Row(row), score: 0.5 }).to_vec();
/// first_of_each(&groups, &mut hits);
/// assert_eq!(hits.iter().map(|hit| hit.row.0).collect::<Vec<_>>(), [3, 1, 4, 2]);
/// ```
pub trait Groups: fmt::Debug + Send + Sync {
    /// The group of a row. `None` if the row is in none, or the table has no such row: it counts
    /// singly.
    fn group(&self, row: Row) -> Option<u64>;
}

/// The group of each row.
impl Groups for Vec<Option<u64>> {
    fn group(&self, row: Row) -> Option<u64> {
        self.get(row.index()).copied().flatten()
    }
}

/// Keeps the first hit of each group, and all hits that are in none.
pub fn first_of_each(groups: &dyn Groups, hits: &mut Vec<Hit>) {
    let mut seen = HashSet::new();
    hits.retain(|hit| groups.group(hit.row).is_none_or(|group| seen.insert(group)));
}

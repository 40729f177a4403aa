//! Rows, and what is found: a row with its score.

use std::cmp::Ordering;
use std::fmt;

/// The index of a row of the table, from 0, in the order of the vectors file (most frequent word
/// first).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(pub u32);

impl Row {
    /// The row as an index into arrays.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A neighbour: a row and its score, which is the cosine similarity to a query or the result of a
/// `Scoring`.
///
/// Hits are ordered by rank: the smaller hit is the better one, with the higher score or, between
/// equal scores, the lower row. Scores are never NaN or −0.0, so this is a total order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The row.
    pub row: Row,
    /// The score; in [−1, 1] if it is a cosine similarity.
    pub score: f64,
}

impl Eq for Hit {}

impl Ord for Hit {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

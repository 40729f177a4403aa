//! Full passes score every row: for queries that do not rank by a single cosine similarity, and for
//! queries for the ranks of some rows.
//!
//! [`Scoring`] defines a row's score. The rest is the same as for a [`Query`]: higher scores first,
//! lower rows first between equal scores, and a [`Filter`] that applies before `k`. Its minimum
//! score applies to the score that is ranked.

mod groups;
mod list;
mod part;

pub use groups::{Groups, first_of_each};
pub use part::{FullPassPart, FullPassShare};

use std::sync::Arc;

use super::{Filter, Hit, Query, Row, Scoring, TableRows};

// Terms of `FullPassQuery::row_work`. Each is a ratio of two times, measured with the CPU's full
// scan on one thread: the time of one more query over shared vectors, and the time of one more
// vector. Measured on random tables of 20,000 × 100 and 400,000 × 50, with AVX-512, AVX2 and
// portable code. The ratios differ by up to four times, because the cost of a multiply-add does;
// these values are in the middle.

/// Cost of a query with the simplest formula.
const QUERY_WORK: usize = 10;
/// Cost of each vector of the formula.
const VECTOR_WORK: usize = 4;
/// Cost of each step of the binary search among the ranked rows.
const RANK_WORK: usize = 30;
/// This many hits cost one multiply-add per row: few rows are kept, but relatively more of a small
/// table.
const HITS_PER_WORK: usize = 32;
/// Cost of a row's group, which is looked up until there are `k` groups whose best rows are better
/// than the row; if the table has fewer groups, always.
const GROUP_WORK: usize = 100;

/// A query of a full pass: the `k` best rows by `scoring` among those that pass `filter`, the exact
/// ranks of the `ranked` rows, and how many rows that pass have higher scores than those of
/// `above`.
#[derive(Debug, Clone)]
pub struct FullPassQuery {
    /// The formula of a row's score.
    pub scoring: Scoring,
    /// The maximum number of hits.
    pub k: usize,
    /// Which rows can be hits and count for ranks.
    pub filter: Filter,
    /// The rows whose ranks are requested.
    pub ranked: Vec<Row>,
    /// The scores above which rows are counted, none of them NaN: for ranks of rows that a part of a
    /// table does not have.
    pub above: Vec<f64>,
    /// Of each of these groups, only the best row that passes is a hit. Ranks count all rows.
    pub groups: Option<Arc<dyn Groups>>,
}

impl FullPassQuery {
    /// Creates a query. `k` may be 0 to request only ranks, and may exceed the number of rows. The
    /// words of the scoring are only excluded if `filter` excludes them. `ranked` rows belong to
    /// the table that the scoring was made for, in any order; an engine refuses others, see
    /// [`fits`](Self::fits).
    pub fn new(scoring: Scoring, k: usize, filter: Filter, ranked: Vec<Row>) -> Self {
        Self { scoring, k, filter, ranked, above: Vec::new(), groups: None }
    }

    /// The full pass that gives the same answer as the search `query`: the same rows and score
    /// bits.
    pub fn of_search(query: &Query) -> Self {
        let (scoring, filter) = (query.scoring(), query.filter.clone());
        Self::new(scoring, query.k, filter, Vec::new())
    }

    /// Estimates the cost of one row of a full pass without the dot products: formula, list and
    /// ranks. In float64 multiply-adds, of which a dot product takes `dim`.
    pub fn row_work(&self) -> usize {
        let ranks = match self.ranked.len() + self.above.len() {
            0 => 0,
            ranked => RANK_WORK * (ranked + 1).ilog2() as usize,
        };
        let formula = VECTOR_WORK * self.scoring.vectors().len();
        let groups = if self.groups.is_some() { GROUP_WORK } else { 0 };
        QUERY_WORK + formula + ranks + groups + self.k / HITS_PER_WORK
    }

    /// Whether the query fits a table of this shape, so that it can't read past the table's end.
    pub fn fits(&self, table: &dyn TableRows) -> bool {
        let is_there = |row: &Row| row.index() < table.rows();
        self.filter.rows.fits(table.rows())
            && self.ranked.iter().all(is_there)
            && self.scoring.vectors().iter().all(|vector| vector.fits(table))
    }

    /// The score of one row, whether or not it passes the filter. `None` if it has no score, see
    /// [`Scoring::score`].
    ///
    /// # Panics
    /// If the query does not [fit](Self::fits) the table, or there is no such row.
    pub fn score(&self, table: &dyn TableRows, row: Row) -> Option<f64> {
        self.scoring.score_of_row(table, row)
    }
}

/// A row whose rank was requested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedRow {
    /// The row.
    pub row: Row,
    /// The row's score. `None` for a zero row, or a row that the scoring skips.
    pub score: Option<f64>,
    /// 1 + the number of rows that pass the filter and rank before this one: by a higher score, or
    /// by an equal score and a lower row. `None` if this row has no score or does not pass the
    /// filter.
    pub rank: Option<u32>,
}

/// The answer of a full pass for one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FullPassAnswer {
    /// The best `k` rows, best first.
    pub hits: Vec<Hit>,
    /// The rows whose ranks were requested, in the order of the request.
    pub ranks: Vec<RankedRow>,
    /// For each score of [`FullPassQuery::above`], in order, how many rows that pass the filter
    /// have a higher one.
    pub above: Vec<u32>,
}

//! Full passes: queries whose ranking is not that of one cosine similarity, so that every row has to be
//! scored, and queries for the ranks of some rows.
//!
//! [`Scoring`] says how a row's score is made. The rest is as for a [`Query`]: the higher
//! score first, between equal scores the lower row, and a [`Filter`] that applies before `k`, with its
//! minimum score held against the score that is ranked.

mod part;
mod scoring;

pub use part::{FullPassPart, FullPassShare};
pub use scoring::{EPSILON, MAX_SCORING_WORDS, Scoring, ScoringError, ScoringVector};

use super::{Filter, Hit, Query, QueryVector, Row, Table};

// What `FullPassQuery::row_work` is made of. Measured with the CPU's full scan as the time that one query more takes
// over vectors that others share, on one thread, against the time of one vector more: on random tables of
// 20,000 × 100 and 400,000 × 50 and with AVX-512, AVX2 and portable code. They differ by up to four times, because the
// multiply-adds that they are counted in do; these are in the middle of them.

/// A query with the simplest formula.
const QUERY_WORK: usize = 10;
/// Each vector of its formula.
const VECTOR_WORK: usize = 4;
/// Each step of the binary search among the ranked rows.
const RANK_WORK: usize = 30;
/// n hits cost one multiply-add a row: few rows are kept, but more of a small table.
const HITS_PER_WORK: usize = 32;

/// What a full pass is asked: the `k` best rows by `scoring` among those that pass `filter`, and the exact
/// ranks of the `ranked` rows.
#[derive(Debug, Clone)]
pub struct FullPassQuery {
    scoring: Scoring,
    k: usize,
    filter: Filter,
    ranked: Vec<Row>,
}

impl FullPassQuery {
    /// A query. `k` may be 0, for ranks alone, and may exceed the number of rows. The words that made the
    /// scoring are left out only if `filter` says so. `ranked` rows are rows of the table that the scoring
    /// was made for, in any order; an engine refuses others, see [`fits`](Self::fits).
    pub fn new(scoring: Scoring, k: usize, filter: Filter, ranked: Vec<Row>) -> Self {
        Self { scoring, k, filter, ranked }
    }

    /// The full pass that answers what `query` asks of a search, with the same rows and the same score bits.
    pub fn of_search(query: &Query) -> Self {
        let (scoring, filter) = (Scoring::of_search(query), query.filter().clone());
        Self { scoring, k: query.k(), filter, ranked: Vec::new() }
    }

    /// The same query for another number of hits.
    pub fn with_k(self, k: usize) -> Self {
        Self { k, ..self }
    }

    /// How a row's score is made.
    pub fn scoring(&self) -> &Scoring {
        &self.scoring
    }

    /// How many hits at most.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Which rows may be hits, and are counted by ranks.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The rows whose ranks are asked for.
    pub fn ranked(&self) -> &[Row] {
        &self.ranked
    }

    /// What one row of a full pass costs beside the dot products with the query's vectors: formula, list and ranks. In
    /// multiply-adds of float64, of which a dot product takes `dim`. An estimate.
    pub fn row_work(&self) -> usize {
        let ranks = match self.ranked.len() {
            0 => 0,
            ranked => RANK_WORK * (ranked + 1).ilog2() as usize,
        };
        let formula = VECTOR_WORK * self.scoring.vectors().len();
        QUERY_WORK + formula + ranks + self.k / HITS_PER_WORK
    }

    /// Whether the query fits a table of this shape: one made for another must not read past its end.
    pub fn fits(&self, table: &Table<'_>) -> bool {
        let is_there = |row: &Row| row.index() < table.rows();
        self.ranked.iter().all(is_there)
            && self.scoring.vectors().iter().all(|asked| match &asked.vector {
                QueryVector::Row(row) => is_there(row),
                QueryVector::Components(components) => components.len() == table.dim(),
            })
    }

    /// The score of one row, whether or not it passes the filter. `None`: it has none, see
    /// [`Scoring::score`].
    ///
    /// # Panics
    /// If the query does not [fit](Self::fits) the table, or there is no such row.
    pub fn score(&self, table: &Table<'_>, row: Row) -> Option<f64> {
        let cosine = |asked: &ScoringVector| table.score(asked.components(table), asked.norm, row);
        let cosines: Option<Vec<f64>> = self.scoring.vectors().iter().map(cosine).collect();
        self.scoring.score(&cosines?)
    }
}

/// A row whose rank was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedRow {
    /// The row.
    pub row: Row,
    /// Its score. `None` only if it has none: a zero row, or one that the scoring leaves out.
    pub score: Option<f64>,
    /// 1 + the number of rows that pass the filter and come before it: with a higher score, or an equal
    /// one and a lower row. `None` if it has no score or does not pass the filter itself.
    pub rank: Option<u32>,
}

/// What a full pass found for one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FullPassAnswer {
    /// The best `k` rows, best first.
    pub hits: Vec<Hit>,
    /// The rows whose ranks were asked for, in the order of the question.
    pub ranks: Vec<RankedRow>,
}

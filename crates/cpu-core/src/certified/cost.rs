//! Estimates the cost of a query in a certified pass, for fair scheduling.
//!
//! A pass multiplies every row, keeps the candidates, and scores them. Floors rise while it runs:
//! if rows are in random order, `k · (1 + ln(rows / k))` of them are among the best `k` of the rows
//! before them, and each of these costs as much as a certain number of products. Measured on random
//! tables of 20,000 × 100 and 400,000 × 50, with 8 such queries in a batch of 64: on the first, k =
//! 100, 300 and 1000 cost 4.4, 9.7 and 23.5 plain queries; on the second, k = 100, 300, 1000 and
//! 2032 cost 1.9, 3.5, 7.6 and 13. The estimate is within a fifth. An excluded row costs a fifth of
//! a hit if it is one of the nearest, as when searching for a next page, and almost nothing
//! otherwise; an eighth is between the two.
//!
//! Rows above a maximum score are taken one by one, 250 ns each; after a few thousand of them the
//! query is left to a full pass. Before there was that limit, one query with a maximum of −0.2 took
//! 51 ms in a table of 400,000 × 50, and 1,024 in one request let other callers wait for 1.1 s.
//!
//! A formula takes a pass over its columns, and then its candidates are scored by all of its words.
//! Of 3CosMul with 3, 5 and 9 words and of PairDirection there were 20 to 74 of these for k = 1 and
//! 10, 240 to 490 for 100 and 680 to 1,800 for 512, on random tables of 30,000 × 100 and 400,000 ×
//! 300; about twice as many with 2 words, and with 32. A multiply-add of float64 took as long as 98
//! and 190 products of AVX-512 VNNI.

use std::time::Duration;

use contract::certificate::MAX_DIM;
use contract::{Expansion, Filter, FullPassQuery, Query, Ranking, UsualCosts};
use rayon::ThreadPool;

use super::ROW_COMPONENTS;
use super::worker::MOST_ABOVE;
use crate::InstructionSet;
use crate::full_scan::is_gathered;

/// The cost of a hit, as a fraction of a thread's share of products.
const HITS_OF_SHARE: usize = 3000;

/// The cost of an excluded row, as a fraction of a hit's.
const EXCLUDED_PART: f64 = 0.125;

/// The cost of a row above the maximum score, as a fraction of a hit's; and threads that find such
/// rows, each up to its limit.
const ABOVE_PART: f64 = 0.25;
const USUAL_THREADS: usize = 2;

/// A multiply-add of float64, as a fraction of a thread's share of products.
const MULTIPLY_ADDS_OF_SHARE: usize = 1_000_000;

/// The candidates of a formula that are scored: some at least, and this part of `k · ln(rows / k)`.
const LEAST_SCORED: f64 = 60.0;
const SCORED_PART: f64 = 0.4;
/// With these numbers of words there are about twice as many.
const USUAL_WORDS: std::ops::RangeInclusive<usize> = 3..=16;

/// A query for more than this fraction of its rows is answered by the full scan.
const LARGEST_PART: usize = 16;

/// The same if the rows of its set are gathered; and rows of a scan that cost as much as a member.
const LARGEST_GATHERED_PART: usize = 4;
const ROWS_PER_MEMBER: usize = 3;

/// A formula that costs more than this many plain queries takes a full pass, although that is
/// slower: a search can't be cut into slices, so others would wait for all of it.
const LARGEST_FORMULA: usize = 32;

/// A full scan of at most this many multiply-adds is part of a search pass: it takes less than half
/// a millisecond.
pub(super) const SHORT_FULL_SCAN: usize = 2 << 20;
/// The cost of a row that is far from the one before, in multiply-adds, beside its products.
const GATHERED_ROW: usize = 64;
/// Multiply-adds of a full scan in a second, on one thread with AVX2.
const PRODUCTS_PER_SECOND: f64 = 2e9;
/// The longest time to wait for the derived table instead of scanning without it.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Multiply-adds of a full scan that cost as much as a plain query.
const PRODUCTS_PER_QUERY: usize = 1 << 16;

/// The cost of a full pass, in plain queries, with one vector and for each more: `/rank` of 10
/// words took 27 ms over 400,000 × 300 on two cores, and 64 plain queries 34 ms.
const FULL_PASS: usize = 50;
const VECTOR_OF_FULL_PASS: usize = 12;

/// What is expected of a query for all rows of at least a minimum score. If there are far more, it
/// has no certificate.
const HITS_ABOVE_MINIMUM: usize = 512;

/// The number of hits that a query usually has.
pub(super) fn expected_hits(query: &Query) -> usize {
    let is_threshold = query.k == usize::MAX && query.filter.min_score.is_some();
    if is_threshold { HITS_ABOVE_MINIMUM } else { query.k }
}

/// What of an engine decides the cost of a query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    pub(crate) rows: usize,
    pub(crate) dim: usize,
    pub(crate) instructions: InstructionSet,
    pub(crate) always_certify: bool,
    /// Whether there may be a table by rows, from which the members of sets are gathered.
    pub(crate) by_rows: bool,
}

impl Costs {
    /// Whether a certified pass may take this query.
    pub(crate) fn suits(&self, query: &Query) -> bool {
        let filter = &query.filter;
        let asked = expected_hits(query).saturating_add(filter.rows.excluded().len());
        let part = asked.saturating_mul(LARGEST_PART) <= filter.rows.at_most(self.rows);
        // The few members of a set are scored in less time than all rows are scanned.
        let is_short =
            filter.rows.bitmap().is_some() && self.full_scan_products(query) <= SHORT_FULL_SCAN;
        let fast = match query.ranking() {
            Ranking::Vector(_) => part && !is_short,
            // No sample says how many rows are above a maximum, and each of them is scored.
            Ranking::Formula(_) => {
                part && !is_short
                    && filter.max_score.is_none()
                    && self.estimate(query, filter.row_limit(self.rows)) <= LARGEST_FORMULA
            }
        };
        query.k > 0 && (fast || self.always_certify) && query.columns().is_some()
    }

    /// Whether the rows of the query's set may be gathered for it from the table by rows, with a
    /// certificate: `always`, or unless scoring them all is as fast.
    pub(super) fn may_gather(&self, query: &Query, always: bool) -> bool {
        let Filter { rows: set, min_score: _, max_score } = &query.filter;
        let asked = expected_hits(query).saturating_add(set.excluded().len());
        let part = asked.saturating_mul(LARGEST_GATHERED_PART) <= set.at_most(self.rows);
        let fast = match query.ranking() {
            Ranking::Vector(_) => part,
            Ranking::Formula(_) => {
                let cost = || self.estimate(query, self.gathered_rows(query));
                part && max_score.is_none() && cost() <= LARGEST_FORMULA
            }
        };
        set.bitmap().is_some() && query.columns().is_some() && (always || fast)
    }

    /// Rows whose scan costs as much as gathering the members of the query's set, but no more than
    /// it covers.
    fn gathered_rows(&self, query: &Query) -> usize {
        let set = &query.filter.rows;
        set.at_most(self.rows).saturating_mul(ROWS_PER_MEMBER).min(set.row_limit(self.rows))
    }

    /// The cost of a query in a certified pass over the first `limit` rows, in plain queries.
    fn estimate(&self, query: &Query, limit: usize) -> usize {
        let filter = &query.filter;
        let each = self.of_hits(expected_hits(query), limit, filter.rows.excluded().len())
            + filter.max_score.map_or(0, |_| self.of_ceiling());
        match query.ranking() {
            Ranking::Vector(_) => each,
            Ranking::Formula(scoring) => {
                let columns = query.columns().unwrap_or(1);
                columns * each + self.of_scoring(scoring.vectors().len(), query.k, limit)
            }
        }
    }

    /// Multiply-adds of float64 that a full scan takes for a query. Of a set that has few rows, it
    /// scores only these.
    pub(super) fn full_scan_products(&self, query: &Query) -> usize {
        let set = &query.filter.rows;
        let of_row = self.dim.saturating_mul(query.vectors().len());
        match set.bitmap().is_some_and(|bitmap| is_gathered(bitmap)) {
            true => set.at_most(self.rows).saturating_mul(of_row + GATHERED_ROW),
            false => set.row_limit(self.rows).saturating_mul(of_row),
        }
    }

    /// About the time that a full scan takes for these queries; zero if it is short.
    pub(super) fn full_scan_time(&self, queries: &[&Query], pool: &ThreadPool) -> Duration {
        let of_query = |query: &&Query| self.full_scan_products(query);
        let products = queries.iter().map(of_query).fold(0, usize::saturating_add);
        if products <= SHORT_FULL_SCAN {
            return Duration::ZERO;
        }
        let seconds = products as f64 / PRODUCTS_PER_SECOND / pool.current_num_threads() as f64;
        Duration::from_secs_f64(seconds).min(LONGEST_WAIT)
    }

    /// The cost, in plain queries, of a query for `k` hits among the first `limit` rows, n of them
    /// excluded; at least 1.
    fn of_hits(&self, k: usize, limit: usize, excluded: usize) -> usize {
        // The usual case.
        if k <= 10 && excluded <= 10 {
            return 1;
        }
        let plain = self.products(10, self.rows, 0);
        let cost = self.products(k, limit.min(self.rows), excluded) / plain;
        // NaN means a table without rows.
        (cost.round() as usize).max(1)
    }

    /// The additional cost of a maximum score, in plain queries: of the rows above it that a pass
    /// takes before it leaves the query to a full pass.
    fn of_ceiling(&self) -> usize {
        let hit = (self.instructions.thread_share() / HITS_OF_SHARE) as f64;
        let most_above = (MOST_ABOVE * USUAL_THREADS).min(self.rows);
        let products = most_above as f64 * ABOVE_PART * hit;
        (products / self.products(10, self.rows, 0)).ceil() as usize
    }

    /// The cost of scoring the candidates of a formula, in plain queries. It grows with the number
    /// of `words`.
    fn of_scoring(&self, words: usize, k: usize, limit: usize) -> usize {
        let (k, limit) = (k.max(1) as f64, limit.min(self.rows) as f64);
        let usual = LEAST_SCORED + SCORED_PART * k * (limit / k).ln().max(0.0);
        let scored = if USUAL_WORDS.contains(&words) { usual } else { 2.0 * usual };
        let multiply_add =
            (self.instructions.thread_share() / MULTIPLY_ADDS_OF_SHARE).max(1) as f64;
        let products = scored.min(limit) * (words * self.dim) as f64 * multiply_add;
        (products / self.products(10, self.rows, 0)).round() as usize
    }

    fn products(&self, k: usize, limit: usize, excluded: usize) -> f64 {
        let scan = limit as f64 * (self.dim + ROW_COMPONENTS) as f64;
        let hit = (self.instructions.thread_share() / HITS_OF_SHARE) as f64;
        let hits = |best: usize| {
            let best = best.min(limit) as f64;
            if best > 0.0 { best * (1.0 + (limit as f64 / best).ln()) } else { 0.0 }
        };
        scan + hit * (hits(k) + EXCLUDED_PART * hits(excluded))
    }
}

impl UsualCosts for Costs {
    fn search(&self, query: &Query) -> usize {
        if self.by_rows && query.k > 0 && self.may_gather(query, false) {
            return self.estimate(query, self.gathered_rows(query));
        }
        if !self.suits(query) {
            // Otherwise the search only finds out that a full pass has to answer it.
            let products = self.full_scan_products(query);
            let is_short = products <= SHORT_FULL_SCAN;
            return if is_short { 1 + products / PRODUCTS_PER_QUERY } else { 1 };
        }
        self.estimate(query, query.filter.row_limit(self.rows))
    }

    fn token(&self, text: &Expansion) -> usize {
        let terms = text.expander().terms().table();
        let (rows, dim) = (terms.rows(), terms.dim());
        let k = if text.top() == usize::MAX { HITS_ABOVE_MINIMUM } else { text.top() };
        let is_certified =
            self.always_certify || (k.saturating_mul(LARGEST_PART) <= rows && dim < MAX_DIM);
        let searched = if is_certified { 1 } else { FULL_PASS };
        let of_terms = Self { rows, dim, ..*self }.products(k, rows, 0);
        let ratio = of_terms / self.products(10, self.rows, 0);
        // NaN means tables without rows.
        ((searched as f64 * ratio).round() as usize).max(1)
    }

    fn full_pass(&self, query: &FullPassQuery) -> usize {
        FULL_PASS + VECTOR_OF_FULL_PASS * query.scoring.vectors().len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contract::{Row, RowBitmap, RowSet, Table};

    use super::*;

    #[test]
    fn few_members_of_a_set_are_scored_and_more_are_scanned_for() {
        let (rows, dim) = (400_000, 300);
        let instructions = InstructionSet::best();
        let costs = Costs { rows, dim, instructions, always_certify: false, by_rows: false };
        let (row, norms) = (vec![1.0; dim], [17.32]);
        let suits = |set: RowSet, k: usize| {
            let table = Table::new(&row, &norms, dim);
            costs.suits(&Query::new(&table, row.clone().into(), k, Filter::of(set)).unwrap())
        };
        let every = |step: usize| {
            let members = (0..rows as u32).step_by(step).map(Row);
            RowSet::of(Arc::new(RowBitmap::of_rows(members, rows, "v")))
        };
        assert!(suits(RowSet::all(), 10) && suits(RowSet::first(2000), 10));
        assert!(suits(every(2), 10) && suits(every(50), 10));
        assert!(!suits(every(rows), 10) && !suits(every(100), 1), "few members");
        assert!(!suits(every(50), 1000), "a large part of the members");
        assert!(!suits(every(2).limited(Some(50)), 10));
        let always = Costs { always_certify: true, ..costs };
        let table = Table::new(&row, &norms, dim);
        let filter = Filter::of(every(rows));
        let few = Query::new(&table, row.clone().into(), 10, filter).unwrap();
        assert!(always.suits(&few) && costs.search(&few) == 1);
    }

    /// Without a table by rows they are scored, at 65,536 multiply-adds for a plain query.
    #[test]
    fn few_members_cost_no_more_than_a_plain_query_where_they_are_gathered() {
        let (rows, dim) = (400_000, 300);
        let (row, norms) = (vec![1.0; dim], [17.32]);
        let table = Table::new(&row, &norms, dim);
        for instructions in InstructionSet::available() {
            for (step, k, most) in [(100, 10, 1), (100, 1000, 25), (rows / 20, 10, 1)] {
                let members = (0..rows as u32).step_by(step).map(Row);
                let set = RowSet::of(Arc::new(RowBitmap::of_rows(members, rows, "v")));
                let query = Query::new(&table, row.clone().into(), k, Filter::of(set)).unwrap();
                let [gathered, scored] = [true, false].map(|by_rows| {
                    let always_certify = false;
                    Costs { rows, dim, instructions, always_certify, by_rows }.search(&query)
                });
                assert!((1..=most).contains(&gathered), "{instructions}, {step}, {k}: {gathered}");
                assert!(scored >= gathered, "{instructions}, {step}, {k}: {scored}");
            }
        }
    }

    #[test]
    fn plain_queries_cost_one_and_larger_ones_more() {
        for instructions in InstructionSet::available() {
            let of_table =
                |rows, dim| Costs { rows, dim, instructions, always_certify: false, by_rows: true };
            for (rows, dim) in [(0, 1), (1, 300), (20_000, 100), (400_000, 50), (3_000_000, 300)] {
                let cost = of_table(rows, dim);
                assert_eq!((cost.of_hits(10, rows, 0), cost.of_hits(0, rows, 0)), (1, 1));
                assert_eq!((cost.of_hits(1, 0, 0), cost.of_hits(1, usize::MAX, 1)), (1, 1));
                let costs = [10, 100, 1000, 10_000].map(|k| cost.of_hits(k, rows, 0));
                assert!(costs.is_sorted(), "{costs:?}");
                assert!(cost.of_hits(1000, rows, 0) >= cost.of_hits(10, rows, 1000));
                assert!(cost.of_hits(1000, rows / 2, 0) <= cost.of_hits(1000, rows, 0));
            }
            let small = of_table(20_000, 100);
            assert!(small.of_hits(1000, 20_000, 0) > 3);
            let scoring = [3, 9, 32, 100].map(|words| small.of_scoring(words, 500, 20_000));
            assert!(scoring.is_sorted() && scoring[3] > 10 * scoring[0].max(1), "{scoring:?}");
            let large = of_table(2_000_000, 300);
            assert_eq!(large.of_scoring(3, 10, usize::MAX), 0);
            assert_eq!(of_table(0, 1).of_scoring(3, 10, 0), 0);
        }
    }
}

//! First floors of queries for the rows of a set: scores of some of its members.
//!
//! The bounds of a sample of strips are those of any rows. Here, members from all over the set are
//! scored by the formula, so that only they count.

use contract::certificate::Unit;
use contract::{Query, Ranking, Row, RowSet, Table};

use super::bounds::round_down;
use super::sample::{Findings, best_scores};
use crate::threads::Workers;

/// Members that are scored, at most; and at most this part of all rows.
const MEMBERS: usize = 128;
const PART: usize = 64;

/// A query for more than this part of the sampled members has no floor from them: it would be so
/// low that it saves nothing.
const LARGEST_PART: usize = 4;

/// Finds floors of the queries whose row sets have a bitmap and that have none yet, `[queries]`.
/// `units` are those of their floors.
pub(super) fn sample(
    queries: &[&Query],
    units: &[Unit],
    table: Table<'_>,
    workers: Workers<'_>,
    findings: &mut [Findings],
) {
    let members = MEMBERS.min(table.rows() / PART);
    let each = queries.iter().zip(units).zip(findings);
    let is_sampled = |query: &Query| {
        query.filter.rows.bitmap().is_some() && query.k.saturating_mul(LARGEST_PART) <= members
    };
    let has_no_floor = |findings: &Findings| findings.floor == f32::NEG_INFINITY;
    let parts = each.filter(|((query, _), found)| has_no_floor(found) && is_sampled(query));
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() {
        return;
    }
    workers.share(parts, |parts| {
        for ((query, unit), findings) in parts {
            let rows = spread(&query.filter.rows, table.rows(), members);
            let best = best_scores(query, &rows, table, workers.instructions);
            // Its k best members among these have at least this score, so the k best of all have.
            if let Some(&score) = best.get(query.k - 1) {
                let least = match query.ranking() {
                    Ranking::Vector(_) => unit.at_least(score),
                    Ranking::Formula(_) => score,
                };
                findings.floor = findings.floor.max(round_down(least));
            }
        }
    });
}

/// At most `count` members of a set, from all over it.
fn spread(set: &RowSet, rows: usize, count: usize) -> Vec<Row> {
    let Some(bitmap) = set.bitmap() else { return Vec::new() };
    let step = set.row_limit(rows).div_ceil(count).max(1);
    let starts = (0..set.row_limit(rows)).step_by(step);
    let first = |start: usize| bitmap.members_in(start..start + step).next();
    starts.filter_map(first).filter(|&row| set.contains(row)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contract::RowBitmap;

    use super::*;

    #[test]
    fn members_from_all_over_the_set_are_sampled_once() {
        let of = |rows: &mut dyn Iterator<Item = u32>| {
            RowSet::of(Arc::new(RowBitmap::of_rows(rows.map(Row), 10_000, "v")))
        };
        let third = of(&mut (0..10_000).step_by(3));
        let sampled = spread(&third, 10_000, 128);
        assert!(sampled.len() <= 128 && sampled.len() > 120, "{}", sampled.len());
        assert!(
            sampled.is_sorted_by(|a, b| a < b) && sampled.iter().all(|&row| third.contains(row))
        );
        assert!(sampled[sampled.len() - 1].0 > 9_800);
        let few = of(&mut [1, 2, 9_999].into_iter()).less(vec![Row(1)]).limited(Some(9_000));
        assert!(spread(&few, 10_000, 128).is_empty());
        assert!(spread(&of(&mut std::iter::empty()), 10_000, 128).is_empty());
    }
}

//! Ranks over shards. The shard that has a ranked row ranks it; every other shard counts the scores
//! above it. Of rows with the same score, those of shards before it rank before it, and those of
//! shards after it do not.

use std::sync::Arc;

use contract::full_pass::{Groups, first_of_each};
use contract::{FullPassAnswer, FullPassPart, FullPassQuery, Hit, RankedRow, Row, TableRows};

use crate::join::merge;
use crate::shard::Part;

/// The groups of a table's rows, for a shard whose first row is this one.
#[derive(Debug)]
struct GroupsFrom {
    of: Arc<dyn Groups>,
    first: u32,
}

impl Groups for GroupsFrom {
    fn group(&self, row: Row) -> Option<u64> {
        self.of.group(Row(self.first + row.0))
    }
}

/// Ranked rows that are scored before the caller is asked whether to go on.
const SCORED_TOGETHER: usize = 64;

/// Scores the ranked rows of a query for a whole table, by the formula. Returns whether all have
/// their scores.
pub(crate) fn score(
    part: &mut FullPassPart,
    table: &dyn TableRows,
    go_on: &dyn Fn() -> bool,
) -> bool {
    while !part.unscored().is_empty() {
        let some = part.unscored().iter().take(SCORED_TOGETHER);
        let score = |&row: &Row| part.query().score(table, row).unwrap_or(f64::NAN);
        let scores: Vec<f64> = some.map(score).collect();
        part.set_scores(&scores);
        if !part.unscored().is_empty() && !go_on() {
            return false;
        }
    }
    true
}

/// The ranked rows that have ranks, ascending, with their scores.
fn with_ranks(part: &FullPassPart) -> impl Iterator<Item = Hit> + '_ {
    let filter = &part.query().filter;
    let hits = part.distinct_ranked().iter().zip(part.ranked_scores());
    let hits = hits.map(|(&row, &score)| Hit { row, score });
    // A comparison with NaN is false.
    hits.filter(|hit| !hit.score.is_nan() && filter.admits(hit.row, hit.score))
}

/// The query for one shard, once the ranked rows have their scores. `None` if none of the shard's
/// rows passes the filter.
pub(crate) fn query(part: &FullPassPart, shard: &impl Part) -> Option<FullPassQuery> {
    let query = part.query();
    let filter = shard.filter(&query.filter)?;
    let (mut ranked, mut above) = (Vec::new(), Vec::new());
    for Hit { row, score } in with_ranks(part) {
        match shard.here(row) {
            Some(row) => ranked.push(row),
            None if row.index() < shard.rows().start => above.push(score),
            // So that equal scores are counted.
            None => above.push(score.next_down()),
        }
    }
    // Behind those, the scores that the query itself is asked to count above.
    above.extend_from_slice(&query.above);
    let scoring = query.scoring.moved(|vector| shard.vector(vector));
    let groups = query.groups.clone().map(|of| {
        let first = shard.rows().start as u32;
        Arc::new(GroupsFrom { of, first }) as Arc<dyn Groups>
    });
    Some(FullPassQuery { scoring, k: query.k, filter, ranked, above, groups })
}

/// Joins the answers of these shards, each to its own query.
pub(crate) fn join<P: Part>(
    part: &FullPassPart,
    answers: Vec<(&P, FullPassAnswer)>,
) -> FullPassAnswer {
    let mut before: Vec<(Row, u32)> = with_ranks(part).map(|hit| (hit.row, 0)).collect();
    let mut all_above = vec![0; part.query().above.len()];
    let mut lists = Vec::new();
    for (shard, FullPassAnswer { hits, ranks, above }) in answers {
        let mut ranks = ranks.into_iter().map(|ranked| ranked.rank.map_or(0, |rank| rank - 1));
        let mut above = above.into_iter();
        for (row, sum) in &mut before {
            let counted = if shard.here(*row).is_some() { ranks.next() } else { above.next() };
            *sum += counted.expect("a count for each row of the query");
        }
        all_above.iter_mut().zip(above).for_each(|(sum, counted)| *sum += counted);
        lists.push((shard, hits));
    }
    let ranked = |&row: &Row| {
        let index = part.distinct_ranked().binary_search(&row).expect("it was requested");
        let score = Some(part.ranked_scores()[index]).filter(|score| !score.is_nan());
        let known = before.binary_search_by_key(&row, |&(row, _)| row).ok();
        RankedRow { row, score, rank: known.map(|index| before[index].1 + 1) }
    };
    let ranks = part.query().ranked.iter().map(ranked).collect();
    let FullPassQuery { k, groups, .. } = part.query();
    let hits = match groups {
        None => merge(lists.into_iter(), *k),
        Some(groups) => {
            // Several shards may have rows of the same group.
            let mut hits = merge(lists.into_iter(), usize::MAX);
            first_of_each(&**groups, &mut hits);
            hits.truncate(*k);
            hits
        }
    };
    FullPassAnswer { hits, ranks, above: all_above }
}

//! Turns candidates into an answer: applies the contract's formula to every row that may still be
//! in it.

use contract::certificate::Unit;
use contract::{Hit, Query, Row, TopK};

use super::score::{ROWS, Scorer};

/// A row that may be in a query's answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) row: Row,
    /// An upper bound on its score.
    pub(crate) upper: f32,
}

/// An answer and its cost.
pub(crate) struct Rescored {
    pub(crate) hits: Vec<Hit>,
    pub(crate) candidates: usize,
    /// The number of candidates that were scored.
    pub(crate) scored: usize,
}

/// The best `k` of the candidates, whose bounds are in this unit.
///
/// Candidates come in descending order of their upper bounds, so the loop ends at the first that
/// can no longer be in the answer.
pub(crate) fn rescore<'a>(
    query: &'a Query,
    unit: Unit,
    mut candidates: Vec<Candidate>,
    scorer: &mut Scorer<'a>,
) -> Rescored {
    candidates.sort_unstable_by(|a, b| b.upper.total_cmp(&a.upper).then(a.row.cmp(&b.row)));
    scorer.turn_to(query);
    let mut best = TopK::new(query.k);
    let mut scored = 0;
    for some in candidates.chunks(ROWS) {
        let hopeless = |worst: Hit| {
            let least = unit.at_least(worst.score);
            some.first().is_some_and(|first| f64::from(first.upper) < least)
        };
        if best.worst_if_full().is_some_and(hopeless) {
            break;
        }
        scored += some.len();
        let rows = some.iter().map(|candidate| candidate.row);
        scorer.hits(rows).for_each(|hit| best.push(hit));
    }
    Rescored { hits: best.into_sorted(), candidates: candidates.len(), scored }
}

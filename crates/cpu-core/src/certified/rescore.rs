//! Turns candidates into an answer: applies the contract's formula to every row that may still be
//! in it.

use contract::certificate::Unit;
use contract::{Hit, Query, Row, TopK};

use super::score::{ROWS, Scorer, with_later};

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

/// This many candidates, or this many for each hit, come in the order of their upper bounds.
const IN_ORDER: usize = 256;
const IN_ORDER_PER_HIT: usize = 2;

/// The best `k` of the candidates, whose bounds are in this unit.
///
/// The first of them come in descending order of their upper bounds, until one can no longer be in
/// the answer. If none of these is the last, scores are dense at the threshold, and most of the
/// others have to be scored in any order: they come in that of the table, which is read faster.
pub(crate) fn rescore<'a>(
    query: &'a Query,
    unit: Unit,
    candidates: Vec<Candidate>,
    scorer: &mut Scorer<'a>,
) -> Rescored {
    scorer.turn_to(query);
    let number = candidates.len();
    let (first, others) = divide(candidates, query.k);
    let mut scoring = Scoring { scorer, unit, best: TopK::new(query.k), scored: 0 };
    for (some, later) in with_later(&first) {
        if scoring.is_hopeless(&some[0]) {
            break;
        }
        scoring.score(some, later);
    }
    let mut others = others.into_iter();
    let mut next = |scoring: &Scoring<'_, '_>| -> Vec<Candidate> {
        let of_use = others.by_ref().filter(|candidate| !scoring.is_hopeless(candidate));
        of_use.take(ROWS).collect()
    };
    let mut some = next(&scoring);
    while !some.is_empty() {
        let later = next(&scoring);
        scoring.score(&some, &later);
        some = later;
    }
    let Scoring { best, scored, .. } = scoring;
    Rescored { hits: best.into_sorted(), candidates: number, scored }
}

/// The candidates with the highest upper bounds, in descending order, and all others in the order
/// in which they were found.
fn divide(mut candidates: Vec<Candidate>, k: usize) -> (Vec<Candidate>, Vec<Candidate>) {
    let first = IN_ORDER.max(k.saturating_mul(IN_ORDER_PER_HIT));
    let mut others = Vec::new();
    if first < candidates.len() {
        let mut bounds: Vec<f32> = candidates.iter().map(|candidate| candidate.upper).collect();
        let (_, &mut least, _) = bounds.select_nth_unstable_by(first, |a, b| b.total_cmp(a));
        let is_first = |candidate: &Candidate| candidate.upper.total_cmp(&least).is_gt();
        (candidates, others) = candidates.into_iter().partition(is_first);
    }
    candidates.sort_unstable_by(|a, b| b.upper.total_cmp(&a.upper).then(a.row.cmp(&b.row)));
    (candidates, others)
}

/// The state of an answer.
struct Scoring<'a, 'q> {
    scorer: &'a mut Scorer<'q>,
    unit: Unit,
    best: TopK,
    scored: usize,
}

impl Scoring<'_, '_> {
    /// Whether a candidate can no longer be in the answer.
    fn is_hopeless(&self, candidate: &Candidate) -> bool {
        let least = self.best.worst_if_full().map(|worst| self.unit.at_least(worst.score));
        least.is_some_and(|least| f64::from(candidate.upper) < least)
    }

    /// Scores at most [`ROWS`] candidates, and then `later` ones.
    fn score(&mut self, some: &[Candidate], later: &[Candidate]) {
        self.scored += some.len();
        let [rows, later] = [some, later].map(|all| all.iter().map(|candidate| candidate.row));
        self.scorer.hits(rows, later).for_each(|hit| self.best.push(hit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bounds_come_first_and_the_others_as_they_were_found() {
        let candidate = |i: u32| Candidate { row: Row(i), upper: (i * 7919 % 1000) as f32 };
        let all: Vec<Candidate> = (0..2000).map(candidate).collect();
        for (k, ties) in [(1, 2), (200, 2), (1000, 0), (usize::MAX, 0)] {
            let (first, others) = divide(all.clone(), k);
            let expected = IN_ORDER.max(k.saturating_mul(2)).min(all.len());
            assert!((expected - ties.min(expected)..=expected).contains(&first.len()), "{k}");
            assert!(first.is_sorted_by(|a, b| (a.upper, b.row) > (b.upper, a.row)));
            assert!(others.is_sorted_by(|a, b| a.row < b.row));
            let least = first[first.len() - 1].upper;
            assert!(others.iter().all(|other| other.upper < least));
            assert_eq!(first.len() + others.len(), all.len());
        }
        let alike = |i: u32| Candidate { row: Row(i), upper: if i == 9 { f32::NAN } else { 0.5 } };
        let (first, others) = divide((0..300).map(alike).collect(), 1);
        assert!(first.len() == 1 && first[0].row == Row(9), "NaN is above all");
        assert_eq!(others.len(), 299);
    }
}

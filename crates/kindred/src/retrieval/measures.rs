//! How good a ranking is: average precision, nDCG@10 and recall@100, as `trec_eval` computes them. Equal scores rank by the
//! order of documents; a document whose score is not above 0 is not found.

use serde::Serialize;

use super::collection::Relevant;

/// Documents below this rank do not count for average precision, as in `trec_eval`.
const DEPTH: usize = 1000;
const NDCG_DEPTH: usize = 10;
const RECALL_DEPTH: usize = 100;

/// How good a ranking is, or the mean over rankings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Measures {
    /// Average precision over the first 1,000 documents; the mean over queries is MAP.
    pub map: f64,
    /// Normalised discounted cumulative gain of the first 10; a document gains its grade.
    pub ndcg_at_10: f64,
    /// The share of the relevant documents that are among the first 100.
    pub recall_at_100: f64,
}

/// The ranks of the relevant documents, from 1, in order of rank, with their grades. Those that are not found are left out.
fn ranks(scores: &[f64], relevant: &[Relevant]) -> Vec<(usize, u32)> {
    let score = |one: &Relevant| {
        let document = one.document? as usize;
        (scores[document] > 0.0).then_some((scores[document], document, one.grade))
    };
    let mut found: Vec<(f64, usize, u32)> = relevant.iter().filter_map(score).collect();
    found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let Some(&(lowest, ..)) = found.last() else { return Vec::new() };
    // How many documents come directly before each of them, those after the one before it.
    let mut before = vec![0; found.len() + 1];
    for (document, &score) in scores.iter().enumerate() {
        if score >= lowest {
            let is_before =
                |&(own, at, _): &(f64, usize, u32)| own > score || (own == score && at <= document);
            before[found.partition_point(is_before)] += 1;
        }
    }
    let mut rank = 1;
    let with_rank = found.iter().zip(before).map(|(&(.., grade), before)| {
        rank += before;
        (rank, grade)
    });
    with_rank.collect()
}

/// The average precision of the ranking by these scores, one for each document.
pub fn average_precision(scores: &[f64], relevant: &[Relevant]) -> f64 {
    precision(&ranks(scores, relevant), relevant.len())
}

fn precision(ranks: &[(usize, u32)], relevant: usize) -> f64 {
    let counted = (1..).zip(ranks).take_while(|(_, (rank, _))| *rank <= DEPTH);
    let sum = counted.fold(0.0, |sum, (count, &(rank, _))| sum + f64::from(count) / rank as f64);
    sum / relevant as f64
}

impl Measures {
    /// Of the ranking by these scores, one for each document.
    pub fn new(scores: &[f64], relevant: &[Relevant]) -> Self {
        let ranks = ranks(scores, relevant);
        let gain = |(rank, grade): (usize, u32)| f64::from(grade) / (rank as f64 + 1.0).log2();
        let counted = ranks.iter().copied().filter(|(rank, _)| *rank <= NDCG_DEPTH);
        // Not `sum`, which is -0 where nothing was found.
        let gained = counted.map(gain).fold(0.0, |sum, gain| sum + gain);
        let mut grades: Vec<u32> = relevant.iter().map(|one| one.grade).collect();
        grades.sort_unstable_by(|a, b| b.cmp(a));
        let ideal: f64 = (1..=NDCG_DEPTH).zip(grades).map(gain).sum();
        let found = ranks.iter().filter(|(rank, _)| *rank <= RECALL_DEPTH).count();
        Self {
            map: precision(&ranks, relevant.len()),
            ndcg_at_10: gained / ideal,
            recall_at_100: found as f64 / relevant.len() as f64,
        }
    }

    /// The mean over queries, at least one.
    pub fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Self {
            map: mean(|one| one.map),
            ndcg_at_10: mean(|one| one.ndcg_at_10),
            recall_at_100: mean(|one| one.recall_at_100),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::index::best;
    use super::*;

    fn relevant(of: &[(u32, u32)]) -> Vec<Relevant> {
        of.iter().map(|&(document, grade)| Relevant { document: Some(document), grade }).collect()
    }

    #[test]
    fn measures_are_those_computed_by_hand() {
        // The ranking is 3, 1, 0, 2; the relevant ones are at 1 and 3, and one is not in the collection.
        let scores = [2.0, 3.0, 1.0, 4.0, 0.0];
        let mut all = relevant(&[(0, 1), (3, 2)]);
        all.push(Relevant { document: None, grade: 1 });
        let found = Measures::new(&scores, &all);
        assert_eq!(found.map, (1.0 + 2.0 / 3.0) / 3.0);
        // 2 / log2(2) + 1 / log2(4), of 2 / log2(2) + 1 / log2(3) + 1 / log2(4).
        assert_eq!(found.ndcg_at_10, 2.5 / (2.0 + 1.0 / 3f64.log2() + 0.5));
        assert_eq!(found.recall_at_100, 2.0 / 3.0);
        let none = Measures::new(&scores, &relevant(&[(4, 1)]));
        assert_eq!(none, Measures::default(), "a score of 0 is not found");
        assert!(none.map.is_sign_positive() && none.ndcg_at_10.is_sign_positive());
        assert_eq!(Measures::mean(&[found, none]).recall_at_100, 1.0 / 3.0);
    }

    #[test]
    fn depths_are_kept() {
        // Document n has rank n + 1.
        let scores: Vec<f64> = (0..2000).map(|n| f64::from(3000 - n)).collect();
        for (document, expected) in [
            (9, (0.1, 1.0 / 11f64.log2(), 1.0)),
            (10, (1.0 / 11.0, 0.0, 1.0)),
            (99, (0.01, 0.0, 1.0)),
            (100, (1.0 / 101.0, 0.0, 0.0)),
            (999, (0.001, 0.0, 0.0)),
            (1000, (0.0, 0.0, 0.0)),
        ] {
            let found = Measures::new(&scores, &relevant(&[(document, 1)]));
            assert_eq!((found.map, found.ndcg_at_10, found.recall_at_100), expected, "{document}");
        }
    }

    #[test]
    fn ties_rank_by_document() {
        let scores = [1.0; 4];
        for document in 0..4 {
            let precision = average_precision(&scores, &relevant(&[(document, 1)]));
            assert_eq!(precision, 1.0 / f64::from(document + 1));
        }
    }

    proptest! {
        #[test]
        fn ranks_are_those_of_the_sorted_ranking(
            scores in prop::collection::vec((-1..6).prop_map(f64::from), 1..40),
            picked in prop::collection::btree_set(0u32..40, 1..10),
        ) {
            let picked: Vec<(u32, u32)> =
                picked.into_iter().filter(|&at| (at as usize) < scores.len()).map(|at| (at, 1)).collect();
            let order = best(&scores, scores.len());
            let expected: Vec<usize> = (1..)
                .zip(&order)
                .filter(|(_, (document, _))| picked.contains(&(*document, 1)))
                .map(|(rank, _)| rank)
                .collect();
            let found: Vec<usize> =
                ranks(&scores, &relevant(&picked)).into_iter().map(|(rank, _)| rank).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

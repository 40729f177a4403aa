//! The best hits of a stream.

use std::collections::BinaryHeap;

use super::Hit;

/// The best `k` hits of a stream, without sorting the stream: a heap with the worst hit on top.
#[derive(Debug, Clone)]
pub struct TopK {
    k: usize,
    // `Hit` orders better hits first, so the heap's maximum is the worst one.
    heap: BinaryHeap<Hit>,
}

impl TopK {
    /// An empty list that will keep at most `k` hits.
    pub fn new(k: usize) -> Self {
        // Not reserved in full: k may be the number of rows and most lists stay short.
        Self { k, heap: BinaryHeap::with_capacity(k.min(1024)) }
    }

    /// Whether a hit would be kept. Cheap; call it before any expensive work.
    #[inline]
    pub fn admits(&self, hit: Hit) -> bool {
        self.heap.len() < self.k || self.heap.peek().is_some_and(|worst| hit < *worst)
    }

    /// The worst hit, once there are `k`: nothing that ranks after it will be kept.
    pub fn worst_if_full(&self) -> Option<Hit> {
        if self.heap.len() < self.k { None } else { self.heap.peek().copied() }
    }

    /// Adds a hit if it is among the best `k` so far.
    pub fn push(&mut self, hit: Hit) {
        if self.heap.len() < self.k {
            self.heap.push(hit);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit < *worst
        {
            *worst = hit;
        }
    }

    /// Adds all hits of `other`.
    pub fn merge(&mut self, other: TopK) {
        for hit in other.heap {
            self.push(hit);
        }
    }

    /// The hits, best first.
    pub fn into_sorted(self) -> Vec<Hit> {
        self.heap.into_sorted_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keeps_what_sorting_everything_would_keep(
            // Few distinct scores, so that ties are common.
            scores in prop::collection::vec(-4i8..4, 0..60),
            k in 0usize..70,
            split in 0usize..60,
        ) {
            let hits: Vec<Hit> = scores
                .iter()
                .enumerate()
                .map(|(row, &s)| Hit { row: Row(row as u32), score: f64::from(s) / 4.0 })
                .collect();
            let mut sorted = hits.clone();
            sorted.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap().then(a.row.0.cmp(&b.row.0)));
            sorted.truncate(k);

            let (first, second) = hits.split_at(split.min(hits.len()));
            let (mut one, mut other) = (TopK::new(k), TopK::new(k));
            for &hit in first {
                let admitted = one.admits(hit);
                let before = one.clone().into_sorted();
                one.push(hit);
                prop_assert_eq!(admitted, one.clone().into_sorted() != before);
            }
            second.iter().rev().for_each(|&hit| other.push(hit));
            one.merge(other);
            prop_assert_eq!(one.into_sorted(), sorted);
        }
    }
}

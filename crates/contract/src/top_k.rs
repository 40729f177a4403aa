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
        ) {
            let hits: Vec<Hit> = scores
                .iter()
                .enumerate()
                .map(|(row, &s)| Hit { row: Row(row as u32), score: f64::from(s) / 4.0 })
                .collect();
            let mut sorted = hits.clone();
            sorted.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap().then(a.row.0.cmp(&b.row.0)));
            sorted.truncate(k);

            let mut best = TopK::new(k);
            for &hit in &hits {
                let before = best.clone().into_sorted();
                let is_kept = best.worst_if_full().is_none_or(|worst| hit < worst) && k > 0;
                best.push(hit);
                prop_assert_eq!(is_kept, best.clone().into_sorted() != before);
            }
            prop_assert_eq!(best.into_sorted(), sorted);
        }
    }
}

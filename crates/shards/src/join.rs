//! Joins what shards found.

use contract::Hit;

use crate::shard::Part;

/// The `k` best of the hits of all shards, best first. Each list is best first, in the shard's own
/// rows.
pub(crate) fn merge<'a, P: Part + 'a>(
    lists: impl Iterator<Item = (&'a P, Vec<Hit>)>,
    k: usize,
) -> Vec<Hit> {
    let moved = |(part, mut hits): (&P, Vec<Hit>)| {
        hits.iter_mut().for_each(|hit| hit.row = part.everywhere(hit.row));
        hits
    };
    let mut merged = lists.map(moved).reduce(|a, b| of_two(a, b, k)).unwrap_or_default();
    merged.truncate(k);
    merged
}

/// The `k` best of two lists.
fn of_two(a: Vec<Hit>, b: Vec<Hit>, k: usize) -> Vec<Hit> {
    if a.is_empty() {
        return b;
    }
    let length = k.min(a.len() + b.len());
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    let mut merged = Vec::with_capacity(length);
    while merged.len() < length {
        let from_b = b.peek().is_some_and(|b| a.peek().is_none_or(|a| b < a));
        merged.extend(if from_b { b.next() } else { a.next() });
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use contract::{HasTable, Row, Table};
    use proptest::prelude::*;

    use crate::shard::Shard;
    use crate::split_evenly;

    #[derive(Debug)]
    struct Zeros(Vec<f32>, Vec<f64>);

    impl HasTable for Zeros {
        fn table(&self) -> Table<'_> {
            Table::new(&self.0, &self.1, 1)
        }
    }

    proptest! {
        #[test]
        fn the_best_of_all_in_order(
            // Few distinct scores, so that ties are common.
            scores in prop::collection::vec(0u8..4, 0..60),
            (shards, k) in (1usize..6, 0usize..70),
        ) {
            let rows = scores.len();
            let of: Arc<dyn HasTable> = Arc::new(Zeros(vec![0.0; rows], vec![0.0; rows]));
            let hit = |row: usize| Hit { row: Row(row as u32), score: f64::from(scores[row]) };
            let mut all: Vec<Hit> = (0..rows).map(hit).collect();
            all.sort();
            let ranges = split_evenly(rows, shards);
            let shards: Vec<Shard> = ranges.into_iter().map(|rows| Shard::new(&of, rows)).collect();
            let list = |shard: &Shard| {
                let here = |hit: &Hit| Some(Hit { row: shard.here(hit.row)?, ..*hit });
                let mut best: Vec<Hit> = all.iter().filter_map(here).collect();
                best.truncate(k);
                best
            };
            let merged = merge(shards.iter().map(|shard| (shard, list(shard))), k);
            all.truncate(k);
            prop_assert_eq!(merged, all);
        }
    }
}

//! Finds the most frequent words with a prefix.

use std::collections::BinaryHeap;

use fst::automaton::{Automaton, Str};
use fst::{IntoStreamer, Streamer};

use super::Words;
use contract::Row;

/// Maximum number of words to visit in the map before the search switches to row order. They take
/// about as long as the text of a hundred thousand words.
const MAX_FROM_MAP: usize = 10_000;

impl Words {
    /// The first rows, at most `limit`, whose words start with `prefix`, by exact bytes: the most
    /// frequent such words. The empty prefix matches all words.
    ///
    /// Rare and frequent prefixes take microseconds. Only if many words match and all of them are
    /// rare, the text of all words is read: milliseconds for millions of words. So do not call it
    /// on latency-critical threads.
    pub fn with_prefix(&self, prefix: &str, limit: usize) -> Vec<Row> {
        self.few_with_prefix(prefix, limit, MAX_FROM_MAP)
            .unwrap_or_else(|| self.first_with_prefix(prefix, limit))
    }

    /// Searches the map, where words with a common prefix are adjacent, but in alphabetical order,
    /// so all of them must be visited. `None` if there are more than `most`.
    fn few_with_prefix(&self, prefix: &str, limit: usize, most: usize) -> Option<Vec<Row>> {
        let mut first = BinaryHeap::with_capacity(limit + 1);
        let mut matches = self.index.search(Str::new(prefix).starts_with()).into_stream();
        for _ in 0..most {
            let Some((_, row)) = matches.next() else { return Some(first.into_sorted_vec()) };
            let Some(row) = u32::try_from(row).ok().map(Row) else { continue };
            if row.index() < self.len() {
                first.push(row);
                if first.len() > limit {
                    first.pop();
                }
            }
        }
        matches.next().is_none().then(|| first.into_sorted_vec())
    }

    /// Searches the text, in row order: if many words match, the first ones are found soon.
    fn first_with_prefix(&self, prefix: &str, limit: usize) -> Vec<Row> {
        let rows = (0..self.len() as u32).map(Row);
        rows.filter(|&row| self.bytes(row).starts_with(prefix.as_bytes())).take(limit).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mapped::Mapped;

    fn words_of(words: &[String]) -> Words {
        let (mut text, mut offsets) = (String::new(), vec![0_u64]);
        for word in words {
            text.extend([word, "\n"]);
            offsets.push(text.len() as u64);
        }
        let mut rows: Vec<(&str, u64)> = words.iter().map(String::as_str).zip(0..).collect();
        rows.sort_unstable();
        let index = fst::Map::from_iter(rows).unwrap();
        let copy = |bytes: &[u8]| Mapped::copy_of(bytes).unwrap();
        let offsets: &[u8] = bytemuck::cast_slice(&offsets);
        let (text, index) = (copy(text.as_bytes()), copy(index.as_fst().as_bytes()));
        Words::new("m".as_ref(), text, index, copy(offsets), 0..offsets.len()).unwrap()
    }

    proptest! {
        #[test]
        fn both_ways_find_the_first_rows_that_begin_so(
            words in prop::collection::hash_set("[abé]{1,4}", 1..60),
            prefix in "[abé]{0,2}",
            limit in 0usize..20,
        ) {
            let words: Vec<String> = words.into_iter().collect();
            let all: Vec<u32> = (0..words.len() as u32)
                .filter(|&row| words[row as usize].starts_with(&prefix))
                .collect();
            let expected = all[..limit.min(all.len())].to_vec();
            let found = |rows: Vec<Row>| rows.into_iter().map(|row| row.0).collect::<Vec<_>>();
            let words = words_of(&words);
            prop_assert_eq!(&found(words.with_prefix(&prefix, limit)), &expected);
            prop_assert_eq!(&found(words.first_with_prefix(&prefix, limit)), &expected);
            for most in [0, 1, 5, 60] {
                let few = words.few_with_prefix(&prefix, limit, most).map(found);
                prop_assert_eq!(few, (all.len() <= most).then(|| expected.clone()));
            }
        }
    }
}

//! The rows that live at a position, in their order, and the numbers that they get in the new base.

use std::ops::Range;

use contract::Row;

use crate::state::{DeadRows, Snapshot, TailRow};

const WORD_BITS: usize = u64::BITS as usize;

/// The rows of a base that live, and how many do before each word of them.
#[derive(Debug)]
pub(crate) struct LiveRows {
    words: Vec<u64>,
    before: Vec<u32>,
    rows: usize,
    count: u32,
}

impl LiveRows {
    /// Of the first rows, those that are not dead.
    pub(crate) fn new(dead: &DeadRows, rows: usize) -> Self {
        let words = dead.live_bits(rows);
        let mut count = 0;
        let before = words.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        let before = before.collect();
        Self { words, before, rows, count }
    }

    /// Number of rows that live.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The place of a row among those that live, if it does.
    pub(crate) fn place(&self, row: Row) -> Option<Row> {
        let (word, bit) = (row.index() / WORD_BITS, row.index() % WORD_BITS);
        let bits = *self.words.get(word)?;
        let below = bits & ((1 << bit) - 1);
        (bits >> bit & 1 == 1).then(|| Row(self.before[word] + below.count_ones()))
    }

    /// Those among some rows that live, as ranges.
    pub(crate) fn runs(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let end = rows.end.min(self.rows);
        let mut at = rows.start;
        std::iter::from_fn(move || {
            let start = self.next(at, end, 0)?;
            let stop = self.next(start, end, u64::MAX).unwrap_or(end);
            at = stop;
            Some(start..stop)
        })
    }

    /// The first row from here on whose bit, after `^ flip`, is 1.
    fn next(&self, from: usize, end: usize, flip: u64) -> Option<usize> {
        let mut at = from;
        while at < end {
            let rest = (self.words[at / WORD_BITS] ^ flip) >> (at % WORD_BITS);
            if rest != 0 {
                return Some(at + rest.trailing_zeros() as usize).filter(|&found| found < end);
            }
            at = (at / WORD_BITS + 1) * WORD_BITS;
        }
        None
    }
}

/// The rows behind the base that live, in order.
pub(crate) fn live_tail(snapshot: &Snapshot) -> impl Iterator<Item = TailRow<'_>> {
    let rows = snapshot.tail().flat_map(|part| (0..part.len()).map(|place| part.row(place)));
    rows.filter(|row| !snapshot.dead().contains(row.row))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_and_places_are_those_of_the_rows_that_live(
            rows in 0_usize..400,
            dead in prop::collection::btree_set(0_u32..400, 0..200),
            ends in (0_usize..450, 0_usize..450),
        ) {
            let mut set = DeadRows::default();
            dead.iter().for_each(|&row| set.insert(Row(row)));
            let live = LiveRows::new(&set, rows);
            let expected: Vec<usize> =
                (0..rows).filter(|&row| !dead.contains(&(row as u32))).collect();
            prop_assert_eq!(live.count() as usize, expected.len());
            for row in 0..450 {
                let place = expected.binary_search(&row).ok().map(|place| Row(place as u32));
                prop_assert_eq!(live.place(Row(row as u32)), place);
            }
            let asked = ends.0.min(ends.1)..ends.0.max(ends.1);
            let runs: Vec<Range<usize>> = live.runs(asked.clone()).collect();
            prop_assert!(runs.windows(2).all(|two| two[0].end < two[1].start));
            let found: Vec<usize> = runs.into_iter().flatten().collect();
            let wanted = expected.into_iter().filter(|row| asked.contains(row));
            prop_assert_eq!(found, wanted.collect::<Vec<_>>());
        }
    }
}

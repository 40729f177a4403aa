//! Rows that were replaced or deleted: a set that grows, of which each snapshot keeps its own.

use std::sync::Arc;

use contract::Row;

/// Rows of a page.
const PAGE_ROWS: usize = 1 << 16;
const WORD_BITS: usize = u64::BITS as usize;

type Page = [u64; PAGE_ROWS / WORD_BITS];

/// A set of rows. A clone shares its pages until one of the two changes them.
#[derive(Debug, Clone, Default)]
pub struct DeadRows {
    pages: Arc<Vec<Option<Arc<Page>>>>,
    count: usize,
}

impl DeadRows {
    /// Whether the row is in the set.
    pub fn contains(&self, row: Row) -> bool {
        let page = self.pages.get(row.index() / PAGE_ROWS).and_then(Option::as_ref);
        page.is_some_and(|page| {
            let bit = row.index() % PAGE_ROWS;
            page[bit / WORD_BITS] >> (bit % WORD_BITS) & 1 == 1
        })
    }

    /// Number of rows in the set.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no row is in the set.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first `rows` rows that are not in the set, as bits: row `i` is bit `i` mod 64 of word
    /// `i` / 64, from the lowest. The bits behind them are 0.
    pub fn live_bits(&self, rows: usize) -> Vec<u64> {
        let mut words = vec![u64::MAX; rows.div_ceil(WORD_BITS)];
        let per_page = PAGE_ROWS / WORD_BITS;
        for (page, words) in self.pages.iter().zip(words.chunks_mut(per_page)) {
            let dead = page.iter().flat_map(|page| page.iter());
            words.iter_mut().zip(dead).for_each(|(word, dead)| *word &= !dead);
        }
        if let Some(last) = words.last_mut().filter(|_| !rows.is_multiple_of(WORD_BITS)) {
            *last &= (1 << (rows % WORD_BITS)) - 1;
        }
        words
    }

    /// The rows of this set that are not in another, in order.
    pub(crate) fn but_not(&self, other: &Self) -> impl Iterator<Item = Row> {
        let none = [0; PAGE_ROWS / WORD_BITS];
        let pages = self.pages.iter().enumerate();
        pages
            .flat_map(move |(number, page)| {
                let before = other.pages.get(number).and_then(Option::as_ref);
                let is_same = match (page, before) {
                    (Some(page), Some(before)) => Arc::ptr_eq(page, before),
                    (page, _) => page.is_none(),
                };
                let page = page.as_deref().filter(|_| !is_same);
                let words = page.into_iter().flatten().enumerate();
                words.flat_map(move |(word, bits)| {
                    let new = bits & !before.map_or(&none, |before| &**before)[word];
                    let first = number * PAGE_ROWS + word * WORD_BITS;
                    (0..WORD_BITS)
                        .filter(move |bit| new >> bit & 1 == 1)
                        .map(move |bit| first + bit)
                })
            })
            .map(|row| Row(row as u32))
    }

    /// Adds a row that is not in the set.
    pub(crate) fn insert(&mut self, row: Row) {
        debug_assert!(!self.contains(row), "a row dies once");
        let (page, bit) = (row.index() / PAGE_ROWS, row.index() % PAGE_ROWS);
        let pages = Arc::make_mut(&mut self.pages);
        if pages.len() <= page {
            pages.resize(page + 1, None);
        }
        let page = pages[page].get_or_insert_with(|| Arc::new([0; PAGE_ROWS / WORD_BITS]));
        Arc::make_mut(page)[bit / WORD_BITS] |= 1 << (bit % WORD_BITS);
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_has_what_was_added_and_clones_keep_what_they_had(
            rows in prop::collection::btree_set(0_u32..200_000, 0..60),
            asked in prop::collection::vec(0_u32..300_000, 0..60),
            total in 0_usize..250_000,
            split in 0_usize..60,
        ) {
            let mut set = DeadRows::default();
            let mut before = None;
            for (index, &row) in rows.iter().enumerate() {
                if index == split {
                    before = Some(set.clone());
                }
                set.insert(Row(row));
            }
            let first: BTreeSet<u32> = rows.iter().copied().take(split).collect();
            let before = before.unwrap_or_else(|| set.clone());
            for (set, rows) in [(&set, &rows), (&before, &first)] {
                prop_assert_eq!((set.len(), set.is_empty()), (rows.len(), rows.is_empty()));
                for &row in rows.iter().chain(&asked) {
                    prop_assert_eq!(set.contains(Row(row)), rows.contains(&row));
                }
                let others: Vec<u32> = set.but_not(&before).map(|row| row.0).collect();
                let expected = rows.iter().copied().filter(|row| !first.contains(row));
                prop_assert_eq!(others, expected.collect::<Vec<_>>());
                let live = set.live_bits(total);
                prop_assert_eq!(live.len(), total.div_ceil(64));
                let ones: u32 = live.iter().map(|word| word.count_ones()).sum();
                let dead = rows.range(..total as u32).count();
                prop_assert_eq!(ones as usize, total - dead);
                for &row in rows.iter().filter(|&&row| (row as usize) < total) {
                    prop_assert_eq!(live[row as usize / 64] >> (row % 64) & 1, 0);
                }
            }
        }
    }
}

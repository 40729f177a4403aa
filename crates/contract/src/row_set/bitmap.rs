//! A set of rows of one table as a bitmap, which many queries share.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Row;

/// Rows of a word of a bitmap.
pub const WORD_ROWS: usize = u64::BITS as usize;

/// Rows of a strip of a bitmap: half a word.
pub const STRIP_ROWS: usize = WORD_ROWS / 2;

/// The identity of the next bitmap.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Rows of one table: bit `r` of word `w` stands for row `64 · w + r`.
///
/// It is made once and never changes. What is derived from it, such as a copy on a device, can be
/// kept by its [identity](Self::id). Two bitmaps are equal if they are the same one.
///
/// ```
/// use contract::{Row, RowBitmap};
///
/// let bitmap = RowBitmap::of_rows([Row(3), Row(70)], 100, "v1");
/// assert_eq!((bitmap.len(), bitmap.end(), bitmap.words()[1]), (2, 71, 1 << 6));
/// assert!(bitmap.contains(Row(70)) && !bitmap.contains(Row(4)) && !bitmap.contains(Row(1000)));
/// assert!(bitmap.any_in(64..96) && !bitmap.any_in(4..70));
/// ```
pub struct RowBitmap {
    id: u64,
    version: Arc<str>,
    rows: usize,
    words: Vec<u64>,
    count: usize,
    end: usize,
    /// The parts that shards have asked for.
    parts: Mutex<Vec<(Range<usize>, Arc<Self>)>>,
}

impl RowBitmap {
    /// A set of rows of a table of `rows` rows, `[rows / 64]`, rounded up. Bits past its end are
    /// cleared. `version` is that of the model whose rows they are.
    ///
    /// # Panics
    /// If there are not as many words.
    pub fn new(mut words: Vec<u64>, rows: usize, version: impl Into<Arc<str>>) -> Self {
        assert_eq!(words.len(), rows.div_ceil(WORD_ROWS), "words for {rows} rows");
        if let (Some(last), in_last @ 1..) = (words.last_mut(), rows % WORD_ROWS) {
            *last &= (1u64 << in_last) - 1;
        }
        let last = words.iter().rposition(|&word| word != 0);
        let end = last.map_or(0, |index| (index + 1) * WORD_ROWS - leading_zeros(words[index]));
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            version: version.into(),
            rows,
            count: words.iter().map(|word| word.count_ones() as usize).sum(),
            end,
            words,
            parts: Mutex::default(),
        }
    }

    /// The same for a list of rows, in any order and with repetitions.
    ///
    /// # Panics
    /// If the table has no such row.
    pub fn of_rows(
        members: impl IntoIterator<Item = Row>,
        rows: usize,
        version: impl Into<Arc<str>>,
    ) -> Self {
        let mut words = vec![0u64; rows.div_ceil(WORD_ROWS)];
        for row in members {
            assert!(row.index() < rows, "row {row} of {rows}");
            words[row.index() / WORD_ROWS] |= 1u64 << (row.index() % WORD_ROWS);
        }
        Self::new(words, rows, version)
    }

    /// The rows that are in both sets, which are of the same table and version.
    ///
    /// # Panics
    /// If they are of tables of different sizes.
    pub fn and(&self, other: &Self) -> Self {
        assert_eq!(self.rows, other.rows, "sets of one table");
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
        Self::new(words, self.rows, self.version.clone())
    }

    /// Its identity: no other bitmap of this process has the same.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The version of the model whose rows they are.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Rows of the table.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bits, `[rows / 64]`, rounded up. Those past the table's end are 0.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The number of rows in the set.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no row is in the set.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// No row from here on is in the set: the last member's row and 1, or 0.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Bytes of memory that it takes, with the parts that it keeps.
    pub fn bytes(&self) -> usize {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_parts: usize = parts.iter().map(|(_, part)| part.bytes()).sum();
        size_of::<Self>() + size_of_val(&self.words[..]) + of_parts
    }

    /// Whether a row is in the set.
    #[inline]
    pub fn contains(&self, row: Row) -> bool {
        let word = self.words.get(row.index() / WORD_ROWS);
        word.is_some_and(|word| word >> (row.index() % WORD_ROWS) & 1 == 1)
    }

    /// The members of the n-th strip: bit `r` stands for row `32 · strip + r`.
    #[inline]
    pub fn strip(&self, strip: usize) -> u32 {
        let word = self.words.get(strip / 2).copied().unwrap_or(0);
        (word >> (strip % 2 * STRIP_ROWS)) as u32
    }

    /// Whether some of these rows are in the set.
    pub fn any_in(&self, rows: Range<usize>) -> bool {
        self.in_range(rows).any(|(_, word, mask)| word & mask != 0)
    }

    /// Whether all of these rows that the table has are in the set.
    pub fn all_in(&self, rows: Range<usize>) -> bool {
        self.in_range(rows).all(|(_, word, mask)| word & mask == mask)
    }

    /// How many of these rows are in the set.
    pub fn count_in(&self, rows: Range<usize>) -> usize {
        if rows.start == 0 && rows.end >= self.end {
            return self.count;
        }
        self.in_range(rows).map(|(_, word, mask)| (word & mask).count_ones() as usize).sum()
    }

    /// Those of these rows that are in the set, ascending.
    pub fn members_in(&self, rows: Range<usize>) -> impl Iterator<Item = Row> + '_ {
        self.in_range(rows).flat_map(|(first, word, mask)| rows_of(first, word & mask))
    }

    /// Those of these rows that the table has and the set has not, ascending.
    pub fn missing_in(&self, rows: Range<usize>) -> impl Iterator<Item = Row> + '_ {
        self.in_range(rows).flat_map(|(first, word, mask)| rows_of(first, !word & mask))
    }

    /// The words that have some of these rows: the first row of each, its bits, and those of them
    /// that stand for these rows.
    fn in_range(&self, rows: Range<usize>) -> impl Iterator<Item = (usize, u64, u64)> + '_ {
        let end = rows.end.min(self.rows);
        let start = rows.start.min(end);
        let words = start / WORD_ROWS..end.div_ceil(WORD_ROWS);
        words.map(move |index| {
            let first = index * WORD_ROWS;
            // The range ends behind the word's first row.
            let within = (end - first).min(WORD_ROWS);
            let from_start = u64::MAX << start.saturating_sub(first);
            (first, self.words[index], from_start & u64::MAX >> (WORD_ROWS - within))
        })
    }

    /// The set for some rows, numbered from 0 again, as a shard has them. It is made once for each
    /// range, and kept as long as this. Rows behind the table's end, which a table that grows may
    /// have got since, are not in the set.
    ///
    /// # Panics
    /// If the range ends before it starts.
    pub fn part(&self, rows: &Range<usize>) -> Arc<Self> {
        assert!(rows.start <= rows.end, "{rows:?}");
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, part)) = parts.iter().find(|(of, _)| of == rows) {
            return part.clone();
        }
        let (first, shift) = (rows.start / WORD_ROWS, rows.start % WORD_ROWS);
        let word = |index: usize| self.words.get(index).copied().unwrap_or(0);
        let shifted = |index: usize| match shift {
            0 => word(index),
            _ => word(index) >> shift | word(index + 1) << (WORD_ROWS - shift),
        };
        let words = (first..first + rows.len().div_ceil(WORD_ROWS)).map(shifted).collect();
        let part = Arc::new(Self::new(words, rows.len(), self.version.clone()));
        parts.push((rows.clone(), part.clone()));
        part
    }
}

fn leading_zeros(word: u64) -> usize {
    word.leading_zeros() as usize
}

/// The rows that the bits of a word stand for, ascending; `first` is that of its lowest bit.
fn rows_of(first: usize, mut word: u64) -> impl Iterator<Item = Row> {
    std::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let row = Row((first + word.trailing_zeros() as usize) as u32);
        word &= word - 1;
        Some(row)
    })
}

impl PartialEq for RowBitmap {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl fmt::Debug for RowBitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, version, rows, count, .. } = self;
        write!(f, "RowBitmap({id}: {count} of {rows} rows of version {version})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bitmap_has_what_its_list_has(
            members in prop::collection::btree_set(0u32..300, 0..60),
            rows in 300usize..330,
            start in 0usize..340,
            length in 0usize..340,
        ) {
            let list: Vec<Row> = members.iter().copied().map(Row).collect();
            let bitmap = RowBitmap::of_rows(list.iter().rev().copied(), rows, "v");
            prop_assert_eq!(bitmap.len(), list.len());
            prop_assert_eq!(bitmap.end(), list.last().map_or(0, |row| row.index() + 1));
            prop_assert_eq!(bitmap.members_in(0..rows).collect::<Vec<_>>(), &list[..]);
            let range = start..start + length;
            let in_range = |row: &Row| range.contains(&row.index());
            let expected: Vec<Row> = list.iter().copied().filter(in_range).collect();
            prop_assert_eq!(bitmap.members_in(range.clone()).collect::<Vec<_>>(), &expected[..]);
            prop_assert_eq!(bitmap.count_in(range.clone()), expected.len());
            prop_assert_eq!(bitmap.any_in(range.clone()), !expected.is_empty());
            let there = (0..rows as u32).map(Row).filter(in_range);
            let missing: Vec<Row> = there.filter(|row| !expected.contains(row)).collect();
            prop_assert_eq!(bitmap.missing_in(range.clone()).collect::<Vec<_>>(), &missing[..]);
            prop_assert_eq!(bitmap.all_in(range), missing.is_empty());
            for row in (0..340).map(Row) {
                let is_there = members.contains(&row.0);
                prop_assert_eq!(bitmap.contains(row), is_there);
                let strip = bitmap.strip(row.index() / STRIP_ROWS);
                prop_assert_eq!(strip >> (row.index() % STRIP_ROWS) & 1 == 1, is_there);
            }
        }

        #[test]
        fn a_part_is_the_set_of_a_range(
            members in prop::collection::vec(0u32..300, 0..60),
            start in 0usize..=400,
            length in 0usize..=400,
        ) {
            let bitmap = RowBitmap::of_rows(members.into_iter().map(Row), 300, "v");
            // Rows that the table does not have are in no set.
            let range = start..start + length;
            let part = bitmap.part(&range);
            let here = |row: Row| Row(row.0 - start as u32);
            let expected: Vec<Row> = bitmap.members_in(range.clone()).map(here).collect();
            prop_assert_eq!(part.rows(), range.len());
            prop_assert_eq!(part.members_in(0..400).collect::<Vec<_>>(), expected);
            prop_assert_eq!(part.id(), bitmap.part(&range).id(), "it is made once");
            prop_assert!(bitmap.bytes() > part.bytes());
        }
    }

    #[test]
    fn bits_past_the_end_are_cleared() {
        for rows in [0usize, 1, 63, 64, 65, 128] {
            let bitmap = RowBitmap::new(vec![u64::MAX; rows.div_ceil(64)], rows, "v");
            assert_eq!((bitmap.len(), bitmap.end(), bitmap.is_empty()), (rows, rows, rows == 0));
            assert!(bitmap.all_in(0..rows) && !bitmap.contains(Row(rows as u32)));
        }
        let all = RowBitmap::new(vec![u64::MAX; 2], 100, "v");
        let one = RowBitmap::of_rows([Row(99)], 100, "v");
        assert_eq!(all.and(&one).members_in(0..100).collect::<Vec<_>>(), [Row(99)]);
        assert_ne!(one, all.and(&one), "another bitmap, though of the same rows");
    }
}

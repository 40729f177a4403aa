//! Which rows may be neighbours: all, the first n, those of a bitmap; each less a few.

mod bitmap;

use std::ops::Range;
use std::sync::Arc;

use crate::Row;
pub use bitmap::{RowBitmap, STRIP_ROWS, WORD_ROWS};

/// From this many rows on, a list is joined with another by sorting both.
const MANY_ROWS: usize = 64;

/// The rows that may be neighbours: all rows of a table, or its first n, or those of a bitmap, or
/// those of both; less a few rows.
///
/// It is all that an engine knows of vocabulary limits, excluded words and attributes.
///
/// ```
/// use std::sync::Arc;
///
/// use contract::{Row, RowBitmap, RowSet};
///
/// let even = RowBitmap::of_rows((0..50).map(|row| Row(2 * row)), 100, "v1");
/// let set = RowSet::of(Arc::new(even)).limited(Some(9)).less(vec![Row(4), Row(0), Row(5)]);
/// assert_eq!(set.members(100).collect::<Vec<_>>(), [2, 6, 8].map(Row));
/// assert!(set.contains(Row(6)) && !set.contains(Row(4)) && !set.contains(Row(10)));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowSet {
    limit: Option<u32>,
    bitmap: Option<Arc<RowBitmap>>,
    /// Ascending, each once.
    excluded: Vec<Row>,
}

/// The parts of a [`RowSet`], for engines: a row is in the set if each of them admits it.
///
/// An engine destructures it without `..`, so that a new part does not compile until the engine
/// handles it.
#[derive(Debug, Clone, Copy)]
pub struct RowSetParts<'a> {
    /// Only rows before this one are in the set.
    pub limit: Option<u32>,
    /// Only rows of this bitmap are in the set.
    pub bitmap: Option<&'a Arc<RowBitmap>>,
    /// These rows are not in the set. Ascending, each once.
    pub excluded: &'a [Row],
}

impl RowSet {
    /// All rows.
    pub fn all() -> Self {
        Self::default()
    }

    /// The first n rows: the most frequent words.
    pub fn first(rows: u32) -> Self {
        Self { limit: Some(rows), ..Self::default() }
    }

    /// The rows of a bitmap.
    pub fn of(bitmap: Arc<RowBitmap>) -> Self {
        Self { bitmap: Some(bitmap), ..Self::default() }
    }

    /// Those of these rows that are among the first n, if there is a limit.
    #[must_use]
    pub fn limited(mut self, rows: Option<u32>) -> Self {
        self.limit = [self.limit, rows].into_iter().flatten().min();
        self
    }

    /// Those of these rows that are in the bitmap as well.
    ///
    /// # Panics
    /// If they are of tables of different sizes.
    #[must_use]
    pub fn within(mut self, bitmap: Arc<RowBitmap>) -> Self {
        self.bitmap = Some(match self.bitmap {
            Some(own) => Arc::new(own.and(&bitmap)),
            None => bitmap,
        });
        self
    }

    /// The rows less these, which may be in any order, repeated, or not in the set.
    #[must_use]
    pub fn less(mut self, mut rows: Vec<Row>) -> Self {
        if self.excluded.is_empty() {
            self.excluded = rows;
        } else if rows.len() < MANY_ROWS {
            for row in rows {
                if let Err(index) = self.excluded.binary_search(&row) {
                    self.excluded.insert(index, row);
                }
            }
        } else {
            self.excluded.append(&mut rows);
        }
        if !self.excluded.is_sorted_by(|a, b| a < b) {
            self.excluded.sort_unstable();
            self.excluded.dedup();
        }
        self
    }

    /// Whether it has all rows of any table.
    pub fn is_all(&self) -> bool {
        // Without `..`: a new part must be checked here, or it does not compile.
        let Self { limit, bitmap, excluded } = self;
        limit.is_none() && bitmap.is_none() && excluded.is_empty()
    }

    /// What it is made of.
    pub fn parts(&self) -> RowSetParts<'_> {
        let Self { limit, bitmap, excluded } = self;
        RowSetParts { limit: *limit, bitmap: bitmap.as_ref(), excluded }
    }

    /// Only rows before this one are in the set, if there is a limit.
    pub fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// Only rows of this bitmap are in the set, if there is one.
    pub fn bitmap(&self) -> Option<&Arc<RowBitmap>> {
        self.bitmap.as_ref()
    }

    /// The rows that are left out one by one: ascending, each once.
    pub fn excluded(&self) -> &[Row] {
        &self.excluded
    }

    /// Whether a row is left out one by one.
    #[inline]
    fn excludes(&self, row: Row) -> bool {
        self.excluded.binary_search(&row).is_ok()
    }

    /// Whether a row of the table is in the set.
    #[inline]
    pub fn contains(&self, row: Row) -> bool {
        self.limit.is_none_or(|limit| row.0 < limit)
            && self.bitmap.as_ref().is_none_or(|bitmap| bitmap.contains(row))
            && !self.excludes(row)
    }

    /// Of a table of `rows` rows, none from here on is in the set.
    #[inline]
    pub fn row_limit(&self, rows: usize) -> usize {
        let limit = self.limit.map_or(rows, |limit| rows.min(limit as usize));
        self.bitmap.as_ref().map_or(limit, |bitmap| limit.min(bitmap.end()))
    }

    /// At most this many of a table's `rows` rows are in the set: quickly found, for plans.
    pub fn at_most(&self, rows: usize) -> usize {
        let limit = self.row_limit(rows);
        self.bitmap.as_ref().map_or(limit, |bitmap| limit.min(bitmap.len()))
    }

    /// How many of a table's `rows` rows are in the set.
    pub fn count(&self, rows: usize) -> usize {
        let limit = self.row_limit(rows);
        let bitmap = self.bitmap.as_ref();
        let before = bitmap.map_or(limit, |bitmap| bitmap.count_in(0..limit));
        let is_counted =
            |row: &&Row| row.index() < limit && bitmap.is_none_or(|bitmap| bitmap.contains(**row));
        before - self.excluded.iter().filter(is_counted).count()
    }

    /// The members among a table's `rows` rows, ascending.
    pub fn members(&self, rows: usize) -> impl Iterator<Item = Row> + '_ {
        self.members_in(0..rows)
    }

    /// The members among these rows of the table, ascending.
    pub fn members_in(&self, rows: Range<usize>) -> impl Iterator<Item = Row> + '_ {
        let end = self.row_limit(rows.end);
        let start = rows.start.min(end);
        let (in_bitmap, in_table) = match &self.bitmap {
            Some(bitmap) => (Some(bitmap.members_in(start..end)), 0..0),
            None => (None, start as u32..end as u32),
        };
        let before = in_bitmap.into_iter().flatten().chain(in_table.map(Row));
        before.filter(|&row| !self.excludes(row))
    }

    /// Whether some of these rows, such as those of a strip or of a tile, may be in the set: rows
    /// that are left out one by one are not looked at.
    #[inline]
    pub fn meets(&self, rows: Range<usize>) -> bool {
        let end = self.limit.map_or(rows.end, |limit| rows.end.min(limit as usize));
        rows.start < end && self.bitmap.as_ref().is_none_or(|bitmap| bitmap.any_in(rows.start..end))
    }

    /// Whether all of these rows that the table has are in the set.
    pub fn has_all(&self, rows: Range<usize>) -> bool {
        // Without `..`: a new part must be checked here, or it does not compile.
        let Self { limit, bitmap, excluded } = self;
        let next = excluded.partition_point(|row| row.index() < rows.start);
        limit.is_none_or(|limit| rows.end <= limit as usize)
            && excluded.get(next).is_none_or(|row| row.index() >= rows.end)
            && bitmap.as_ref().is_none_or(|bitmap| bitmap.all_in(rows))
    }

    /// Whether the set can be one of a table of this many rows.
    pub fn fits(&self, rows: usize) -> bool {
        self.bitmap.as_ref().is_none_or(|bitmap| bitmap.rows() == rows)
    }

    /// The set for some rows of the table, numbered from 0 again. `None` if none of them is in it,
    /// whatever is left out one by one. A bitmap that has all of them is left out.
    pub fn part(&self, rows: &Range<usize>) -> Option<Self> {
        // Without `..`: a new part must be moved here, or it does not compile.
        let Self { limit, bitmap, excluded } = self;
        if !self.meets(rows.clone()) {
            return None;
        }
        let end = limit.map_or(rows.end, |limit| rows.end.min(limit as usize));
        let of_here = excluded.partition_point(|row| row.index() < rows.start)
            ..excluded.partition_point(|row| row.index() < rows.end);
        let here = |row: &Row| Row(row.0 - rows.start as u32);
        Some(Self {
            limit: (end < rows.end).then(|| (end - rows.start) as u32),
            bitmap: bitmap.as_ref().and_then(|bitmap| match *rows == (0..bitmap.rows()) {
                true => Some(bitmap.clone()),
                // Of a table that grew, most rows were never replaced.
                false => Some(bitmap.part(rows)).filter(|part| part.len() < rows.len()),
            }),
            excluded: excluded[of_here].iter().map(here).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROWS: usize = 200;

    /// A set, and whether it has each row, by a plain loop.
    fn sets() -> impl Strategy<Value = (RowSet, Vec<bool>)> {
        let few = prop::collection::vec((0..ROWS as u32).prop_map(Row), 0..9);
        let bits = prop::option::of(prop::collection::vec(any::<bool>(), ROWS));
        let again = few.clone();
        (prop::option::of(0..250u32), bits, few, again).prop_map(|(limit, bits, few, more)| {
            let mut set = RowSet::all().less(few.clone()).limited(limit).less(more.clone());
            if let Some(bits) = &bits {
                let rows = (0..ROWS as u32).map(Row).filter(|row| bits[row.index()]);
                set = set.within(Arc::new(RowBitmap::of_rows(rows, ROWS, "v")));
            }
            let has = |row: usize| {
                let excluded = |list: &[Row]| list.iter().any(|excluded| excluded.index() == row);
                limit.is_none_or(|limit| row < limit as usize)
                    && bits.as_ref().is_none_or(|bits| bits[row])
                    && !excluded(&few)
                    && !excluded(&more)
            };
            (set, (0..ROWS).map(has).collect::<Vec<bool>>())
        })
    }

    proptest! {
        #[test]
        fn every_question_has_the_answer_of_a_plain_loop(
            (set, has) in sets(),
            start in 0..ROWS,
            length in 1..ROWS,
        ) {
            let range = start..ROWS.min(start + length);
            let members: Vec<Row> =
                (0..ROWS as u32).map(Row).filter(|row| has[row.index()]).collect();
            prop_assert_eq!(set.members(ROWS).collect::<Vec<_>>(), &members[..]);
            let of_range = members.iter().copied().filter(|row| range.contains(&row.index()));
            let of_range = of_range.collect::<Vec<_>>();
            prop_assert_eq!(set.members_in(range.clone()).collect::<Vec<_>>(), of_range);
            prop_assert_eq!(set.count(ROWS), members.len());
            prop_assert!(set.at_most(ROWS) >= members.len());
            prop_assert!(members.last().is_none_or(|row| row.index() < set.row_limit(ROWS)));
            (0..ROWS).for_each(|row| assert_eq!(set.contains(Row(row as u32)), has[row]));
            let in_range = &has[range.clone()];
            prop_assert!(set.meets(range.clone()) || !in_range.contains(&true));
            prop_assert_eq!(set.has_all(range.clone()), !in_range.contains(&false));
            match set.part(&range) {
                None => prop_assert!(!in_range.contains(&true)),
                Some(part) => {
                    prop_assert!(part.fits(range.len()));
                    let is_full = part.bitmap().is_some_and(|bitmap| bitmap.len() == range.len());
                    prop_assert!(!is_full || range == (0..ROWS));
                    let there = (0..range.len()).map(|row| part.contains(Row(row as u32)));
                    prop_assert_eq!(there.collect::<Vec<_>>(), in_range);
                }
            }
        }
    }

    #[test]
    fn rows_that_are_left_out_are_ascending_and_distinct() {
        let rows = |rows: &[u32]| rows.iter().copied().map(Row).collect::<Vec<_>>();
        let set = RowSet::all().less(rows(&[3, 1, 3]));
        assert_eq!(set.excluded(), rows(&[1, 3]));
        let more = set.clone().less(rows(&[9, 3, 0, 9]));
        assert_eq!(more.excluded(), rows(&[0, 1, 3, 9]));
        let many = set.less((0..100).rev().map(Row).collect());
        assert_eq!(many.excluded(), (0..100).map(Row).collect::<Vec<_>>());
    }

    #[test]
    fn limits_and_bitmaps_are_joined() {
        let set = RowSet::first(9).limited(None).limited(Some(12)).limited(Some(5));
        assert_eq!((set.limit(), set.row_limit(3), set.row_limit(7)), (Some(5), 3, 5));
        let of =
            |rows: &[u32]| Arc::new(RowBitmap::of_rows(rows.iter().copied().map(Row), 70, "v"));
        let both = RowSet::of(of(&[1, 2, 3, 69])).within(of(&[2, 3, 4, 69])).limited(Some(69));
        assert_eq!(both.members(70).collect::<Vec<_>>(), [Row(2), Row(3)]);
        assert_eq!((both.count(70), both.at_most(70)), (2, 3));
        assert!(both.fits(70) && !both.fits(71) && RowSet::first(5).fits(3));
        let nothing = RowSet::of(of(&[]));
        assert_eq!((nothing.row_limit(70), nothing.count(70)), (0, 0));
        assert!(!nothing.meets(0..70) && !nothing.has_all(0..70) && nothing.has_all(9..9));
    }
}

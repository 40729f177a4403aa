//! A byte for each row of a column, the *bin* of its value, so that a test of all rows reads bytes
//! instead of values.
//!
//! The bins of a column are ranges of values with about as many rows each; a value that many rows
//! have is alone in its bin. A test divides the bins: all of a bin's rows meet it, none do, or
//! their values must be looked at. Of a comparison, only the bins with its ends are such.
//!
//! ```text
//! price < 80       values   12.5   79    95    399    15    80
//!                  bins        1    3     5      9     1     3
//!                  class     all open  none   none   all  open   →  look at 79 and 80
//! ```
//!
//! This is the column sketch of Hentschel, Kester and Idreos (SIGMOD 2018), with the smallest and
//! the largest value of each bin, so that bins of one value are never open.

use std::fmt;

use rayon::prelude::*;

use super::classes::{BINS, Class, Classes};

/// Rows of the sample from which the ranges are taken.
const SAMPLE: usize = 1 << 14;

/// Rows that one core puts into bins at a time.
const PER_TASK: usize = 1 << 16;

/// Numbers that can be put into bins.
pub trait Ordered: Copy + PartialOrd + Send + Sync + fmt::Debug {
    /// The number behind this one, or this one if it is the last.
    fn successor(self) -> Self;
}

impl Ordered for i64 {
    fn successor(self) -> Self {
        self.saturating_add(1)
    }
}

impl Ordered for u32 {
    fn successor(self) -> Self {
        self.saturating_add(1)
    }
}

impl Ordered for f64 {
    fn successor(self) -> Self {
        self.next_up()
    }
}

/// The bins of a column's rows. A missing value is in the bin of what stands in its place.
pub struct Bins<T> {
    of_rows: Vec<u8>,
    /// `[BINS]`, without NaN.
    ranges: Ranges<T>,
}

impl<T> fmt::Debug for Bins<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bins of {} rows", self.of_rows.len())
    }
}

impl<T: Ordered> Bins<T> {
    /// Puts each value into a bin, on all cores: 3 to 8 ns of one core for each.
    pub(super) fn new(values: &[T]) -> Self {
        let starts = Starts::of(values);
        let mut of_rows = vec![0; values.len()];
        let tasks = of_rows.par_chunks_mut(PER_TASK).zip(values.par_chunks(PER_TASK));
        let ranges = tasks.map(|(bins, values)| starts.fill(values, bins));
        let ranges = ranges.reduce(|| vec![None; BINS], joined);
        Self { of_rows, ranges }
    }

    /// `[rows]`
    pub fn of_rows(&self) -> &[u8] {
        &self.of_rows
    }

    /// Divides the bins by their smallest and largest values.
    pub fn classes(&self, of: impl Fn(T, T) -> Class) -> Classes {
        Classes::new(|bin| self.ranges[bin].map(|(least, most)| of(least, most)))
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        Self::bytes_of(self.of_rows.len())
    }

    /// Bytes of memory for a column of this many rows.
    pub(super) fn bytes_of(rows: usize) -> usize {
        rows + BINS * size_of::<Option<(T, T)>>()
    }
}

/// The smallest and the largest value of each bin, where it has one.
type Ranges<T> = Vec<Option<(T, T)>>;

/// Those of bins in two parts of a column.
fn joined<T: Ordered>(mut ranges: Ranges<T>, others: Ranges<T>) -> Ranges<T> {
    for (range, other) in ranges.iter_mut().zip(others) {
        if let Some((least, most)) = other {
            extend(range, least);
            extend(range, most);
        }
    }
    ranges
}

#[inline]
fn extend<T: Ordered>(range: &mut Option<(T, T)>, value: T) {
    match range {
        Some((least, most)) => {
            if value < *least {
                *least = value;
            }
            if value > *most {
                *most = value;
            }
        }
        None if is_number(value) => *range = Some((value, value)),
        None => {}
    }
}

fn is_number<T: Ordered>(value: T) -> bool {
    value.partial_cmp(&value).is_some()
}

/// Where bins start: the value at index `i` is the first of bin `i + 1`.
struct Starts<T> {
    /// `[BINS - 1]`, ascending, where the last is repeated up to the end; or none.
    padded: Vec<T>,
    /// Number of bins, less one.
    count: usize,
}

impl<T: Ordered> Starts<T> {
    fn of(values: &[T]) -> Self {
        let step = values.len().div_ceil(SAMPLE).max(1);
        // Not at equal distances, which may be those of a pattern in the column.
        let place = |index: usize| index * step + (index.wrapping_mul(0x9E37_79B9) >> 7) % step;
        let sample = (0..values.len().div_ceil(step)).filter_map(|n| values.get(place(n)));
        let mut sample: Vec<T> = sample.copied().filter(|&value| is_number(value)).collect();
        sample.sort_unstable_by(|a, b| a.partial_cmp(b).expect("numbers have an order"));
        // The smallest share of the sample with which there are not too many.
        let mut share = sample.len() / BINS + 1;
        let mut padded = loop {
            let starts = starts_of(&sample, share);
            if starts.len() < BINS {
                break starts;
            }
            share += share / 8 + 1;
        };
        let count = padded.len();
        if let Some(&last) = padded.last() {
            padded.resize(BINS - 1, last);
        }
        Self { padded, count }
    }

    /// Puts values into bins. Returns the ranges of these.
    fn fill(&self, values: &[T], bins: &mut [u8]) -> Ranges<T> {
        let mut ranges = vec![None; BINS];
        // Without starts, all are in the first bin.
        let starts = self.padded.first_chunk::<{ BINS - 1 }>();
        for (bin, &value) in bins.iter_mut().zip(values) {
            let index = starts.map_or(0, |starts| at_most(starts, value).min(self.count));
            *bin = index as u8;
            extend(&mut ranges[index], value);
        }
        ranges
    }
}

/// How many of ascending numbers are at most another: a binary search without branches.
#[inline]
fn at_most<T: Ordered>(starts: &[T; BINS - 1], value: T) -> usize {
    let mut count = 0;
    for half in [128, 64, 32, 16, 8, 4, 2, 1] {
        count += if starts[count + half - 1] <= value { half } else { 0 };
    }
    count
}

/// The starts of bins that have at most this share of a sorted sample each, but for those of one
/// value. A value with such a share is alone in its bin.
fn starts_of<T: Ordered>(sample: &[T], share: usize) -> Vec<T> {
    let (mut starts, mut in_bin) = (Vec::new(), 0);
    for run in sample.chunk_by(|a, b| a == b) {
        let is_alone = run.len() >= share;
        if is_alone || in_bin + run.len() > share || starts.is_empty() {
            starts.push(run[0]);
            in_bin = 0;
        }
        in_bin += run.len();
        if is_alone {
            starts.push(run[0].successor());
            in_bin = 0;
        }
    }
    starts.dedup();
    starts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compares the bins of values with the values themselves.
    fn check<T: Ordered>(values: &[T]) -> Bins<T> {
        let bins = Bins::new(values);
        assert_eq!(bins.of_rows().len(), values.len());
        for (&bin, &value) in bins.of_rows().iter().zip(values) {
            match bins.ranges[usize::from(bin)] {
                Some((least, most)) => assert!(!(value < least || value > most), "{value:?}"),
                None => assert!(!is_number(value), "{value:?}"),
            }
        }
        let there: Vec<_> = bins.ranges.iter().flatten().collect();
        assert!(there.windows(2).all(|pair| pair[0].1 < pair[1].0), "they are apart");
        bins
    }

    proptest! {
        #[test]
        fn bins_are_ranges_that_have_their_values(
            few in prop::collection::vec(-3i64..3, 0..600),
            many in prop::collection::vec(any::<i64>(), 0..600),
            codes in prop::collection::vec(0u32..400, 0..600),
            numbers in prop::collection::vec(any::<f64>(), 0..600),
        ) {
            check(&few);
            check(&many);
            check(&codes);
            check(&numbers);
        }
    }

    #[test]
    fn frequent_values_are_alone_and_others_share_the_rows() {
        // Rows 0, 3, 6 and so on have 7; a value in a hundred is 8; others are different.
        let value = |row: usize| match row {
            row if row % 3 == 0 => 7,
            row if row % 100 == 1 => 8,
            row => 1000 + row as i64 * 7_654_321 % 1_000_003,
        };
        let values: Vec<i64> = (0..300_000).map(value).collect();
        let bins = check(&values);
        for frequent in [7, 8] {
            assert!(bins.ranges.contains(&Some((frequent, frequent))), "{frequent}");
        }
        let mut counts = vec![0; BINS];
        bins.of_rows().iter().for_each(|&bin| counts[usize::from(bin)] += 1);
        let of_one = |bin: usize| bins.ranges[bin].is_some_and(|(least, most)| least == most);
        let most = (0..BINS).filter(|&bin| !of_one(bin)).map(|bin| counts[bin]).max().unwrap();
        assert!(most < values.len() / 60, "{most} rows in a bin");
        // All values that a small column has are alone.
        for distinct in [1, 2, 100] {
            let values: Vec<u32> = (0..50_000).map(|row| row * 7 % distinct).collect();
            let bins = check(&values);
            assert_eq!(bins.ranges.iter().flatten().count(), distinct as usize);
        }
        let nothing = check(&[f64::NAN; 100]);
        assert!(nothing.ranges.iter().all(Option::is_none));
    }
}

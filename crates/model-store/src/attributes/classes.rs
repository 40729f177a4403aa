//! Which bins meet a test, and the rows in them, 64 to a word.
//!
//! Bins that meet a test are mostly a range or two. Then bytes are compared side by side, by
//! instructions that every processor has, and 8 results at a time become bits by a multiplication.
//! Otherwise, each byte is looked up.

/// Number of bins of a column.
pub const BINS: usize = 256;

/// Rows of a word.
const WORD_ROWS: usize = u64::BITS as usize;

/// Up to this many ranges of bins are compared one after the other.
const MAX_RANGES: usize = 4;

/// Whether the rows of a bin meet a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// None of them.
    None,
    /// All of them.
    All,
    /// Some may: their values must be looked at.
    Open,
}

/// The bins that meet a test, and those whose rows must be looked at.
#[derive(Debug, Clone)]
pub struct Classes {
    met: Set,
    open: Set,
}

/// A set of bins.
#[derive(Debug, Clone)]
enum Set {
    /// From one to another, both included.
    Ranges(Vec<(u8, u8)>),
    /// 1 for each that is in the set.
    Table(Box<[u8; BINS]>),
}

impl Classes {
    /// The classes of bins by their numbers; `None` for those without rows.
    pub(super) fn new(of: impl Fn(usize) -> Option<Class>) -> Self {
        let all: Vec<Option<Class>> = (0..BINS).map(of).collect();
        let set = |class| Set::new(&all, class);
        Self { met: set(Class::All), open: set(Class::Open) }
    }

    /// The classes of booleans, whose bins are 0 and 1: whether false and true meet the test.
    pub fn of_booleans(wanted: [bool; 2]) -> Self {
        let class = |is_met| if is_met { Class::All } else { Class::None };
        Self::new(|bin| wanted.get(bin).copied().map(class))
    }

    /// Makes words of the rows with these bins: those that meet the test, and those whose values
    /// must be looked at. Bits past the last row are 0. Returns whether there may be any of the
    /// latter; otherwise their words are left as they were.
    ///
    /// # Panics
    /// If there are other numbers of words than the rows need.
    pub fn fill(&self, bins: &[u8], met: &mut [u64], open: &mut [u64]) -> bool {
        assert!(met.len() == bins.len().div_ceil(WORD_ROWS) && open.len() == met.len());
        self.met.fill(bins, met);
        let has_open = !self.open.is_empty();
        if has_open {
            self.open.fill(bins, open);
        }
        has_open
    }
}

impl Set {
    fn new(all: &[Option<Class>], class: Class) -> Self {
        let mut ranges: Vec<(u8, u8)> = Vec::new();
        // Whether only bins without rows have followed the last range.
        let mut goes_on = false;
        for (bin, of_bin) in all.iter().enumerate() {
            match of_bin {
                Some(own) if *own == class => {
                    match ranges.last_mut().filter(|_| goes_on) {
                        Some(last) => last.1 = bin as u8,
                        None => ranges.push((bin as u8, bin as u8)),
                    }
                    goes_on = true;
                }
                Some(_) => goes_on = false,
                None => {}
            }
        }
        if ranges.len() <= MAX_RANGES {
            return Self::Ranges(ranges);
        }
        let mut table = Box::new([0; BINS]);
        for (from, to) in ranges {
            table[usize::from(from)..=usize::from(to)].fill(1);
        }
        Self::Table(table)
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Ranges(ranges) if ranges.is_empty())
    }

    /// A bit for each bin that is in the set. The loop over all words is inside, once for each kind
    /// of set: a choice in the loop takes more than twice as long.
    fn fill(&self, bins: &[u8], words: &mut [u64]) {
        match self {
            Self::Ranges(ranges) => match ranges[..] {
                [] => words.fill(0),
                [one] => each(bins, words, |bin| within(bin, one)),
                [a, b] => each(bins, words, |bin| within(bin, a) | within(bin, b)),
                [a, b, c] => {
                    each(bins, words, |bin| within(bin, a) | within(bin, b) | within(bin, c));
                }
                _ => each(bins, words, |bin| {
                    ranges.iter().fold(0, |found, &range| found | within(bin, range))
                }),
            },
            Self::Table(table) => each(bins, words, |bin| table[usize::from(bin)]),
        }
    }
}

/// 1 for a bin within a range.
#[inline(always)]
fn within(bin: u8, (from, to): (u8, u8)) -> u8 {
    u8::from(bin.wrapping_sub(from) <= to - from)
}

/// Makes words of what is 0 or 1 for each bin.
#[inline(always)]
fn each(bins: &[u8], words: &mut [u64], found: impl Fn(u8) -> u8) {
    let (whole, rest) = bins.as_chunks::<WORD_ROWS>();
    for (word, bins) in words.iter_mut().zip(whole) {
        *word = word_of(&bins.map(&found));
    }
    if let Some(last) = words.get_mut(whole.len()) {
        let mut found_in_rest = [0; WORD_ROWS];
        for (one, &bin) in found_in_rest.iter_mut().zip(rest) {
            *one = found(bin);
        }
        *last = word_of(&found_in_rest);
    }
}

/// The word of 64 bytes that are 0 or 1, the first of which is its lowest bit.
#[inline(always)]
fn word_of(bytes: &[u8; WORD_ROWS]) -> u64 {
    /// Moves byte `j` of 8 to bit `56 + j`, and no two bits to one place.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = bytes.as_chunks::<8>();
    let mut word = 0;
    for (index, eight) in eights.iter().enumerate() {
        word |= (u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56) << (8 * index);
    }
    word
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_have_the_rows_of_their_bins(
            classes in prop::collection::vec(prop::option::weighted(0.9, 0u8..3), BINS),
            // Few or many ranges.
            width in 1usize..100,
            rows in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let class = |bin: usize| {
                let class = classes[bin / width];
                class.map(|class| [Class::None, Class::All, Class::Open][usize::from(class)])
            };
            let rows: Vec<u8> =
                rows.into_iter().filter(|&bin| class(usize::from(bin)).is_some()).collect();
            let found = Classes::new(class);
            let mut words = [u64::MAX, 0].map(|word| vec![word; rows.len().div_ceil(WORD_ROWS)]);
            let [met, open] = &mut words;
            found.fill(&rows, met, open);
            for (words, wanted) in words.iter().zip([Class::All, Class::Open]) {
                for bit in 0..words.len() * WORD_ROWS {
                    let is_set = words[bit / WORD_ROWS] >> (bit % WORD_ROWS) & 1 == 1;
                    let of_row = rows.get(bit).and_then(|&bin| class(usize::from(bin)));
                    prop_assert_eq!(is_set, of_row == Some(wanted), "row {}", bit);
                }
            }
        }
    }

    #[test]
    fn booleans_are_their_own_bins() {
        for (wanted, expected) in [([true, false], 0b0101), ([false, true], 0b1010)] {
            let (mut met, mut open) = ([0], [0]);
            assert!(!Classes::of_booleans(wanted).fill(&[0, 1, 0, 1], &mut met, &mut open));
            assert_eq!((met, open), ([expected], [0]));
        }
    }
}

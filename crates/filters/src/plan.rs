//! A filter over the attributes of a model, and the rows that meet it.
//!
//! Rows are looked at in blocks: a test makes the words of a block, and conjunctions join whole
//! words. A test reads what says the most with the fewest bytes:
//!
//! - of numbers and texts, a byte for each row, its bin; then the values of rows whose bin does not
//!   decide;
//! - of lists, the rows of each text that is wanted, unless these are many;
//! - of words, the rows.

use std::cell::Cell;
use std::sync::Arc;

use contract::row_set::WORD_ROWS;
use contract::{Row, RowBitmap};
use model_store::attributes::Classes;

use super::wanted::{Codes, Wanted};

/// Words of a block: what they are made of stays in a cache of the second level.
const BLOCK_WORDS: usize = 512;

/// A filter whose attributes and values were looked up in the attributes of a model.
pub struct Plan<'a> {
    rows: usize,
    node: Node<'a>,
}

pub(super) enum Node<'a> {
    All(Vec<Node<'a>>),
    Any(Vec<Node<'a>>),
    Not(Box<Node<'a>>),
    Test { test: Test<'a>, missing: Option<&'a [u64]> },
}

/// What is tested of the values that are there.
pub(super) enum Test<'a> {
    Exists,
    Integers(Binned<'a, i64, Wanted<i64>>),
    Numbers(Binned<'a, f64, Wanted<f64>>),
    Booleans(&'a [u8], Classes),
    Texts(Binned<'a, u32, Codes>),
    /// The rows of each text that is wanted.
    Listed(Vec<&'a [Row]>),
    Lists {
        starts: &'a [u64],
        codes: &'a [u32],
        wanted: Codes,
    },
    /// These rows, ascending.
    Rows(Vec<Row>),
}

/// A test of values that are in bins.
pub(super) struct Binned<'a, T, W> {
    /// `[rows]`
    pub(super) bins: &'a [u8],
    pub(super) classes: Classes,
    /// `[rows]`
    pub(super) values: &'a [T],
    pub(super) wanted: W,
}

impl<'a> Plan<'a> {
    pub(super) fn new(rows: usize, node: Node<'a>) -> Self {
        Self { rows, node }
    }

    /// The number of rows that it looks at.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The rows that meet the filter. `version` is that of the model.
    pub fn bitmap(&self, version: impl Into<Arc<str>>) -> RowBitmap {
        self.bitmap_while(version, &|| true).expect("nothing stops it")
    }

    /// The same; `None` soon after `goes_on` has said no. It is asked before each test of a block.
    pub fn bitmap_while(
        &self,
        version: impl Into<Arc<str>>,
        goes_on: &dyn Fn() -> bool,
    ) -> Option<RowBitmap> {
        let mut words = vec![0; self.rows.div_ceil(WORD_ROWS)];
        let mut work = Work::new(goes_on);
        for (block, words) in words.chunks_mut(BLOCK_WORDS).enumerate() {
            self.node.fill(Block { first: block * BLOCK_WORDS, rows: self.rows }, words, &mut work);
            if work.has_ended.get() {
                return None;
            }
        }
        Some(RowBitmap::new(words, self.rows, version))
    }

    /// Some words of the bitmap, from this one on, for callers that make its parts side by side. In
    /// the last word, bits past the table's end may be set.
    pub fn fill(&self, first: usize, words: &mut [u64]) {
        self.node.fill(Block { first, rows: self.rows }, words, &mut Work::new(&|| true));
    }
}

/// Whether the work goes on, and its memory.
struct Work<'a> {
    goes_on: &'a dyn Fn() -> bool,
    has_ended: Cell<bool>,
    /// The rows of a test whose values are looked at.
    open: Vec<u64>,
}

impl<'a> Work<'a> {
    fn new(goes_on: &'a dyn Fn() -> bool) -> Self {
        Self { goes_on, has_ended: Cell::new(false), open: Vec::new() }
    }

    /// Asks whether it goes on.
    fn goes_on(&self) -> bool {
        if !self.has_ended.get() && !(self.goes_on)() {
            self.has_ended.set(true);
        }
        !self.has_ended.get()
    }
}

/// Where words belong.
#[derive(Clone, Copy)]
struct Block {
    /// The index of the first word.
    first: usize,
    /// Rows of the table.
    rows: usize,
}

impl Block {
    /// The values of the block's rows.
    fn of<T>(self, values: &[T], words: usize) -> &[T] {
        let start = (self.first * WORD_ROWS).min(self.rows);
        let end = ((self.first + words) * WORD_ROWS).min(self.rows);
        &values[start..end]
    }

    /// Those of ascending rows that are in the block, from its first row on.
    fn rows_of(self, rows: &[Row], words: usize) -> impl Iterator<Item = usize> {
        let from = self.first * WORD_ROWS;
        let until = from + words * WORD_ROWS;
        let start = rows.partition_point(|row| row.index() < from);
        let count = rows[start..].partition_point(|row| row.index() < until);
        rows[start..start + count].iter().map(move |row| row.index() - from)
    }
}

impl Node<'_> {
    fn fill(&self, block: Block, words: &mut [u64], work: &mut Work<'_>) {
        match self {
            Self::All(parts) => join(parts, block, words, work, 0, |word, part| word & part),
            Self::Any(parts) => join(parts, block, words, work, u64::MAX, |word, part| word | part),
            Self::Not(inner) => {
                inner.fill(block, words, work);
                words.iter_mut().for_each(|word| *word = !*word);
            }
            Self::Test { test, missing } => {
                if !work.goes_on() {
                    return;
                }
                test.fill(block, words, &mut work.open);
                if let Some(missing) = missing {
                    let missing = &missing[block.first..block.first + words.len()];
                    words.iter_mut().zip(missing).for_each(|(word, missing)| *word &= !missing);
                }
            }
        }
    }
}

/// Joins what parts say of a block, until all of its words are `decided`.
fn join(
    parts: &[Node<'_>],
    block: Block,
    words: &mut [u64],
    work: &mut Work<'_>,
    decided: u64,
    with: impl Fn(u64, u64) -> u64,
) {
    let Some((first, others)) = parts.split_first() else { return };
    first.fill(block, words, work);
    let mut of_part = Vec::new();
    for part in others {
        if words.iter().all(|&word| word == decided) {
            break;
        }
        of_part.resize(words.len(), 0);
        part.fill(block, &mut of_part, work);
        words.iter_mut().zip(&of_part).for_each(|(word, &part)| *word = with(*word, part));
    }
}

impl Test<'_> {
    /// The words of a block, as if no value were missing.
    fn fill(&self, block: Block, words: &mut [u64], open: &mut Vec<u64>) {
        let count = words.len();
        match self {
            Self::Exists => words.fill(u64::MAX),
            Self::Integers(test) => match &test.wanted {
                Wanted::Range(from, to) => {
                    test.fill(block, words, open, |value| value >= *from && value <= *to);
                }
                Wanted::Few(few) => test.fill(block, words, open, |value| few.contains(&value)),
                Wanted::Many(_, set) => {
                    test.fill(block, words, open, |value| set.contains(&(value as u64)));
                }
            },
            Self::Numbers(test) => match &test.wanted {
                // Comparisons with NaN are false.
                Wanted::Range(from, to) => {
                    test.fill(block, words, open, |value| value >= *from && value <= *to);
                }
                Wanted::Few(few) => test.fill(block, words, open, |value| few.contains(&value)),
                Wanted::Many(_, set) => {
                    test.fill(block, words, open, |value| set.contains(&value.to_bits()));
                }
            },
            Self::Booleans(values, classes) => {
                open.resize(count, 0);
                classes.fill(block.of(values, count), words, &mut open[..count]);
            }
            Self::Texts(test) => test.fill(block, words, open, |code| test.wanted.has(code)),
            Self::Listed(of_texts) => {
                words.fill(0);
                of_texts.iter().for_each(|rows| set(block.rows_of(rows, count), words));
            }
            Self::Lists { starts, codes, wanted } => {
                let ends = block.of(&starts[1..], count);
                // The starts are those of the same rows, and the ends of the rows before them.
                let mut start = starts[(block.first * WORD_ROWS).min(block.rows)] as usize;
                for (word, ends) in words.iter_mut().zip(ends.chunks(WORD_ROWS)) {
                    *word = 0;
                    for (bit, &end) in ends.iter().enumerate() {
                        let list = &codes[start..end as usize];
                        start = end as usize;
                        *word |= u64::from(list.iter().any(|&code| wanted.has(code))) << bit;
                    }
                }
            }
            Self::Rows(rows) => {
                words.fill(0);
                set(block.rows_of(rows, count), words);
            }
        }
    }
}

impl<T: Copy, W> Binned<'_, T, W> {
    /// The words of a block: by the bins, and where they do not decide, by the values.
    fn fill(
        &self,
        block: Block,
        words: &mut [u64],
        open: &mut Vec<u64>,
        is_wanted: impl Fn(T) -> bool,
    ) {
        let count = words.len();
        open.resize(count, 0);
        let open = &mut open[..count];
        if !self.classes.fill(block.of(self.bins, count), words, open) {
            return;
        }
        let values = block.of(self.values, count);
        for (index, &open) in open.iter().enumerate() {
            let mut rest = open;
            while rest != 0 {
                let row = index * WORD_ROWS + rest.trailing_zeros() as usize;
                words[index] |= u64::from(is_wanted(values[row])) << (row % WORD_ROWS);
                rest &= rest - 1;
            }
        }
    }
}

/// Sets the bits of some rows, from that of the first word on.
fn set(rows: impl Iterator<Item = usize>, words: &mut [u64]) {
    for row in rows {
        words[row / WORD_ROWS] |= 1u64 << (row % WORD_ROWS);
    }
}

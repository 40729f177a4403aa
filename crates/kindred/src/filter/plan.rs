//! A filter over the attributes of a model, and the rows that meet it.
//!
//! Rows are looked at in blocks: a test makes the words of a block, each from 64 values side by
//! side; conjunctions join whole words, and skip what can't change a block any more.

use contract::row_set::WORD_ROWS;
use contract::{Row, RowBitmap};

/// Words of a block: what they are made of stays in a cache of the second level.
const BLOCK_WORDS: usize = 512;

/// Up to this many values are compared with a row's one after the other.
const FEW: usize = 8;

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
    Integers(&'a [i64], Wanted<i64>),
    Numbers(&'a [f64], Wanted<f64>),
    /// Whether false and true are wanted.
    Booleans(&'a [u8], [bool; 2]),
    Texts(&'a [u32], Codes),
    Lists {
        starts: &'a [u64],
        codes: &'a [u32],
        wanted: Codes,
    },
    /// These rows, ascending.
    Rows(Vec<Row>),
}

/// Values that are wanted.
pub(super) enum Wanted<T> {
    /// From one to another, both included. None if they are in the wrong order.
    Range(T, T),
    /// One of these, ascending.
    Any(Vec<T>),
}

/// Codes that are wanted.
pub(super) enum Codes {
    /// From one up to another.
    Range(std::ops::Range<u32>),
    /// One of these, ascending.
    Few(Vec<u32>),
    /// A bit for each code.
    Many(Vec<u64>),
}

impl Codes {
    /// One of these codes.
    pub(super) fn of(mut codes: Vec<u32>) -> Self {
        codes.sort_unstable();
        codes.dedup();
        if codes.len() <= FEW {
            return Self::Few(codes);
        }
        let most = codes.last().map_or(0, |&code| code as usize);
        let mut bits = vec![0; most / WORD_ROWS + 1];
        for code in codes {
            bits[code as usize / WORD_ROWS] |= 1u64 << (code as usize % WORD_ROWS);
        }
        Self::Many(bits)
    }

    #[inline]
    fn has(&self, code: u32) -> bool {
        match self {
            Self::Range(range) => range.contains(&code),
            Self::Few(codes) => codes.contains(&code),
            Self::Many(bits) => {
                let word = bits.get(code as usize / WORD_ROWS).copied().unwrap_or(0);
                word >> (code as usize % WORD_ROWS) & 1 == 1
            }
        }
    }
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
    pub fn bitmap(&self, version: impl Into<std::sync::Arc<str>>) -> RowBitmap {
        let mut words = vec![0; self.rows.div_ceil(WORD_ROWS)];
        for (block, words) in words.chunks_mut(BLOCK_WORDS).enumerate() {
            self.fill(block * BLOCK_WORDS, words);
        }
        RowBitmap::new(words, self.rows, version)
    }

    /// Some words of the bitmap, from this one on, for callers that make its parts side by side. In
    /// the last word, bits past the table's end may be set.
    pub fn fill(&self, first: usize, words: &mut [u64]) {
        self.node.fill(Block { first, rows: self.rows }, words);
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
}

impl Node<'_> {
    fn fill(&self, block: Block, words: &mut [u64]) {
        match self {
            Self::All(parts) => join(parts, block, words, 0, |word, part| word & part),
            Self::Any(parts) => join(parts, block, words, u64::MAX, |word, part| word | part),
            Self::Not(inner) => {
                inner.fill(block, words);
                words.iter_mut().for_each(|word| *word = !*word);
            }
            Self::Test { test, missing } => {
                test.fill(block, words);
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
    decided: u64,
    with: impl Fn(u64, u64) -> u64,
) {
    let Some((first, others)) = parts.split_first() else { return };
    first.fill(block, words);
    let mut of_part = Vec::new();
    for part in others {
        if words.iter().all(|&word| word == decided) {
            break;
        }
        of_part.resize(words.len(), 0);
        part.fill(block, &mut of_part);
        words.iter_mut().zip(&of_part).for_each(|(word, &part)| *word = with(*word, part));
    }
}

impl Test<'_> {
    /// The words of a block, as if no value were missing.
    fn fill(&self, block: Block, words: &mut [u64]) {
        let count = words.len();
        match self {
            Self::Exists => words.fill(u64::MAX),
            Self::Integers(values, Wanted::Range(from, to)) => {
                each(block.of(values, count), words, |value| value >= from && value <= to);
            }
            Self::Integers(values, Wanted::Any(wanted)) if wanted.len() <= FEW => {
                each(block.of(values, count), words, |value| wanted.contains(value));
            }
            Self::Integers(values, Wanted::Any(wanted)) => {
                each(block.of(values, count), words, |value| wanted.binary_search(value).is_ok());
            }
            Self::Numbers(values, Wanted::Range(from, to)) => {
                each(block.of(values, count), words, |value| value >= from && value <= to);
            }
            Self::Numbers(values, Wanted::Any(wanted)) if wanted.len() <= FEW => {
                each(block.of(values, count), words, |value| wanted.contains(value));
            }
            Self::Numbers(values, Wanted::Any(wanted)) => {
                // Comparisons with NaN are false.
                let has = |value: &f64| {
                    let at = wanted.partition_point(|other| other < value);
                    wanted.get(at) == Some(value)
                };
                each(block.of(values, count), words, has);
            }
            Self::Booleans(values, wanted) => {
                let [no, yes] = *wanted;
                each(block.of(values, count), words, |&value| if value == 0 { no } else { yes });
            }
            Self::Texts(codes, Codes::Range(wanted)) => {
                each(block.of(codes, count), words, |code| wanted.contains(code));
            }
            Self::Texts(codes, wanted) => {
                each(block.of(codes, count), words, |&code| wanted.has(code));
            }
            Self::Lists { starts, codes, wanted } => {
                let ends = block.of(&starts[1..], count);
                // The starts are those of the same rows, and the ends of the rows before them.
                let mut start = starts[(block.first * WORD_ROWS).min(block.rows)] as usize;
                each(ends, words, |&end| {
                    let list = &codes[start..end as usize];
                    start = end as usize;
                    list.iter().any(|&code| wanted.has(code))
                });
            }
            Self::Rows(rows) => {
                words.fill(0);
                let from = block.first * WORD_ROWS;
                let until = from + count * WORD_ROWS;
                let here = rows.partition_point(|row| row.index() < from)
                    ..rows.partition_point(|row| row.index() < until);
                for row in &rows[here] {
                    words[(row.index() - from) / WORD_ROWS] |= 1u64 << (row.index() % WORD_ROWS);
                }
            }
        }
    }
}

/// Makes words of the answers for each value, in order.
#[inline]
fn each<T>(values: &[T], words: &mut [u64], mut test: impl FnMut(&T) -> bool) {
    for (word, values) in words.iter_mut().zip(values.chunks(WORD_ROWS)) {
        let mut bits = 0;
        for (index, value) in values.iter().enumerate() {
            bits |= u64::from(test(value)) << index;
        }
        *word = bits;
    }
}

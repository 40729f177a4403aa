//! The formats that people keep vectors in. Each is two things: how its bytes fall into whole records
//! ([`Framing`], one after the other), and how records are taken apart ([`Parser`], on all cores).

mod detect;
mod fixed;
mod header;
mod npy;
mod numbers;
mod plan;
mod text;
mod word2vec;

use std::fmt;

pub(super) use detect::BYTE_ORDER_MARK;
pub(super) use plan::{Plan, Unit, plan};
pub(crate) use text::ends_in_a_number;

/// A format of vectors files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VectorsFormat {
    /// One word a line, then its components, single spaces between them.
    Glove,
    /// The same with the vector's norm before its components. With the words in a file of their own: rows
    /// of little-endian float32, norm and components.
    GloveNorm,
    /// A line with the numbers of rows and components, then as GloVe; fastText's `.vec` too.
    Word2vec,
    /// The same line, then each word, a space and its components as little-endian float32.
    Word2vecBinary,
    /// A NumPy array of two dimensions; the words are in a file of their own.
    Npy,
    /// A tensor of two dimensions in a safetensors file; the words are in a file of their own.
    Safetensors,
}

impl VectorsFormat {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Glove,
        Self::GloveNorm,
        Self::Word2vec,
        Self::Word2vecBinary,
        Self::Npy,
        Self::Safetensors,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Glove => "glove",
            Self::GloveNorm => "glove-norm",
            Self::Word2vec => "word2vec",
            Self::Word2vecBinary => "word2vec-bin",
            Self::Npy => "npy",
            Self::Safetensors => "safetensors",
        }
    }
}

impl fmt::Display for VectorsFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The most bytes that one record may have, and so many are looked at to tell what a file is.
pub(super) const MAX_RECORD_BYTES: usize = 4 << 20;

/// Where a longer word seems to be, a file without lines is cut or its header wrong.
pub(crate) const MAX_WORD_BYTES: usize = 4096;

/// Finds the ends of records. Called with all bytes in order, each time with what was not whole before.
pub(super) trait Framing: Send {
    /// The length of the whole records at the start of `bytes`. `at_end`: nothing follows.
    fn whole(&mut self, bytes: &[u8], at_end: bool) -> Result<usize, BadBytes>;

    /// Records found so far, where they are counted.
    fn found(&self) -> u64 {
        0
    }

    /// Whether all records have been found and whatever follows is something else.
    fn is_done(&self) -> bool {
        false
    }
}

/// What is wrong with the bytes as a whole, and where.
#[derive(Debug, PartialEq)]
pub(super) struct BadBytes {
    /// The record, from 0, if it is known.
    pub(super) record: Option<u64>,
    /// From the start of the bytes at hand.
    pub(super) byte: usize,
    pub(super) reason: String,
}

/// Takes whole records apart.
pub(super) trait Parser: Send + Sync {
    /// `first` is the number of the first record, from 0, where the framing counts them.
    fn parse(&self, bytes: &[u8], first: u64) -> Parsed;
}

/// What some consecutive records hold.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// How many there were, good and bad.
    pub(super) records: u64,
    /// The words of the good ones, one behind the other.
    pub(super) words: String,
    /// Where each of these ends.
    pub(super) word_ends: Vec<usize>,
    /// The components of the good ones, `[good records, dim]`.
    pub(super) components: Vec<f32>,
    /// The norms of these.
    pub(super) norms: Vec<f64>,
    /// How many bad ones there were.
    pub(super) bad: u64,
    /// The first of them: the others are only counted, for there may be millions.
    pub(super) first_bad: Option<BadRecord>,
}

/// A record that can't be read.
#[derive(Debug, PartialEq)]
pub(super) struct BadRecord {
    /// Counted from the first of its chunk, from 0.
    pub(super) record: u64,
    /// Where it begins in its chunk.
    pub(super) byte: usize,
    pub(super) reason: String,
    /// Whether the records behind it can be trusted all the same.
    pub(super) may_be_skipped: bool,
}

impl Parsed {
    /// The words of the good records, in order.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.word_ends.iter().map(move |&end| {
            let word = &self.words[start..end];
            start = end;
            word
        })
    }

    /// Ends a record whose components, if `word` is good, are the last `dim` of `components`.
    pub(super) fn end_record(&mut self, word: Result<&str, String>, dim: usize, byte: usize) {
        match word {
            Ok(word) => {
                self.words.push_str(word);
                self.word_ends.push(self.words.len());
                let row = &self.components[self.components.len() - dim..];
                self.norms.push(contract::score::norm(row));
            }
            Err(reason) => {
                self.components.truncate(self.word_ends.len() * dim);
                self.bad += 1;
                let record = self.records;
                let bad = || BadRecord { record, byte, reason, may_be_skipped: true };
                self.first_bad.get_or_insert_with(bad);
            }
        }
        self.records += 1;
    }

    /// As [`end_record`](Self::end_record), for one behind which nothing is where it should be. It stands
    /// for all bad ones, so that it is not skipped.
    pub(super) fn end_broken_record(&mut self, reason: String, dim: usize, byte: usize) {
        let bad = BadRecord { record: self.records, byte, reason, may_be_skipped: false };
        self.end_record(Err(String::new()), dim, byte);
        self.first_bad = Some(bad);
    }
}

/// A word as bytes that may be none.
pub(super) fn utf8(word: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(word)
        .map_err(|e| format!("the word is not valid UTF-8 (byte {})", e.valid_up_to() + 1))
}

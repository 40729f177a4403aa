//! The formats of vectors files. Each has two parts: splitting bytes into whole records
//! ([`Framing`], sequentially), and parsing records ([`Parser`], on all cores).

mod choose;
mod column;
mod detect;
mod fixed;
mod header;
mod index;
mod matrix;
mod numbers;
mod plan;
mod text;
mod word2vec;

use std::fmt;

pub(super) use choose::plan;
pub(super) use detect::BYTE_ORDER_MARK;
pub(super) use plan::{Expected, Plan, Unit, Watch};
pub(crate) use text::ends_in_a_number;
pub(super) use text::parse_component;

/// A format of vectors files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VectorsFormat {
    /// One word per line, then its components, separated by single spaces.
    Glove,
    /// The same with the vector's norm before its components. With the words in a separate file:
    /// rows of little-endian float32, norm and components.
    GloveNorm,
    /// A line with the numbers of rows and components, then like GloVe; also fastText's `.vec`.
    Word2vec,
    /// The same line, then each word, a space and its components as little-endian float32.
    Word2vecBinary,
    /// A two-dimensional NumPy array; the words are in a separate file.
    Npy,
    /// A two-dimensional tensor in a safetensors file; the words are in a separate file.
    Safetensors,
}

impl VectorsFormat {
    /// All formats.
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

/// Maximum size of a record, and the number of bytes used to detect the format.
pub(super) const MAX_RECORD_BYTES: usize = 4 << 20;

/// Maximum length of a word in a file without lines; a longer one means that the file is cut off or
/// its header wrong.
pub(crate) const MAX_WORD_BYTES: usize = 4096;

/// Finds the ends of records. Called with all bytes in order, each time starting with the last
/// incomplete record.
pub(super) trait Framing: Send {
    /// The length of the whole records at the start of `bytes`. `at_end`: nothing follows.
    fn whole(&mut self, bytes: &[u8], at_end: bool) -> Result<usize, BadBytes>;

    /// The number of records found so far, if they are counted.
    fn found(&self) -> u64 {
        0
    }

    /// Whether all records have been found, so that anything that follows is other data.
    fn is_done(&self) -> bool {
        false
    }
}

/// A fault in the bytes as a whole, and its position.
#[derive(Debug, PartialEq)]
pub(super) struct BadBytes {
    /// The record, from 0, if it is known.
    pub(super) record: Option<u64>,
    /// The offset in the given bytes.
    pub(super) byte: usize,
    pub(super) reason: String,
}

/// Parses whole records.
pub(super) trait Parser: Send + Sync {
    /// `first` is the number of the first record, from 0, if the framing counts them.
    fn parse(&self, bytes: &[u8], first: u64) -> Parsed;
}

/// The content of some consecutive records.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// The number of records, good and bad.
    pub(super) records: u64,
    /// The words of the good records, concatenated.
    pub(super) words: String,
    /// The end of each word.
    pub(super) word_ends: Vec<usize>,
    /// The components of the good ones, `[good records, dim]`.
    pub(super) components: Vec<f32>,
    /// The norms of the good records.
    pub(super) norms: Vec<f64>,
    /// The numbers of the bad records in this chunk, from 0, ascending.
    pub(super) bad: Vec<u32>,
    /// The first bad record. Of the others only the numbers are kept, because there may be
    /// millions.
    pub(super) first_bad: Option<BadRecord>,
}

/// An invalid record.
#[derive(Debug, PartialEq)]
pub(super) struct BadRecord {
    /// Its number in its chunk, from 0.
    pub(super) record: u64,
    /// Its offset in its chunk.
    pub(super) byte: usize,
    pub(super) reason: String,
    /// Whether the records after it can still be trusted.
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
                self.bad.push(u32::try_from(self.records).expect("a chunk is a few MiB"));
                let record = self.records;
                let bad = || BadRecord { record, byte, reason, may_be_skipped: true };
                self.first_bad.get_or_insert_with(bad);
            }
        }
        self.records += 1;
    }

    /// Like [`end_record`](Self::end_record), for a record after which all data is misplaced. It
    /// replaces the first bad record, so that it is not skipped.
    pub(super) fn end_broken_record(&mut self, reason: String, dim: usize, byte: usize) {
        let bad = BadRecord { record: self.records, byte, reason, may_be_skipped: false };
        self.end_record(Err(String::new()), dim, byte);
        self.first_bad = Some(bad);
    }
}

/// Converts bytes to a word, if they are valid.
pub(super) fn utf8(word: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(word)
        .map_err(|e| format!("the word is not valid UTF-8 (byte {})", e.valid_up_to() + 1))
}

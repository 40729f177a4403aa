//! The formats of vectors files. Each has two parts: splitting bytes into whole records
//! ([`Framing`], sequentially), and parsing records ([`Parser`], on all cores).

mod choose;
mod column;
mod detect;
mod fixed;
mod header;
mod index;
mod matrix;
mod notation;
mod text;
mod word2vec;

use std::fmt;
use std::sync::Arc;

use contract::score;

use super::encoding::TextEncoding;
pub(super) use choose::{encoding_of_text, plan};
use column::FirstColumn;
use index::IndexColumn;
pub(crate) use text::ends_in_a_number;
pub(super) use text::{parse_component, without_returns};

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
    /// The length of the whole records at the start of `bytes`, and their number. `at_end`: nothing
    /// follows.
    fn whole(&mut self, bytes: &[u8], at_end: bool) -> Result<(usize, u64), BadBytes>;

    /// The length of the first `records` records of `bytes`, which begin with a record; `None` if
    /// they are not all there.
    fn end_of(&self, bytes: &[u8], records: u64) -> Option<usize>;

    /// Whether all records have been found, so that anything that follows is other data.
    fn is_done(&self) -> bool {
        false
    }

    /// Warnings about the end of the file, once all was read: a sentence for each.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How to read a file, from its first bytes and the user's options.
pub(super) struct Plan {
    /// For the model's provenance, such as `glove text`.
    pub(super) description: String,
    pub(super) dim: usize,
    /// Bytes before the first record.
    pub(super) skip: u64,
    pub(super) records: RecordUnit,
    pub(super) framing: Box<dyn Framing>,
    pub(super) parser: Arc<dyn Parser>,
    /// The number of records, if it is known and the framing does not check it.
    pub(super) expected: Option<Expected>,
    /// The watch on a first column that may be something else.
    pub(super) first_column: Option<Watch>,
}

impl Plan {
    /// Of rows without lines, which the framing counts.
    fn of_rows(
        description: String,
        dim: usize,
        skip: u64,
        framing: impl Framing + 'static,
        parser: impl Parser + 'static,
    ) -> Self {
        Self {
            description,
            dim,
            skip,
            records: RecordUnit::Row,
            framing: Box::new(framing),
            parser: Arc::new(parser),
            expected: None,
            first_column: None,
        }
    }
}

/// Watches the first column while rows are read; only their end shows its kind.
#[derive(Debug, Clone)]
pub(super) enum Watch {
    /// Of lines that begin with their word.
    Words(FirstColumn),
    /// Of lines of numbers only.
    Index(IndexColumn),
}

impl Watch {
    pub(super) fn see(&mut self, parsed: &Parsed) {
        match self {
            Self::Words(column) => column.see(parsed),
            Self::Index(column) => column.see(parsed),
        }
    }

    /// Why the column is something else, if so; `repeated` words were there before.
    pub(super) fn reason(&self, repeated: u64) -> Option<String> {
        match self {
            Self::Words(column) => column.is_a_matrix(repeated),
            Self::Index(column) => column.reason(),
        }
    }
}

/// A number of records that is known.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) rows: u64,
    /// By how many records a file may differ; then there is a warning.
    pub(super) tolerance: u64,
    /// Where it is from, for a file that has another number.
    pub(super) said: String,
    pub(super) cure: String,
}

impl Expected {
    /// Checks the number of records of the file. Returns a warning if it differs a little, and the
    /// fault if it differs more.
    pub(super) fn check(self, records: u64) -> Result<Option<String>, String> {
        let Self { rows, tolerance, said, cure } = self;
        match rows.abs_diff(records) {
            0 => Ok(None),
            few if few <= tolerance => Ok(Some(format!("{said}, but it has {records}"))),
            _ => Err(format!("{said}, but it has {records}; {cure}")),
        }
    }
}

/// The maximum difference between the rows that a header announces and those of the file: some
/// programs count a line that they do not write, or write one that they do not count.
const HEADER_TOLERANCE: u64 = 1;

/// Whether bytes after the last row are only there to fill up a file.
pub(super) fn is_padding(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// What messages call a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordUnit {
    /// A line; the first record has this line number, from 1.
    Line { first: u64 },
    /// A row at a byte.
    Row,
    /// A record that may have several lines, from 1.
    Record,
}

impl RecordUnit {
    /// Its name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Line { .. } => "line",
            Self::Row => "row",
            Self::Record => "record",
        }
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
    /// `first` is the number of the first record, from 0.
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
    pub(super) norms: Vec<f64>,
    /// The numbers of the bad records in this chunk, from 0, ascending.
    pub(super) bad: Vec<u32>,
    /// The first bad record. Of the others only the numbers are kept, because there may be
    /// millions.
    pub(super) first_bad: Option<BadRecord>,
}

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
                self.norms.push(score::norm(row));
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

/// Converts bytes to a word, if they are valid. Those of text in another encoding than UTF-8 were
/// decoded from it.
pub(super) fn utf8(word: &[u8], encoding: Option<TextEncoding>) -> Result<&str, String> {
    match encoding {
        Some(encoding) => encoding.word(word),
        None => std::str::from_utf8(word).map_err(|e| not_utf8(e.valid_up_to(), "")),
    }
}

/// The fault of a word whose byte `at`, from 0, is not UTF-8. `how` follows the place.
fn not_utf8(at: usize, how: &str) -> String {
    let byte = at + 1;
    format!("the word is not valid UTF-8 (byte {byte}){how}; name its encoding with --encoding")
}

/// The tolerated relative difference between a stored and the computed norm. Components are often
/// written with five digits; a norm summed in float32 has a smaller error.
const NORM_TOLERANCE: f64 = 1e-4;

/// Checks that components are finite, as a model requires.
pub(super) fn check_finite(components: &[f32]) -> Result<(), String> {
    match components.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => {
            Err(format!("component {} is not a finite float32: {}", index + 1, components[index]))
        }
    }
}

/// A number of things: `1 row`, `2 rows`.
fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Checks a stored norm against the components.
fn check_norm(stored: f32, components: &[f32]) -> Result<(), String> {
    let computed = score::norm(components);
    // Also false if the stored norm is NaN.
    if (f64::from(stored) - computed).abs() <= NORM_TOLERANCE * computed {
        return Ok(());
    }
    Err(format!(
        "the stored norm is {stored}, but the components have the norm {computed:.6}; if the file has no \
         norms, set another --format"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_named() {
        assert!(check_finite(&[0.0, f32::MAX]).is_ok());
        assert!(check_finite(&[0.0, f32::NAN]).unwrap_err().contains("component 2"));
    }
}

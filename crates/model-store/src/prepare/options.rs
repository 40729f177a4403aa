//! Options, progress and summary of a preparation.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use contract::Metric;

use super::VectorsFormat;
use super::attributes::TableReader;
use super::encoding::TextEncoding;
use super::separator::Separator;
use crate::attributes::{AttributeDescription, AttributeType};
use crate::format::Provenance;
use crate::whole::Replace;

/// The source of the vectors.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// In a file.
    File(&'a Path),
    /// Bytes in memory; the name is used in messages and provenance.
    Bytes {
        /// The name, like a file's.
        name: &'a str,
        /// The content, like a file's.
        bytes: &'a [u8],
    },
    /// Standard input.
    Stdin,
}

/// How to read a vectors file.
#[derive(Debug, Clone, Default)]
pub struct PrepareOptions {
    /// The file's format; detected from the content by default.
    pub format: Option<VectorsFormat>,
    /// The file of the words, one per line, for formats without words.
    pub words: Option<PathBuf>,
    /// How a vector and a row become a score.
    pub metric: Metric,
    /// The file of the biases, one for each row of the vectors file: .npy, or text with one number
    /// per line. Only for [`Metric::Dot`].
    pub biases: Option<PathBuf>,
    /// The file of the rows' attributes.
    pub attributes: Option<AttributesFile>,
    /// Whether the words of texts get weights by SIF, and how often they occur. Only where texts are
    /// sums of the model's words.
    pub text_weights: Option<Frequencies>,
    /// The tensor of a safetensors file; by default the only two-dimensional one.
    pub tensor: Option<String>,
    /// The member of a zip archive; by default the only one.
    pub member: Option<String>,
    /// Components per row; by default from the header, or the number of fields in the first line
    /// minus one. If it is given, the first column of a matrix is never an index of its rows.
    pub dim: Option<NonZeroUsize>,
    /// Read only the first rows. Those that are bad or repeated count, too.
    pub limit: Option<NonZeroUsize>,
    /// The encoding of text, also in the files of the words, of the biases and of the attributes;
    /// by default UTF-8. A byte order mark overrides it.
    pub encoding: Option<TextEncoding>,
    /// The sign between the fields of a line that begins with its word.
    pub separator: Separator,
    /// Take the first field of each line for its word, even if all of them are numbers; and each
    /// line of the file of the words for a word, even if all of them end in numbers. Where the
    /// dimension is known, from a header or from `dim`, words in text with spaces may end in a
    /// number, too.
    pub allow_numeric_words: bool,
    /// Skip and count invalid rows, instead of stopping at the first.
    pub skip_bad_rows: bool,
    /// Replace an older model in the output folder.
    pub replace: bool,
    /// Replace it also if its rows were changed: the changes are lost.
    pub discard_changes: bool,
}

impl PrepareOptions {
    /// What may be replaced.
    pub(super) fn replaced(&self) -> Replace {
        match (self.replace, self.discard_changes) {
            (false, _) => Replace::Nothing,
            (true, false) => Replace::Unchanged,
            (true, true) => Replace::WithChanges,
        }
    }
}

/// The source of the counts of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frequencies {
    /// The ranks of rows, by Zipf's law: the first row has the most frequent word.
    ByRank,
    /// As this file has it, with a word and its count on each line.
    Counts(PathBuf),
}

/// The file with the attributes of a model's rows.
#[derive(Debug, Clone, Default)]
pub struct AttributesFile {
    /// CSV with a header, or JSON lines, compressed or not; or Parquet.
    pub path: PathBuf,
    /// The field with the word of a row, by which lines and rows are joined. Without it, line `n`
    /// belongs to row `n` of the vectors file. It is no attribute itself.
    pub key: Option<String>,
    /// Types of attributes by their names; those of all others are told by their values.
    pub types: Vec<(String, AttributeType)>,
    /// Which fields become attributes, besides the key.
    pub fields: WantedFields,
    /// Reads Parquet, which is refused without it.
    pub parquet: Option<&'static dyn TableReader>,
}

/// Fields of a file by their names. Of others nothing is read, so they may have any values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WantedFields {
    /// Every field.
    #[default]
    All,
    /// Every field but this one.
    AllBut(String),
    /// These fields.
    Only(Vec<String>),
}

impl WantedFields {
    /// Whether a field of this name is one of them.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::AllBut(other) => name != other,
            Self::Only(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

/// The progress of a preparation.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Bytes of the vectors file on disk read so far.
    pub bytes_read: u64,
    /// Its total size; unknown for a pipe.
    pub bytes_total: Option<u64>,
    /// Rows written so far.
    pub rows: usize,
}

/// The summary of a preparation.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Rows written.
    pub rows: usize,
    /// Components in a row.
    pub dim: usize,
    /// The first row that was skipped because it was invalid, and what was wrong.
    pub first_bad_row: Option<String>,
    /// The attributes of the rows, in the order of their file.
    pub attributes: Vec<AttributeDescription>,
    /// How many vectors n-grams share, if words that are no rows get theirs from these.
    pub ngrams: Option<u32>,
    /// Documents whose vectors were there, because they were made before the work was stopped.
    pub resumed: u64,
    /// Warnings, such as one about empty lines at the end of a file: a sentence for each.
    pub warnings: Vec<String>,
    /// The file's format and size, and how many rows were skipped.
    pub provenance: Provenance,
}

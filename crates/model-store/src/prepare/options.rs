//! What can be said about a preparation, before, meanwhile and afterwards.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::VectorsFormat;

/// Where the vectors are.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// In a file.
    File(&'a Path),
    /// In memory; the name stands for the file's in messages and provenance.
    Bytes {
        /// As a file would be called.
        name: &'a str,
        /// What the file would hold.
        bytes: &'a [u8],
    },
    /// They come by standard input.
    Stdin,
}

/// How to read a vectors file.
#[derive(Debug, Clone, Default)]
pub struct PrepareOptions {
    /// What the file is; without it, its first bytes tell.
    pub format: Option<VectorsFormat>,
    /// The file of the words, one a line, for formats that have none.
    pub words: Option<PathBuf>,
    /// Which tensor of a safetensors file; without it, the only one of two dimensions.
    pub tensor: Option<String>,
    /// Which member of a zip archive; without it, the only one.
    pub member: Option<String>,
    /// Components in a row; without it, what the file says, or the number of fields of the first line less
    /// one.
    pub dim: Option<NonZeroUsize>,
    /// Leave out and count rows that can't be read, instead of stopping at the first.
    pub skip_bad_rows: bool,
    /// Replace an older model in the output folder.
    pub replace: bool,
}

/// How far a preparation has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Bytes of the vectors file read so far, as it lies on the disk.
    pub bytes_read: u64,
    /// Its whole size, if that is known: a pipe's is not.
    pub bytes_total: Option<u64>,
    /// Rows written so far.
    pub rows: usize,
}

/// What became of a vectors file.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// What the file was, such as `glove text, gzip`.
    pub format: String,
    /// Rows written.
    pub rows: usize,
    /// Components in a row.
    pub dim: usize,
    /// Bytes of the vectors file, as it lies on the disk.
    pub source_bytes: u64,
    /// Rows left out because they could not be read.
    pub bad_rows_skipped: u64,
    /// The first of them: which, and what was wrong.
    pub first_bad_row: Option<String>,
    /// Rows left out because their word had been seen before.
    pub duplicate_words_dropped: u64,
}

//! The vectors of n-grams, from which words that are no rows get theirs: `ngrams.npy`, float32
//! `[buckets, dim]`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fmt, iter};

use serde::{Deserialize, Serialize};

use super::weights::Described;
use super::{TOGETHER, described, verify_file, write_file};
use crate::ModelError;
use crate::format::Checksum;
use crate::mapped::Mapped;
use crate::npy::{Numbers, head};
use crate::number::Number;

pub(super) const NGRAMS_FILE: &str = "ngrams.npy";
/// The kind of encoder that words and their n-grams are.
pub(super) const KIND: &str = "fasttext";

/// How words are cut into n-grams, and how many rows these share by their hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NgramLengths {
    /// The length of the shortest n-gram, in characters.
    pub minn: i32,
    /// The length of the longest n-gram, in characters; none are shorter than 1.
    pub maxn: i32,
    /// Number of rows.
    pub buckets: u32,
}

impl NgramLengths {
    /// Whether words have n-grams, and so words that are no rows may have vectors.
    pub fn has_any(&self) -> bool {
        self.buckets > 0 && self.maxn > 0 && self.minn <= self.maxn
    }
}

/// The content of `encoder.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    format: u32,
    kind: String,
    minn: i32,
    maxn: i32,
    buckets: u32,
    dim: usize,
    bytes: u64,
    checksum: Checksum,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) weights: Option<Described>,
}

/// The vectors of n-grams, mapped.
#[derive(Debug)]
pub struct Ngrams {
    path: PathBuf,
    lengths: NgramLengths,
    dim: usize,
    file: Mapped,
    /// Where the numbers begin.
    start: usize,
    checksum: Checksum,
}

impl Ngrams {
    /// The name of the rules by which words are cut, and the vectors of their parts become one.
    pub fn kind(&self) -> &'static str {
        KIND
    }

    /// How words are cut.
    pub fn lengths(&self) -> NgramLengths {
        self.lengths
    }

    /// Components of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The vectors, `[buckets, dim]`.
    pub fn vectors(&self) -> &[f32] {
        bytemuck::cast_slice(&self.file[self.start..])
    }

    /// The vector of a bucket, `[dim]`.
    ///
    /// # Panics
    /// If there is no such bucket.
    pub fn vector(&self, bucket: u32) -> &[f32] {
        &self.vectors()[bucket as usize * self.dim..][..self.dim]
    }

    /// The size of the mapped file, in bytes.
    pub fn bytes(&self) -> usize {
        self.file.len()
    }

    /// Opens the file beside this description, of a model with this dimension.
    pub(super) fn open(
        path: &Path,
        found: Description,
        dim: usize,
        open: &dyn Fn(&Path) -> Result<Mapped, ModelError>,
    ) -> Result<Self, ModelError> {
        let Description { minn, maxn, buckets, bytes, checksum, .. } = found;
        if found.dim != dim || buckets == 0 {
            let reason = format!("{buckets} × {} numbers, in a model of {dim}", found.dim);
            return Err(ModelError::damaged(path, reason));
        }
        let path = path.with_file_name(NGRAMS_FILE);
        let file = open(&path)?.of_size(bytes, &path)?;
        let numbers = Numbers::read(&file).map_err(|reason| ModelError::damaged(&path, reason))?;
        let is_expected = numbers.number == Number::F32
            && numbers.shape == [u64::from(buckets), dim as u64]
            && numbers.bytes(&file).is_ok()
            && numbers.start.is_multiple_of(size_of::<f32>() as u64);
        if !is_expected {
            let reason = format!("it does not have {buckets} × {dim} aligned float32 numbers");
            return Err(ModelError::damaged(&path, reason));
        }
        let lengths = NgramLengths { minn, maxn, buckets };
        Ok(Self { path, lengths, dim, start: numbers.start as usize, file, checksum })
    }

    pub(super) fn verify_while(&self, goes_on: &dyn Fn() -> bool) -> Result<(), ModelError> {
        verify_file(&self.path, &self.file, self.checksum, goes_on)
    }
}

/// Vectors of n-grams that are to be a model's.
#[derive(Debug, Clone, Copy)]
pub struct NewNgrams<'a> {
    /// How words are cut.
    pub lengths: NgramLengths,
    /// The vectors.
    pub vectors: NgramVectors<'a>,
}

/// Vectors of n-grams, `[buckets, dim]`.
#[derive(Clone, Copy)]
pub enum NgramVectors<'a> {
    /// As they are stored: float32, little-endian.
    Stored(&'a [u8]),
    /// Made a few at a time: those from this bucket on, as many as fit.
    Made(&'a dyn Fn(u32, &mut [f32])),
}

impl fmt::Debug for NgramVectors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stored(_) => "stored",
            Self::Made(_) => "made",
        })
    }
}

impl NewNgrams<'_> {
    /// Writes the file. Returns the description.
    ///
    /// # Panics
    /// If there are not as many numbers as there should be.
    pub(super) fn write(
        &self,
        folder: &Path,
        dim: usize,
        weights: Option<Described>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<u8>, ModelError> {
        let NgramLengths { minn, maxn, buckets } = self.lengths;
        let head = iter::once(Cow::from(head("'<f4'", &[u64::from(buckets), dim as u64])));
        let path = folder.join(NGRAMS_FILE);
        let (bytes, checksum) = match self.vectors {
            NgramVectors::Stored(vectors) => {
                let expected = buckets as usize * dim * size_of::<f32>();
                assert_eq!(vectors.len(), expected, "a vector for each bucket");
                write_file(&path, head.chain([vectors.into()]), goes_on)?
            }
            NgramVectors::Made(make) => {
                let each = (TOGETHER / (dim * size_of::<f32>())).max(1);
                let chunks = (0..buckets).step_by(each).map(|first| {
                    let mut vectors = vec![0.0; each.min((buckets - first) as usize) * dim];
                    make(first, &mut vectors);
                    Cow::from(bytemuck::cast_slice(&vectors).to_vec())
                });
                write_file(&path, head.chain(chunks), goes_on)?
            }
        };
        let (format, kind) = (super::FORMAT, KIND.to_owned());
        let of_all =
            Description { format, kind, minn, maxn, buckets, dim, bytes, checksum, weights };
        Ok(described(&of_all))
    }
}

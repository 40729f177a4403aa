//! The folder `encoder` of a model: the vectors of n-grams, from which words that are no rows get
//! theirs.
//!
//! It has `encoder.json`, which names its kind and has the checksum of the other file, and
//! `ngrams.npy`: float32 `[buckets, dim]`. The header of the model has the checksum of
//! `encoder.json`. A fold of changes leaves the folder as it is.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ModelError;
use crate::format::Checksum;
use crate::mapped::Mapped;
use crate::npy::{Numbers, head};
use crate::number::Number;

/// The folder of an encoder, inside the model's.
pub(crate) const ENCODER_FOLDER: &str = "encoder";
const DESCRIPTION_FILE: &str = "encoder.json";
const NGRAMS_FILE: &str = "ngrams.npy";
/// The version of the format.
const FORMAT: u32 = 1;
/// The kind of encoder that words and their n-grams are.
const KIND: &str = "fasttext";
/// Bytes that are written and hashed together.
const TOGETHER: usize = 4 << 20;

/// Whether a file of this name may be one of the folder.
pub(crate) fn is_own_file(name: &str) -> bool {
    [DESCRIPTION_FILE, NGRAMS_FILE].contains(&name)
}

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
struct Description {
    format: u32,
    kind: String,
    minn: i32,
    maxn: i32,
    buckets: u32,
    dim: usize,
    bytes: u64,
    checksum: Checksum,
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

    /// Opens the folder of a model with this dimension, whose header has this checksum.
    pub(crate) fn open(
        folder: &Path,
        expected: Checksum,
        dim: usize,
        open: &dyn Fn(&Path) -> Result<Mapped, ModelError>,
    ) -> Result<Self, ModelError> {
        let path = folder.join(DESCRIPTION_FILE);
        let text = open(&path)?;
        let damaged = |reason: String| ModelError::damaged(&path, reason);
        if Checksum::of(&text) != expected {
            return Err(damaged("its checksum is not that of the model's header".to_owned()));
        }
        let found: Description = serde_json::from_slice(&text)
            .map_err(|error| damaged(format!("it can't be read ({error})")))?;
        let Description { format, kind, minn, maxn, buckets, bytes, checksum, .. } = found;
        if (format, &*kind) != (FORMAT, KIND) {
            let reason = format!(
                "it is an encoder of the kind `{kind}`, format {format}, and this program reads \
                 `{KIND}`, format {FORMAT}; use a newer kindred"
            );
            return Err(damaged(reason));
        }
        if found.dim != dim || buckets == 0 {
            let reason = format!("{buckets} × {} numbers, in a model of {dim}", found.dim);
            return Err(damaged(reason));
        }
        let path = folder.join(NGRAMS_FILE);
        let file = open(&path)?;
        if file.len() as u64 != bytes {
            return Err(ModelError::Size { found: file.len() as u64, expected: bytes, path });
        }
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

    /// Reads everything and compares its checksum.
    pub(crate) fn verify_while(&self, goes_on: &dyn Fn() -> bool) -> Result<(), ModelError> {
        let found = Checksum::of_while(&self.file, goes_on).ok_or(ModelError::Cancelled)?;
        if found == self.checksum {
            return Ok(());
        }
        let reason = format!("its checksum is {found}, not {}", self.checksum);
        Err(ModelError::damaged(&self.path, reason))
    }
}

/// Vectors of n-grams that are to be a model's.
#[derive(Debug, Clone, Copy)]
pub struct NewNgrams<'a> {
    /// How words are cut.
    pub lengths: NgramLengths,
    /// The vectors, `[buckets, dim]` float32, little-endian.
    pub vectors: &'a [u8],
}

impl NewNgrams<'_> {
    /// Writes the folder, synced to disk, with vectors of `dim` components. Returns the checksum of
    /// its description.
    ///
    /// # Panics
    /// If there are not as many numbers as there should be.
    pub(crate) fn write(
        &self,
        folder: &Path,
        dim: usize,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Checksum, ModelError> {
        let NgramLengths { minn, maxn, buckets } = self.lengths;
        let expected = buckets as usize * dim * size_of::<f32>();
        assert_eq!(self.vectors.len(), expected, "a vector for each bucket");
        std::fs::create_dir(folder).map_err(ModelError::io("create", folder))?;
        let path = folder.join(NGRAMS_FILE);
        let failed = |error: io::Error| ModelError::io("write", &path)(error);
        let mut out = BufWriter::new(File::create_new(&path).map_err(failed)?);
        let head = head("'<f4'", &[u64::from(buckets), dim as u64]);
        let mut hasher = blake3::Hasher::new();
        for piece in std::iter::once(&head[..]).chain(self.vectors.chunks(TOGETHER)) {
            hasher.update_rayon(piece);
            out.write_all(piece).map_err(failed)?;
            if !goes_on() {
                return Err(ModelError::Cancelled);
            }
        }
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        let description = Description {
            format: FORMAT,
            kind: KIND.to_owned(),
            minn,
            maxn,
            buckets,
            dim,
            bytes: (head.len() + self.vectors.len()) as u64,
            checksum: Checksum::from_hasher(&hasher),
        };
        let mut text = serde_json::to_vec_pretty(&description).expect("texts and numbers");
        text.push(b'\n');
        crate::whole::write_new(&folder.join(DESCRIPTION_FILE), &text)?;
        crate::moves::sync_folder(folder).map_err(ModelError::io("write", folder))?;
        Ok(Checksum::of(&text))
    }
}

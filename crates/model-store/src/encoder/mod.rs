//! The folder `encoder` of a model: from which texts, or words that are no rows, get vectors.
//!
//! It has `encoder.json`, which names its kind and has the checksums of the files beside it. The
//! header of the model has the checksum of `encoder.json`. A fold of changes leaves the folder as it
//! is. The vectors of n-grams and the weights of words are read here; other kinds are settings and
//! files that whoever knows their kind reads.

mod files;
mod ngrams;
mod weights;

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use self::files::{EncoderFiles, NewFiles};
pub use self::ngrams::{NewNgrams, NgramLengths, NgramVectors, Ngrams};
pub use self::weights::TextWeights;
use crate::ModelError;
use crate::format::Checksum;
use crate::mapped::Mapped;

/// The folder of an encoder, inside the model's.
pub(crate) const ENCODER_FOLDER: &str = "encoder";
const DESCRIPTION_FILE: &str = "encoder.json";
/// The kind of encoder that the rows are, with weights.
const WORDS: &str = "words";
/// The kind of encoder of a model whose vectors were made elsewhere: there is none.
pub const NO_ENCODER: &str = "none";
/// The version of the format.
const FORMAT: u32 = 1;
/// Bytes that are written and hashed together.
const TOGETHER: usize = 4 << 20;

/// Whether a file of this name may be one of the folder.
pub(crate) fn is_own_file(name: &str) -> bool {
    [DESCRIPTION_FILE, ngrams::NGRAMS_FILE, weights::WEIGHTS_FILE].contains(&name)
        || files::NAMES.contains(&name)
}

/// The encoder of a model.
#[derive(Debug)]
pub(crate) enum Encoder {
    /// The words that are rows, with weights.
    Words(TextWeights),
    /// These, with weights or without, and n-grams.
    Ngrams(Ngrams, Option<TextWeights>),
    Files(EncoderFiles),
}

/// An encoder that is to be a model's.
#[derive(Debug)]
pub enum NewEncoder<'a> {
    /// The vectors of n-grams.
    Ngrams(NewNgrams<'a>),
    /// One of another kind.
    Files(NewFiles<'a>),
}

/// The content of `encoder.json` where the rows are the encoder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WordsDescription {
    format: u32,
    kind: String,
    dim: usize,
    weights: weights::Described,
}

/// What all descriptions have.
#[derive(Deserialize)]
struct Kind {
    format: u32,
    kind: String,
}

impl Encoder {
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
        let unreadable = |error: serde_json::Error| damaged(format!("it can't be read ({error})"));
        let Kind { format, kind } = serde_json::from_slice(&text).map_err(unreadable)?;
        if format != FORMAT {
            let reason = format!(
                "it is an encoder of the kind `{kind}`, format {format}, and this program reads \
                 format {FORMAT}; use a newer kindred"
            );
            return Err(damaged(reason));
        }
        match &*kind {
            WORDS => {
                let found =
                    serde_json::from_slice::<WordsDescription>(&text).map_err(unreadable)?;
                if found.dim != dim {
                    let found = found.dim;
                    return Err(damaged(format!(
                        "words of {found} components, in a model of {dim}"
                    )));
                }
                TextWeights::open(&path, found.weights, open).map(Self::Words)
            }
            ngrams::KIND => {
                let mut found: ngrams::Description =
                    serde_json::from_slice(&text).map_err(unreadable)?;
                let weights = found.weights.take();
                let weights = weights.map(|found| TextWeights::open(&path, found, open));
                Ok(Self::Ngrams(Ngrams::open(&path, found, dim, open)?, weights.transpose()?))
            }
            _ => {
                let found = serde_json::from_slice(&text).map_err(unreadable)?;
                EncoderFiles::open(&path, found, dim, open).map(Self::Files)
            }
        }
    }

    /// Reads everything and compares the checksums.
    pub(crate) fn verify_while(&self, goes_on: &dyn Fn() -> bool) -> Result<(), ModelError> {
        match self {
            Self::Words(weights) => weights.verify_while(goes_on),
            Self::Ngrams(ngrams, weights) => {
                ngrams.verify_while(goes_on)?;
                weights.iter().try_for_each(|weights| weights.verify_while(goes_on))
            }
            Self::Files(files) => files.verify_while(goes_on),
        }
    }

    /// The weights of words in texts, if they have any.
    pub(crate) fn text_weights(&self) -> Option<&TextWeights> {
        match self {
            Self::Words(weights) => Some(weights),
            Self::Ngrams(_, weights) => weights.as_ref(),
            Self::Files(_) => None,
        }
    }
}

/// Writes the folder, synced to disk, of a model with vectors of `dim` components: of an encoder, of
/// weights of the rows in texts, or of both. Returns the checksum of its description.
///
/// # Panics
/// If there are not as many numbers as there should be, or weights beside an encoder that does not
/// add words.
pub(crate) fn write(
    encoder: Option<&NewEncoder<'_>>,
    weights: Option<&[f64]>,
    folder: &Path,
    dim: usize,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Checksum, ModelError> {
    std::fs::create_dir(folder).map_err(ModelError::io("create", folder))?;
    let weights = weights.map(|weights| weights::write(weights, folder, goes_on)).transpose()?;
    let text = match (encoder, weights) {
        (Some(NewEncoder::Ngrams(ngrams)), weights) => {
            ngrams.write(folder, dim, weights, goes_on)?
        }
        (Some(NewEncoder::Files(files)), None) => files.write(folder, dim, goes_on)?,
        (None, Some(weights)) => {
            described(&WordsDescription { format: FORMAT, kind: WORDS.to_owned(), dim, weights })
        }
        (Some(NewEncoder::Files(_)), Some(_)) => panic!("weights are of words"),
        (None, None) => panic!("a folder of something"),
    };
    crate::whole::write_new(&folder.join(DESCRIPTION_FILE), &text)?;
    crate::moves::sync_folder(folder).map_err(ModelError::io("write", folder))?;
    Ok(Checksum::of(&text))
}

/// Writes a file of these pieces, synced to disk. Returns its size and checksum.
fn write_file<'a>(
    path: &Path,
    pieces: impl IntoIterator<Item = Cow<'a, [u8]>>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<(u64, Checksum), ModelError> {
    use std::io::Write as _;

    let failed = |error: std::io::Error| ModelError::io("write", path)(error);
    let mut out = std::fs::File::create_new(path).map_err(failed)?;
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
    for pieces in pieces {
        for piece in pieces.chunks(TOGETHER) {
            hasher.update_rayon(piece);
            out.write_all(piece).map_err(failed)?;
            bytes += piece.len() as u64;
            if !goes_on() {
                return Err(ModelError::Cancelled);
            }
        }
    }
    out.sync_all().map_err(failed)?;
    Ok((bytes, Checksum::from_hasher(&hasher)))
}

/// The bytes of a description.
fn described(description: &impl serde::Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(description).expect("texts and numbers");
    text.push(b'\n');
    text
}

/// Compares the checksum of a file.
fn verify_file(
    path: &Path,
    file: &[u8],
    expected: Checksum,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), ModelError> {
    let found = Checksum::of_while(file, goes_on).ok_or(ModelError::Cancelled)?;
    match found == expected {
        true => Ok(()),
        false => {
            let reason = format!("its checksum is {found}, not {expected}");
            Err(ModelError::damaged(path, reason))
        }
    }
}

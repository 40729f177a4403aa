//! The folder `encoder` of a model: from which texts, or words that are no rows, get vectors.
//!
//! It has `encoder.json`, which names its kind and has the checksums of the files beside it. The
//! header of the model has the checksum of `encoder.json`. A fold of changes leaves the folder as it
//! is. The vectors of n-grams are read here; other kinds are settings and files that whoever knows
//! their kind reads.

mod files;
mod ngrams;

use std::path::Path;

use serde::Deserialize;

pub use self::files::{EncoderFiles, NewFiles};
pub use self::ngrams::{NewNgrams, NgramLengths, Ngrams};
use crate::ModelError;
use crate::format::Checksum;
use crate::mapped::Mapped;

/// The folder of an encoder, inside the model's.
pub(crate) const ENCODER_FOLDER: &str = "encoder";
const DESCRIPTION_FILE: &str = "encoder.json";
/// The version of the format.
const FORMAT: u32 = 1;
/// Bytes that are written and hashed together.
const TOGETHER: usize = 4 << 20;

/// Whether a file of this name may be one of the folder.
pub(crate) fn is_own_file(name: &str) -> bool {
    name == DESCRIPTION_FILE || name == ngrams::NGRAMS_FILE || files::NAMES.contains(&name)
}

/// The encoder of a model.
#[derive(Debug)]
pub(crate) enum Encoder {
    Ngrams(Ngrams),
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
            ngrams::KIND => {
                let found = serde_json::from_slice(&text).map_err(unreadable)?;
                Ngrams::open(&path, found, dim, open).map(Self::Ngrams)
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
            Self::Ngrams(ngrams) => ngrams.verify_while(goes_on),
            Self::Files(files) => files.verify_while(goes_on),
        }
    }
}

impl NewEncoder<'_> {
    /// Writes the folder, synced to disk, of a model with vectors of `dim` components. Returns the
    /// checksum of its description.
    ///
    /// # Panics
    /// If there are not as many numbers as there should be.
    pub(crate) fn write(
        &self,
        folder: &Path,
        dim: usize,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Checksum, ModelError> {
        std::fs::create_dir(folder).map_err(ModelError::io("create", folder))?;
        let text = match self {
            Self::Ngrams(ngrams) => ngrams.write(folder, dim, goes_on)?,
            Self::Files(files) => files.write(folder, dim, goes_on)?,
        };
        crate::whole::write_new(&folder.join(DESCRIPTION_FILE), &text)?;
        crate::moves::sync_folder(folder).map_err(ModelError::io("write", folder))?;
        Ok(Checksum::of(&text))
    }
}

/// Writes a file of these pieces, synced to disk. Returns its size and checksum.
fn write_file(
    path: &Path,
    pieces: &[&[u8]],
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<(u64, Checksum), ModelError> {
    use std::io::Write as _;

    let failed = |error: std::io::Error| ModelError::io("write", path)(error);
    let mut out = std::fs::File::create_new(path).map_err(failed)?;
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
    for piece in pieces.iter().flat_map(|piece| piece.chunks(TOGETHER)) {
        hasher.update_rayon(piece);
        out.write_all(piece).map_err(failed)?;
        bytes += piece.len() as u64;
        if !goes_on() {
            return Err(ModelError::Cancelled);
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

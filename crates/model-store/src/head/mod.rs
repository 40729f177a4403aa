//! Heads: small trained models over a model's rows, each in a folder of its own.
//!
//! - `description`: `head.json`, what the head is and what it was made for;
//! - `seal`: the checksums, and writing both files;
//! - `tensors`: `weights.safetensors`;
//! - here: opening a classifier beside its model, and writing one;
//! - `expander`: the same for expanders;
//! - `fasttext`: the folder of a classifier of fastText, whose file is kept as it is.

mod description;
mod error;
mod expander;
mod fasttext;
mod seal;
mod tensors;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use contract::Token;
use contract::classifier::{Classifier, Convolution, Layer};
use contract::{Row, TokenClassifier, VectorSource};

pub use description::{
    About, ConvolutionShape, Cut, Description, HEAD_VERSION, HeadFormat, HeadKind, MadeFor,
    Probabilities, Tokeniser, Tokens,
};
pub use error::HeadError;
pub use expander::{Expander, ExpanderDescription, ExpanderWeights, TermsFrom, write_expander};
pub use fasttext::{FastTextDescription, FastTextFiles};

use crate::error::Reason;
use crate::format::Checksum;
use crate::mapped::Mapped;
use crate::whole::{FolderKind, NewFolder};
use crate::{ModelError, ModelStore};
use tensors::Tensors;

/// The name of the description.
pub const HEAD_FILE: &str = crate::format::HEAD_FILE;
/// The name of the weights.
pub const WEIGHTS_FILE: &str = "weights.safetensors";
/// The name of a file of fastText, which takes the place of the weights.
pub const FASTTEXT_FILE: &str = "fasttext.bin";

static HEAD: FolderKind = FolderKind {
    files: &[HEAD_FILE, WEIGHTS_FILE, FASTTEXT_FILE],
    inner: &[],
    nested: None,
    is_other: "exists, but is not a head or holds other files too; choose another --out",
    is_taken: "already holds a head; choose another --out, or add --replace",
};

/// What kind of head a folder has, and for which model it was made, if for one.
///
/// # Errors
/// If the folder is no head, or its description can't be read.
pub fn about(folder: &Path) -> Result<About, HeadError> {
    check_folder(folder)?;
    let path = folder.join(HEAD_FILE);
    description::parse(&path, &Mapped::open(&path)?)
}

/// Checks that a head can be written to `out`, before the work that makes it. Leaves nothing there.
///
/// # Errors
/// If something is in the way, or the folder around it can't be written to.
pub fn check_free(out: &Path, replace: bool) -> Result<(), HeadError> {
    NewFolder::beside(&HEAD, out, replace.into())?;
    Ok(())
}

/// Checks that a folder has a head's description.
fn check_folder(folder: &Path) -> Result<(), HeadError> {
    if folder.join(HEAD_FILE).is_file() {
        return Ok(());
    }
    let reason = match folder.is_dir() {
        true => format!("it has no file {HEAD_FILE}"),
        false => "there is no such folder".to_owned(),
    };
    Err(HeadError::NotAHead { path: folder.to_owned(), reason })
}

/// A classifier that fits its model.
///
/// # Errors
/// Whatever opens or makes one, if there is no head, if it is damaged, or if it was made for
/// another model. Each error names the cure.
#[derive(Debug)]
pub struct Head {
    description: Description,
    classifier: Classifier,
    tensors: Tensors,
    rows: u32,
    /// The numbers of its own words.
    own: HashMap<String, u32>,
}

/// What a classifier is made of.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Everything but the checksums, which are computed.
    pub description: Description,
    /// The weights.
    pub classifier: Classifier,
    /// Vectors that replace those of the model's rows, ascending by row: `[rows, dim]`.
    pub tuned: (Vec<Row>, Vec<f32>),
    /// The vectors of the description's `words`, `[words, dim]`.
    pub added: Vec<f32>,
    /// The vector for words that are unknown; without one, they are left out.
    pub unknown: Option<Vec<f32>>,
}

impl Head {
    /// Maps a head's folder. Checks the description and its checksum, that the head was made for
    /// this model, all shapes, the checksum of the weights, and that they are finite.
    pub fn open(folder: &Path, model: &ModelStore) -> Result<Self, HeadError> {
        check_folder(folder)?;
        let path = folder.join(HEAD_FILE);
        let description = Description::parse(&path, &Mapped::open(&path)?)?;
        let weights = Mapped::open(&folder.join(WEIGHTS_FILE))?;
        Self::from_parts(folder, description, weights, model)
    }

    /// A head from the content of its two files. `name` is for errors.
    pub fn from_bytes(
        name: &str,
        description: &[u8],
        weights: &[u8],
        model: &ModelStore,
    ) -> Result<Self, HeadError> {
        let folder = PathBuf::from(name);
        let description = Description::parse(&folder.join(HEAD_FILE), description)?;
        let weights =
            Mapped::copy_of(weights).map_err(ModelError::io("keep in memory", &folder))?;
        Self::from_parts(&folder, description, weights, model)
    }

    /// Puts a head together in memory.
    pub fn from_memory(parts: &Parts, model: &ModelStore) -> Result<Self, HeadError> {
        let (description, weights) = parts.files()?;
        let folder = PathBuf::from("a head in memory");
        let weights =
            Mapped::copy_of(&weights).map_err(ModelError::io("keep in memory", &folder))?;
        Self::from_parts(&folder, description, weights, model)
    }

    fn from_parts(
        folder: &Path,
        description: Description,
        weights: Mapped,
        model: &ModelStore,
    ) -> Result<Self, HeadError> {
        let damaged =
            |file: &str, reason: Reason| HeadError::Damaged { path: folder.join(file), reason };
        description.check().map_err(|reason| damaged(HEAD_FILE, reason.into()))?;
        description.model.check(folder, model)?;
        seal::check_file(folder, WEIGHTS_FILE, &weights, &description.weights)?;
        let damaged_weights = |reason| damaged(WEIGHTS_FILE, reason);
        let tensors = Tensors::new(weights, &description, model.dim()).map_err(damaged_weights)?;
        let classifier = tensors.classifier(&description, model.dim()).map_err(damaged_weights)?;
        tensors.check_rows(model.rows()).map_err(damaged_weights)?;
        let own = description.words.iter().cloned().zip(0..).collect();
        Ok(Self { description, classifier, tensors, rows: model.rows() as u32, own })
    }

    /// What the head is.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The checksum that belongs into its description, if that has none.
    pub fn missing_checksum(&self) -> Option<String> {
        self.description.checksum.is_none().then(|| seal::checksum_of(&self.description))
    }

    /// The token of a row of the model.
    pub fn of_row(&self, row: Row) -> Token {
        assert!(row.0 < self.rows, "a row of the head's model");
        Token(row.0)
    }

    /// The token of a word that the head has besides the model's.
    pub fn of_own_word(&self, word: &str) -> Option<Token> {
        self.own.get(word).map(|index| Token(self.rows + index))
    }

    /// The token for unknown words; `None` if they are left out.
    pub fn unknown(&self) -> Option<Token> {
        let own = self.description.words.len() as u32;
        self.tensors.unknown().map(|_| Token(self.rows + own))
    }
}

impl TokenClassifier for Head {
    fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    fn tokens(&self) -> usize {
        let unknown = usize::from(self.tensors.unknown().is_some());
        self.rows as usize + self.description.words.len() + unknown
    }

    fn longest_text(&self) -> usize {
        self.description.tokens.limit
    }

    /// First the model's rows, then the head's own words, then the vector for unknown words.
    fn source(&self, token: Token) -> VectorSource<'_> {
        if token.0 < self.rows {
            return match self.tensors.tuned(token.0) {
                Some(tuned) => VectorSource::Own(tuned),
                None => {
                    VectorSource::Row { row: Row(token.0), scale: self.description.other_words }
                }
            };
        }
        let own = (token.0 - self.rows) as usize;
        VectorSource::Own(match own < self.description.words.len() {
            true => self.tensors.added(own),
            false => self.tensors.unknown().expect("there is such a token"),
        })
    }
}

impl Parts {
    /// Writes a head's folder, complete or not at all.
    ///
    /// # Errors
    /// If `out` exists (unless it is a head and `replace` is set), or can't be written.
    pub fn write(&self, out: &Path, replace: bool) -> Result<(), HeadError> {
        let (description, weights) = self.files()?;
        seal::write(out, replace, &description, (WEIGHTS_FILE, &weights))
    }

    /// The complete description, and the weights as a file.
    fn files(&self) -> Result<(Description, Vec<u8>), HeadError> {
        let weights = tensors::write(self)
            .map_err(|reason| HeadError::Damaged { path: WEIGHTS_FILE.into(), reason })?;
        let shape = |one: &Convolution| ConvolutionShape {
            width: one.width,
            channels: one.channels(),
            padding: one.padding,
        };
        let description = Description {
            weights: Checksum::of(&weights).to_string(),
            convolutions: self.classifier.convolutions().iter().map(shape).collect(),
            layers: self.classifier.layers().iter().map(|layer: &Layer| layer.bias.len()).collect(),
            ..self.description.clone()
        };
        let checksum = Some(seal::checksum_of(&description));
        Ok((Description { checksum, ..description }, weights))
    }
}

#[cfg(test)]
mod tests;

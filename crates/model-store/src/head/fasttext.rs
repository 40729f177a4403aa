//! The folder of a classifier of fastText: its file as fastText wrote it, and `head.json`.
//!
//! It has rows of its own, so it is served beside any model. The crates above read the file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::description::{check_kind, parse};
use super::{
    FASTTEXT_FILE, HEAD_FILE, HEAD_VERSION, HeadError, HeadFormat, Probabilities, check_folder,
    seal,
};
use crate::format::Checksum;
use crate::mapped::Mapped;

/// The description of a classifier of fastText.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FastTextDescription {
    /// [`HeadFormat::FastText`].
    pub kind: HeadFormat,
    /// [`HEAD_VERSION`].
    pub version: u32,
    /// The labels, in the order of the file.
    pub labels: Vec<String>,
    /// How probabilities are read.
    pub probabilities: Probabilities,
    /// The checksum of the file.
    pub weights: String,
    /// How it was made, for people.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub training: serde_json::Map<String, serde_json::Value>,
    /// The checksum of all this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

/// The files of such a head.
#[derive(Debug)]
pub struct FastTextFiles {
    /// The path of the file of fastText.
    pub path: PathBuf,
    /// The description.
    pub description: FastTextDescription,
    /// The file of fastText.
    pub file: Mapped,
}

impl FastTextDescription {
    /// That of a head with these labels, without checksums.
    pub fn new(
        labels: Vec<String>,
        probabilities: Probabilities,
        training: serde_json::Map<String, serde_json::Value>,
    ) -> Self {
        let (kind, version) = (HeadFormat::FastText, HEAD_VERSION);
        let (weights, checksum) = (String::new(), None);
        Self { kind, version, labels, probabilities, weights, training, checksum }
    }

    /// The checksum that belongs into it, if it has none.
    pub fn missing_checksum(&self) -> Option<String> {
        self.checksum.is_none().then(|| seal::checksum_of(self))
    }

    /// Writes a head's folder, complete or not at all. `file` is the content of the file.
    ///
    /// # Errors
    /// If `out` exists (unless it is a head and `replace` is set), or can't be written.
    pub fn write(mut self, out: &Path, replace: bool, file: &[u8]) -> Result<(), HeadError> {
        self.weights = Checksum::of(file).to_string();
        self.checksum = Some(seal::checksum_of(&self));
        seal::write(out, replace, &self, (FASTTEXT_FILE, file))
    }
}

impl FastTextFiles {
    /// Maps a head's folder. Checks the description and both checksums.
    ///
    /// # Errors
    /// If it is no such head, or damaged.
    pub fn open(folder: &Path) -> Result<Self, HeadError> {
        check_folder(folder)?;
        let path = folder.join(HEAD_FILE);
        let json = Mapped::open(&path)?;
        check_kind(&path, &json, HeadFormat::FastText)?;
        let description: FastTextDescription = parse(&path, &json)?;
        let path = folder.join(FASTTEXT_FILE);
        let file = Mapped::open(&path)?;
        seal::check_file(folder, FASTTEXT_FILE, &file, &description.weights)?;
        Ok(Self { path, description, file })
    }
}

//! Encoders whose kind this crate does not know: settings and files, with their checksums.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{described, verify_file, write_file};
use crate::ModelError;
use crate::format::Checksum;
use crate::mapped::Mapped;

/// The names that files may have.
pub(super) const NAMES: [&str; 2] = ["tokenizer.json", "rows.safetensors"];

/// The content of `encoder.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    format: u32,
    kind: String,
    dim: usize,
    settings: Value,
    files: Vec<DescribedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedFile {
    name: String,
    bytes: u64,
    checksum: Checksum,
}

/// An encoder as settings and mapped files.
pub struct EncoderFiles {
    description: PathBuf,
    kind: String,
    settings: Value,
    files: Vec<(String, Mapped, Checksum)>,
    read: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl EncoderFiles {
    /// The name of its kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The settings, of a form that its kind defines.
    pub fn settings(&self) -> &Value {
        &self.settings
    }

    /// The path of the file of this name, and its bytes.
    pub fn file(&self, name: &str) -> Option<(PathBuf, &Mapped)> {
        let (_, file, _) = self.files.iter().find(|(other, ..)| other == name)?;
        Some((self.description.with_file_name(name), file))
    }

    /// The path of its description, for messages.
    pub fn path(&self) -> &Path {
        &self.description
    }

    /// Keeps what `read` makes of it, and does not ask again.
    ///
    /// # Errors
    /// As `read`.
    ///
    /// # Panics
    /// If it was asked for another type before.
    pub fn read_once<T: Any + Send + Sync, E>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<&T, E> {
        let kept = match self.read.get() {
            Some(kept) => kept,
            None => {
                let new: Box<dyn Any + Send + Sync> = Box::new(read(self)?);
                self.read.get_or_init(|| new)
            }
        };
        Ok(kept.downcast_ref().expect("one kind of encoder has one reader"))
    }

    pub(super) fn open(
        path: &Path,
        found: Description,
        dim: usize,
        open: &dyn Fn(&Path) -> Result<Mapped, ModelError>,
    ) -> Result<Self, ModelError> {
        let Description { kind, settings, files, .. } = found;
        if found.dim != dim {
            let reason = format!("vectors of {} components, in a model of {dim}", found.dim);
            return Err(ModelError::damaged(path, reason));
        }
        let opened = files.into_iter().map(|DescribedFile { name, bytes, checksum }| {
            if !NAMES.contains(&&*name) {
                let reason = format!(
                    "it has a file {name:?}, which this program does not know; use a newer kindred"
                );
                return Err(ModelError::damaged(path, reason));
            }
            let path = path.with_file_name(&name);
            Ok((name, open(&path)?.of_size(bytes, &path)?, checksum))
        });
        let files = opened.collect::<Result<_, _>>()?;
        let (description, read) = (path.to_owned(), OnceLock::new());
        Ok(Self { description, kind, settings, files, read })
    }

    pub(super) fn verify_while(&self, goes_on: &dyn Fn() -> bool) -> Result<(), ModelError> {
        self.files.iter().try_for_each(|(name, file, checksum)| {
            verify_file(&self.description.with_file_name(name), file, *checksum, goes_on)
        })
    }
}

impl std::fmt::Debug for EncoderFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.description.display())
    }
}

/// An encoder of settings and files that is to be a model's.
#[derive(Debug)]
pub struct NewFiles<'a> {
    /// The name of its kind.
    pub kind: &'a str,
    /// Its settings.
    pub settings: Value,
    /// The names and contents of its files.
    pub files: Vec<(&'a str, &'a [u8])>,
}

impl NewFiles<'_> {
    /// Writes the files. Returns the description.
    ///
    /// # Panics
    /// If a file has a name that is not read.
    pub(super) fn write(
        &self,
        folder: &Path,
        dim: usize,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<u8>, ModelError> {
        let mut files = Vec::new();
        for (name, content) in &self.files {
            assert!(NAMES.contains(name), "a name that is read");
            let (bytes, checksum) = write_file(&folder.join(name), [(*content).into()], goes_on)?;
            files.push(DescribedFile { name: (*name).to_owned(), bytes, checksum });
        }
        let (kind, settings) = (self.kind.to_owned(), self.settings.clone());
        Ok(described(&Description { format: super::FORMAT, kind, dim, settings, files }))
    }
}

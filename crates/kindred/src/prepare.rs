//! From files to model folders: [`prepare_folder`] reads vectors, fastText's models and static models;
//! [`prepare_documents`] encodes texts, or takes vectors that were made of them elsewhere.

use std::path::{Path, PathBuf};

pub use encoders::prepare_folder;
use encoders::{RowsAre, StaticModel, TextEncoder, text_encoder, words_of};
use model_store::attributes::AttributeType;
pub use model_store::prepare::*;
use model_store::{ModelError, ModelStore, NewEncoder};

use crate::question::{EncodeOptions, encode};

/// The file of the attributes of documents, if they have any, and which of its fields these are. If
/// it is the file of the documents itself, their texts are one of them only if they are kept.
///
/// # Errors
/// If the texts are to be kept, and the attributes are in another file.
pub fn document_attributes<'a>(
    input: &'a Path,
    attributes: Option<&'a Path>,
    text: &str,
    keep_text: bool,
) -> Result<Option<(&'a Path, WantedFields)>, String> {
    match (attributes, keep_text) {
        (None, false) => Ok(None),
        (None, true) => Ok(Some((input, WantedFields::Only(vec![text.to_owned()])))),
        (Some(path), false) if path == input => {
            Ok(Some((path, WantedFields::AllBut(text.to_owned()))))
        }
        (Some(path), true) if path != input => Err(format!(
            "texts are kept beside the other fields of {}: give that file as the attributes, or none",
            input.display()
        )),
        (Some(path), _) => Ok(Some((path, WantedFields::All))),
    }
}

/// The types of attributes with that of a kept text, which is stored unless another is given.
pub fn with_kept_text(
    mut types: Vec<(String, AttributeType)>,
    text: &str,
    keep_text: bool,
) -> Vec<(String, AttributeType)> {
    if keep_text && types.iter().all(|(name, _)| name != text) {
        types.push((text.to_owned(), AttributeType::Stored));
    }
    types
}

/// The encoder of documents.
#[derive(Debug)]
pub struct DocumentEncoder {
    by: By,
    name: String,
}

#[derive(Debug)]
enum By {
    /// A static model, which the documents' folder keeps.
    Static(Box<StaticModel>),
    /// The words of another model, which the documents' folder names.
    Words(Box<ModelStore>, PathBuf),
}

impl DocumentEncoder {
    /// Opens the encoder in a folder: a static model as its program has saved it, or a model folder,
    /// whose own encoder it is. Words stay in their folder; a static model is copied.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let name = folder
            .canonicalize()
            .ok()
            .and_then(|real| real.file_name().map(|name| name.to_string_lossy().into_owned()));
        let name = name.unwrap_or_else(|| folder.display().to_string());
        if folder.is_dir() && StaticModel::is_one(folder) {
            return Ok(Self { by: By::Static(Box::new(StaticModel::open(folder)?)), name });
        }
        let store = ModelStore::open(folder)?;
        if let Some(files) = store.encoder_files().filter(|files| files.kind() == StaticModel::KIND)
        {
            return Ok(Self { by: By::Static(Box::new(StaticModel::of_files(files)?)), name });
        }
        let by = match text_encoder(&store)? {
            Some(TextEncoder::Static(_)) => return Err(not_a_model(folder)),
            Some(TextEncoder::Elsewhere) => {
                let reason = "it has no encoder: its vectors were made elsewhere; give the folder of a \
                              static model or of a model of words, or the vectors with --vectors";
                let path = folder.to_owned();
                return Err(ModelError::BadInput { path, reason: reason.into() });
            }
            Some(TextEncoder::Words(words)) => {
                return Self::open(words.folder().ok_or_else(|| not_a_model(folder))?);
            }
            None => {
                let real = folder.canonicalize().map_err(|source| ModelError::Io {
                    action: "open",
                    path: folder.to_owned(),
                    source,
                })?;
                By::Words(Box::new(store), real)
            }
        };
        Ok(Self { by, name })
    }
}

fn not_a_model(folder: &Path) -> ModelError {
    ModelError::damaged(folder, "its encoder can't be read")
}

impl TextVectors for DocumentEncoder {
    fn dim(&self) -> usize {
        match &self.by {
            By::Static(model) => model.dim(),
            By::Words(store, _) => store.dim(),
        }
    }

    fn encode(&self, text: &str, vector: &mut [f32]) -> Result<(), String> {
        match &self.by {
            By::Static(model) => match model.encode(text, vector).count {
                0 => Err("the text has no token that the model has".to_owned()),
                _ => Ok(()),
            },
            By::Words(store, _) => {
                let found = encode(&**store, text, &EncodeOptions::default());
                let found = found.map_err(|error| format!("the text has no vector: {error}"))?;
                vector.copy_from_slice(&found.vector);
                Ok(())
            }
        }
    }

    fn encoder(&self) -> NewEncoder<'_> {
        NewEncoder::Files(match &self.by {
            By::Static(model) => model.kept(RowsAre::Texts),
            By::Words(store, folder) => words_of(folder, store.version()),
        })
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

//! The encoder of texts that a model folder has.

use std::path::{Path, PathBuf};

use model_store::{EncoderFiles, ModelError, ModelStore, NO_ENCODER, NewFiles};
use serde::{Deserialize, Serialize};

use crate::{RowsAre, StaticModel};

/// What makes vectors of a model's texts, if these are not sums of its own words.
#[derive(Debug)]
pub enum TextEncoder {
    /// A static model.
    Static(Box<StaticModel>),
    /// Another model, by whose words.
    Words(Box<ModelStore>),
    /// Nothing: the vectors of the model's rows were made elsewhere.
    Elsewhere,
}

/// The settings of an encoder that is another model.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    /// The model's folder.
    folder: PathBuf,
    /// The version that it had.
    version: String,
}

/// The kind of encoder that is another model.
const WORDS_OF: &str = "words-of";

impl TextEncoder {
    /// Whether the rows of the model that has it are texts, and not what it cuts texts into.
    pub fn is_of_documents(&self) -> bool {
        match self {
            Self::Static(model) => model.rows_are() == RowsAre::Texts,
            Self::Words(_) | Self::Elsewhere => true,
        }
    }

    fn of_files(files: &EncoderFiles) -> Result<Self, ModelError> {
        if files.kind() == NO_ENCODER {
            return Ok(Self::Elsewhere);
        }
        if files.kind() != WORDS_OF {
            return Ok(Self::Static(Box::new(StaticModel::of_files(files)?)));
        }
        let damaged = |reason: String| ModelError::damaged(files.path(), reason);
        let Reference { folder, version } =
            Reference::deserialize(files.settings()).map_err(|error| damaged(error.to_string()))?;
        let model = ModelStore::open(&folder).map_err(|error| {
            let reason = format!(
                "its texts were encoded by the model in {}, which can't be opened ({error}); put that \
                 model there again, or prepare the texts again",
                folder.display()
            );
            ModelError::BadInput { path: files.path().to_owned(), reason: reason.into() }
        })?;
        if model.version() != version {
            let reason = format!(
                "its texts were encoded by version {version} of {}, which is version {} now; prepare \
                 the texts again, or put that version there again",
                folder.display(),
                model.version()
            );
            return Err(ModelError::BadInput {
                path: files.path().to_owned(),
                reason: reason.into(),
            });
        }
        Ok(Self::Words(Box::new(model)))
    }
}

/// The encoder of a model's texts, read once; `None` if the texts of the model are sums of its words.
///
/// # Errors
/// If it is damaged, of a kind that is not known, or another model that is not there any more.
pub fn text_encoder(model: &ModelStore) -> Result<Option<&TextEncoder>, ModelError> {
    model.encoder_files().map(|files| files.read_once(TextEncoder::of_files)).transpose()
}

/// An encoder that is another model, in this folder, for the model of texts that it has encoded.
pub fn words_of<'a>(folder: &Path, version: &str) -> NewFiles<'a> {
    let (folder, version) = (folder.to_owned(), version.to_owned());
    let settings = serde_json::to_value(Reference { folder, version }).expect("texts");
    NewFiles { kind: WORDS_OF, settings, files: Vec::new() }
}

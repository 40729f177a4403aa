//! Whose folder it is, where its files are, and what its settings are.

use std::fs;
use std::path::{Component, Path, PathBuf};

use model_store::ModelError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Layout, RowsAre};
use crate::EncoderError;

/// The most tokens of a text, where `config.json` of Model2Vec does not say.
const MAX_TOKENS: usize = 512;

const CONFIG: &str = "config.json";
const MODULES: &str = "modules.json";

/// What the files of a folder say of it.
pub(super) struct Folder {
    /// The file of the tokeniser.
    pub(super) tokeniser: PathBuf,
    /// The file of the rows.
    pub(super) rows: PathBuf,
    pub(super) settings: Settings,
}

/// The settings that a model folder keeps beside the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) layout: Layout,
    /// The most tokens of a text, as Model2Vec has it.
    pub(super) max_tokens: Option<usize>,
    /// Whether vectors of texts have unit length.
    pub(super) normalizes: bool,
    /// The kind of the model's rows.
    pub(super) rows: RowsAre,
}

/// `config.json` of Model2Vec, as far as vectors depend on it.
#[derive(Deserialize)]
struct Config {
    /// Model2Vec takes none for `false`.
    #[serde(default)]
    normalize: Option<bool>,
    /// `null`: a text is not cut.
    #[serde(default = "some_max_tokens")]
    max_length: Option<usize>,
}

fn some_max_tokens() -> Option<usize> {
    Some(MAX_TOKENS)
}

/// A part of a sentence-transformers model.
#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

impl Module {
    /// The class without the package that it is in.
    fn class(&self) -> &str {
        self.kind.rsplit('.').next().unwrap_or_default()
    }
}

impl Folder {
    /// Whether it has a file by which a static model is known.
    pub(super) fn is_one(folder: &Path) -> bool {
        [CONFIG, MODULES].iter().any(|name| folder.join(name).is_file())
    }

    pub(super) fn read(folder: &Path) -> Result<Self, EncoderError> {
        let config = folder.join(CONFIG);
        if let Some(value) = json::<Value>(&config)?
            && value["model_type"] == "model2vec"
        {
            let parsed = serde_json::from_value(value);
            let Config { normalize, max_length, .. } =
                parsed.map_err(|error| faulty(&config, error.to_string()))?;
            return Ok(Self {
                tokeniser: folder.join("tokenizer.json"),
                rows: folder.join("model.safetensors"),
                settings: Settings {
                    layout: Layout::Model2Vec,
                    max_tokens: max_length,
                    normalizes: normalize.unwrap_or(false),
                    rows: RowsAre::Tokens,
                },
            });
        }
        let modules = folder.join(MODULES);
        let Some(found) = json::<Vec<Module>>(&modules)? else {
            return Err(EncoderError::Unsupported {
                path: folder.to_owned(),
                reason: "it is no folder of a static model: it has neither a config.json of \
                         Model2Vec nor a modules.json of sentence-transformers"
                    .into(),
            });
        };
        let classes: Vec<&str> = found.iter().map(Module::class).collect();
        let normalizes = match classes[..] {
            ["StaticEmbedding"] => false,
            ["StaticEmbedding", "Normalize"] => true,
            _ => {
                let reason = format!(
                    "its modules are {}, and only StaticEmbedding is read, alone or with Normalize \
                     behind it; make the vectors with sentence-transformers",
                    classes.join(", ")
                );
                return Err(EncoderError::Unsupported { path: modules, reason });
            }
        };
        let inner = Path::new(&found[0].path);
        if !inner.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            return Err(faulty(&modules, format!("the path {inner:?} leads out of the folder")));
        }
        let inner = folder.join(inner);
        let layout = Layout::StaticEmbedding;
        Ok(Self {
            tokeniser: inner.join("tokenizer.json"),
            rows: inner.join("model.safetensors"),
            settings: Settings { layout, max_tokens: None, normalizes, rows: RowsAre::Tokens },
        })
    }
}

/// What a file of JSON has; `None` if there is no such file.
fn json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Option<T>, EncoderError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(ModelError::Io { action: "read", path: path.to_owned(), source }.into());
        }
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| faulty(path, error.to_string()))
}

fn faulty(path: &Path, reason: String) -> EncoderError {
    EncoderError::Faulty { path: path.to_owned(), reason }
}

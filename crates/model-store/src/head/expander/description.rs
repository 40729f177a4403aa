//! `head.json` of an expander.

use std::path::{Path, PathBuf};

use contract::Row;
use serde::{Deserialize, Serialize};

use super::super::description::{self, HeadFormat, HeadKind, MadeFor, Tokens};
use super::super::{HEAD_VERSION, HeadError};
use crate::ModelStore;
use crate::error::Reason;

/// The description of an expander.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpanderDescription {
    /// [`HeadKind::Expander`].
    pub kind: HeadKind,
    /// [`HEAD_VERSION`].
    pub version: u32,
    /// The model that it was made for: its words are the tokens.
    pub model: MadeFor,
    /// Where the terms are.
    pub terms: TermsFrom,
    /// How texts become tokens. Without it, the vectors of tokens come with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Words that are left out of texts, in lower case; empty for none. The list is kept here, so
    /// that a head gives the same answers in every version of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_words: Vec<String>,
    /// Whether weights are `log(1 + value)`, as in SPLADE; otherwise they are the values.
    pub log1p: bool,
    /// The checksum of the weights' file.
    pub weights: String,
    /// How it was made, for people: the data, settings and results.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub training: serde_json::Map<String, serde_json::Value>,
    /// The checksum of all this. Heads of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

/// Where an expander's terms are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "from", deny_unknown_fields)]
pub enum TermsFrom {
    /// The terms are words of the model, with the model's vectors, or with vectors in the weights'
    /// file.
    Model {},
    /// The terms are the words of another model folder, under the metric `dot`.
    Folder {
        /// Its path, relative to the head's folder.
        path: PathBuf,
        /// What is in it.
        model: MadeFor,
    },
}

impl ExpanderDescription {
    pub(super) fn parse(path: &Path, json: &[u8]) -> Result<Self, HeadError> {
        let damaged = |reason: Reason| HeadError::Description { path: path.to_owned(), reason };
        description::check_kind(path, json, HeadFormat::Expander)?;
        let read: Self = description::parse(path, json)?;
        let checked = read.tokens.as_ref().map_or(Ok(()), Tokens::check);
        checked.map_err(|reason| damaged(reason.into()))?;
        Ok(read)
    }

    /// That of an expander whose terms are the words of its model. Weights are logarithms; nothing
    /// was learnt.
    pub fn of_model(model: &ModelStore, tokens: Tokens) -> Self {
        Self {
            kind: HeadKind::Expander,
            version: HEAD_VERSION,
            model: MadeFor::of(model),
            terms: TermsFrom::Model {},
            tokens: Some(tokens),
            stop_words: Vec::new(),
            log1p: true,
            weights: String::new(),
            training: serde_json::Map::new(),
            checksum: None,
        }
    }

    /// The rows of the stop words in the model whose words are the tokens, ascending: of each as it
    /// is and with a capital, where the model has them.
    pub fn stop_rows(&self, model: &ModelStore) -> Vec<Row> {
        let forms = self.stop_words.iter().flat_map(|word| [word.clone(), with_capital(word)]);
        let mut rows: Vec<Row> = forms.filter_map(|word| model.words().row(&word)).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}

/// The word with its first letter in upper case.
fn with_capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next();
    first.into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

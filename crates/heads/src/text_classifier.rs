//! A classifier of either form: over a model's rows, or of fastText with rows of its own.

use std::path::Path;
use std::sync::Arc;

use encoders::MAX_WORDS;
use model_store::ModelStore;
use model_store::head::{Cut, Head, HeadError, HeadFormat, Probabilities, about};
use serde_json::{Map, Value, json};

use crate::fasttext::FastTextHead;
use crate::tokens::{Tokenised, Vocabulary};

/// A head that gives labels to texts.
#[derive(Debug, Clone)]
pub enum TextClassifier {
    /// Of convolutions over a model's rows, which an engine computes.
    OverRows(Arc<Head>),
    /// Of fastText.
    FastText(Arc<FastTextHead>),
}

impl From<Arc<Head>> for TextClassifier {
    fn from(head: Arc<Head>) -> Self {
        Self::OverRows(head)
    }
}

impl TextClassifier {
    /// Opens a head's folder, of whatever form it is.
    ///
    /// # Errors
    /// If it is no classifier, is damaged, or was made for another model.
    pub fn open(folder: &Path, model: &ModelStore) -> Result<Self, HeadError> {
        Self::of_format(about(folder)?.format, folder, model)
    }

    /// The same of a folder of this form.
    pub(crate) fn of_format(
        format: HeadFormat,
        folder: &Path,
        model: &ModelStore,
    ) -> Result<Self, HeadError> {
        match format {
            HeadFormat::FastText => Ok(Self::FastText(Arc::new(FastTextHead::open(folder)?))),
            _ => Ok(Self::OverRows(Arc::new(Head::open(folder, model)?))),
        }
    }

    /// The labels, in the head's order.
    pub fn labels(&self) -> &[String] {
        match self {
            Self::OverRows(head) => &head.description().labels,
            Self::FastText(head) => &head.description().labels,
        }
    }

    /// How class scores become probabilities.
    pub fn probabilities(&self) -> Probabilities {
        match self {
            Self::OverRows(head) => head.description().probabilities,
            Self::FastText(head) => head.description().probabilities,
        }
    }

    /// How texts become tokens, as JSON. Those of fastText have a tokeniser of their own.
    pub fn tokens(&self) -> Value {
        match self {
            Self::OverRows(head) => json!(head.description().tokens),
            Self::FastText(_) => json!({
                "tokeniser": "fasttext",
                "lower_case": false,
                "limit": MAX_WORDS,
                "cut": Cut::End,
            }),
        }
    }

    /// The most tokens of a text that are read.
    pub fn limit(&self) -> usize {
        match self {
            Self::OverRows(head) => head.description().tokens.limit,
            Self::FastText(_) => MAX_WORDS,
        }
    }

    /// How it was made, for people.
    pub fn training(&self) -> &Map<String, Value> {
        match self {
            Self::OverRows(head) => &head.description().training,
            Self::FastText(head) => &head.description().training,
        }
    }

    /// A text as it reads it, but that unknown words of a head of fastText are not found yet.
    pub fn split(&self, text: &str, model: &ModelStore) -> Tokenised {
        match self {
            Self::OverRows(head) => Vocabulary::of_head(head, model).tokenise(text),
            Self::FastText(head) => head.split(text),
        }
    }

    /// Whether it may be asked beside this model.
    pub fn fits(&self, model: &ModelStore) -> bool {
        match self {
            Self::OverRows(head) => head.description().model.is(model),
            Self::FastText(_) => true,
        }
    }

    /// The checksum that belongs into its description, if that has none.
    pub fn missing_checksum(&self) -> Option<String> {
        match self {
            Self::OverRows(head) => head.missing_checksum(),
            Self::FastText(head) => head.description().missing_checksum(),
        }
    }

    /// Whether they have the same content: a description has the checksum of the weights.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::OverRows(a), Self::OverRows(b)) => a.description() == b.description(),
            (Self::FastText(a), Self::FastText(b)) => a.description() == b.description(),
            _ => false,
        }
    }

    /// Its description as JSON.
    pub fn description(&self) -> String {
        let json = match self {
            Self::OverRows(head) => serde_json::to_string(head.description()),
            Self::FastText(head) => serde_json::to_string(head.description()),
        };
        json.expect("a description becomes JSON")
    }

    /// What it is, in a few words with their article.
    pub fn summary(&self) -> String {
        const SHOWN: usize = 20;
        let (labels, kind) = (
            self.labels(),
            match self {
                Self::OverRows(_) => "a classifier",
                Self::FastText(_) => "a classifier of fastText",
            },
        );
        let first = labels.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        match labels.len().saturating_sub(SHOWN) {
            0 => format!("{kind} of {first}"),
            more => format!("{kind} of {first} and {more} more labels"),
        }
    }
}

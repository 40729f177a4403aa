//! A head of any kind: opened by the kind that its description names, and what holds for all kinds.

use std::path::Path;
use std::sync::Arc;

use model_store::ModelStore;
use model_store::head::{Expander, HeadError, HeadFormat, HeadKind, about};
use serde_json::{Value, json};

use crate::text_classifier::TextClassifier;

/// A head of any kind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnyHead {
    /// Gives labels to texts.
    Classifier(TextClassifier),
    /// Gives terms to texts.
    Expander(Arc<Expander>),
}

impl AnyHead {
    /// Opens the head in a folder, of whatever kind it is.
    ///
    /// # Errors
    /// If it is no head, is damaged, or was made for another model.
    pub fn open(folder: &Path, model: &Arc<ModelStore>) -> Result<Self, HeadError> {
        match about(folder)?.format {
            HeadFormat::Expander => Ok(Self::Expander(Arc::new(Expander::open(folder, model)?))),
            format => TextClassifier::of_format(format, folder, model).map(Self::Classifier),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> HeadKind {
        match self {
            Self::Classifier(_) => HeadKind::Classifier,
            Self::Expander(_) => HeadKind::Expander,
        }
    }

    /// The checksum that belongs into its description, if that has none.
    pub fn missing_checksum(&self) -> Option<String> {
        match self {
            Self::Classifier(head) => head.missing_checksum(),
            Self::Expander(expander) => expander.missing_checksum(),
        }
    }

    /// The model folder that it takes terms from, which opening it does not verify.
    pub fn terms_folder(&self) -> Option<&Arc<ModelStore>> {
        match self {
            Self::Classifier(_) => None,
            Self::Expander(expander) => expander.terms_folder(),
        }
    }

    /// Whether they have the same content: a description has the checksum of the weights.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Classifier(a), Self::Classifier(b)) => a.is_same(b),
            (Self::Expander(a), Self::Expander(b)) => a.description() == b.description(),
            _ => false,
        }
    }

    /// Its description as JSON, which has the checksum of the weights: what its answers depend on,
    /// besides the model.
    pub fn description(&self) -> String {
        match self {
            Self::Classifier(head) => head.description(),
            Self::Expander(expander) => {
                serde_json::to_string(expander.description()).expect("a description becomes JSON")
            }
        }
    }

    /// What it is, in a few words with their article.
    pub fn summary(&self) -> String {
        match self {
            Self::Classifier(head) => head.summary(),
            Self::Expander(expander) => format!("an expander with {} terms", expander.len()),
        }
    }

    /// What clients are told of it: a JSON object with its kind, and what callers can choose by.
    pub fn facts(&self) -> Value {
        match self {
            Self::Classifier(head) => json!({
                "kind": HeadKind::Classifier,
                "labels": head.labels(),
                "probabilities": head.probabilities(),
                "tokens": head.tokens(),
                "training": head.training(),
            }),
            Self::Expander(expander) => {
                let about = expander.description();
                json!({
                    "kind": about.kind,
                    "terms": expander.len(),
                    "log1p": about.log1p,
                    "tokens": about.tokens,
                    "training": about.training,
                })
            }
        }
    }
}

//! A head of any kind: opened by the kind that its description names, and what holds for all kinds.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Expander, Head, HeadError, HeadKind};
use crate::ModelStore;

/// A head of any kind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnyHead {
    /// Gives labels to texts.
    Classifier(Arc<Head>),
    /// Gives terms to texts.
    Expander(Arc<Expander>),
}

impl AnyHead {
    /// Opens the head in a folder, which has this kind, as its [`about`](super::about) says.
    ///
    /// # Errors
    /// If it is damaged, or was made for another model.
    pub fn open(folder: &Path, kind: HeadKind, model: &Arc<ModelStore>) -> Result<Self, HeadError> {
        Ok(match kind {
            HeadKind::Classifier => Self::Classifier(Arc::new(Head::open(folder, model)?)),
            HeadKind::Expander => Self::Expander(Arc::new(Expander::open(folder, model)?)),
        })
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
            (Self::Classifier(a), Self::Classifier(b)) => a.description() == b.description(),
            (Self::Expander(a), Self::Expander(b)) => a.description() == b.description(),
            _ => false,
        }
    }

    /// Its description as JSON, which has the checksum of the weights: what its answers depend on,
    /// besides the model.
    pub fn description(&self) -> String {
        let json = match self {
            Self::Classifier(head) => serde_json::to_string(head.description()),
            Self::Expander(expander) => serde_json::to_string(expander.description()),
        };
        json.expect("a description becomes JSON")
    }

    /// What it is, in a few words with their article.
    pub fn summary(&self) -> String {
        match self {
            Self::Classifier(head) => {
                format!("a classifier of {}", head.description().labels.join(", "))
            }
            Self::Expander(expander) => format!("an expander with {} terms", expander.len()),
        }
    }

    /// What clients are told of it: a JSON object with its kind, and what callers can choose by.
    pub fn facts(&self) -> Value {
        match self {
            Self::Classifier(head) => {
                let about = head.description();
                json!({
                    "kind": about.kind,
                    "labels": about.labels,
                    "probabilities": about.probabilities,
                    "tokens": about.tokens,
                    "training": about.training,
                })
            }
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

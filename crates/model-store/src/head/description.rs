//! `head.json`: what a head is, what it was made for, and how.

use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{HeadError, seal};
use crate::ModelStore;

/// The version of the format that this build reads and writes.
pub const HEAD_VERSION: u32 = 1;

/// The description of a head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What kind of head it is.
    pub kind: HeadKind,
    /// [`HEAD_VERSION`].
    pub version: u32,
    /// The model that it was made for.
    pub model: MadeFor,
    /// How texts become tokens.
    pub tokens: Tokens,
    /// The classes, in the order of the last layer's outputs.
    pub labels: Vec<String>,
    /// How class scores become probabilities.
    pub probabilities: Probabilities,
    /// Class scores are divided by this first.
    pub temperature: f64,
    /// The convolutions, in order.
    pub convolutions: Vec<ConvolutionShape>,
    /// The outputs of each dense layer.
    pub layers: Vec<usize>,
    /// Words that the model does not have, and for which the head has vectors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// What the vectors of the model's other words are multiplied by: those that have no vector in
    /// this head.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub other_words: f32,
    /// The checksum of the weights' file.
    pub weights: String,
    /// How it was made, for people: the data, settings and results.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub training: serde_json::Map<String, serde_json::Value>,
    /// The checksum of all this. Heads of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

fn one() -> f32 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference.
fn is_one(scale: &f32) -> bool {
    *scale == 1.0
}

/// A kind of head. Who asks heads knows some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HeadKind {
    /// Labels of a text.
    Classifier,
    /// Terms that a text implies.
    Expander,
}

impl HeadKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classifier => "classifier",
            Self::Expander => "expander",
        }
    }

    /// Its name, with an article.
    pub fn with_article(self) -> String {
        let name = self.name();
        let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {name}")
    }

    /// How people make one, after "make one".
    pub fn how_to_make(self) -> &'static str {
        match self {
            Self::Classifier => {
                "with `kindred train classifier --model DIR --data FILE --out HEAD`"
            }
            Self::Expander => "with `kindred train expander --model DIR --out HEAD`",
        }
    }
}

/// A form of a head's folder, by the word that its `head.json` has as `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum HeadFormat {
    /// A classifier of convolutions over a model's rows.
    Classifier,
    /// An expander.
    Expander,
    /// A classifier of fastText, which has rows of its own.
    FastText,
}

impl HeadFormat {
    /// The kind of head that it is.
    pub fn kind(self) -> HeadKind {
        match self {
            Self::Classifier | Self::FastText => HeadKind::Classifier,
            Self::Expander => HeadKind::Expander,
        }
    }

    /// Its name, with an article.
    fn with_article(self) -> String {
        match self {
            Self::FastText => "a classifier of fastText".to_owned(),
            _ => self.kind().with_article(),
        }
    }
}

/// What every head says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct About {
    /// The form of its folder.
    #[serde(rename = "kind")]
    pub format: HeadFormat,
    /// The model that it was made for; `None` if it is served beside any model.
    #[serde(default)]
    pub model: Option<MadeFor>,
}

impl About {
    /// What kind of head it is.
    pub fn kind(&self) -> HeadKind {
        self.format.kind()
    }

    /// Whether it may be asked beside this model.
    pub fn fits(&self, model: &ModelStore) -> bool {
        self.model.as_ref().is_none_or(|made_for| made_for.is(model))
    }
}

/// A model, by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeFor {
    /// Its name, for people.
    pub name: String,
    /// The version of its content.
    pub version: String,
    /// Its rows.
    pub rows: usize,
    /// Components of a row.
    pub dim: usize,
}

/// How a text becomes tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// How it is split.
    pub tokeniser: Tokeniser,
    /// Whether tokens are looked up in lower case.
    pub lower_case: bool,
    /// The most tokens of a text, up to [`MOST`](Self::MOST).
    pub limit: usize,
    /// What is left out of longer ones.
    pub cut: Cut,
}

impl Tokens {
    /// The most that a limit can be. Engines keep room for a text of this length.
    pub const MOST: usize = 1 << 16;

    /// # Errors
    /// If no text can be read by it: the reason.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.limit {
            1..=Self::MOST => Ok(()),
            limit => {
                Err(format!("its limit is {limit} tokens; it must be from 1 to {}", Self::MOST))
            }
        }
    }
}

/// A way to split texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tokeniser {
    /// As searches with `text` do, and with the signs that the vocabulary has: by Unicode's rules,
    /// and the Treebank's.
    Unicode,
    /// Pieces between white space, without what is neither letter nor digit at their ends.
    Words,
    /// As in the Penn Treebank: `don't` becomes `do` and `n't`, and punctuation is split off.
    Ptb,
}

/// The end of a text that is left out if it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// The first tokens are left out.
    Start,
    /// The last tokens are left out.
    End,
}

/// How class scores become probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probabilities {
    /// One label is right: the probabilities add up to 1.
    Softmax,
    /// Any number of labels may be right: each has a probability of its own.
    Sigmoid,
}

/// The shape of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionShape {
    /// Tokens that a filter covers.
    pub width: usize,
    /// Its channels.
    pub channels: usize,
    /// Zero vectors at each end of a text.
    pub padding: usize,
}

impl MadeFor {
    /// This model.
    pub fn of(model: &ModelStore) -> Self {
        // Heads have numbers of rows, which are the places of this base's.
        let (name, version) = (model.name().to_owned(), model.content().to_owned());
        Self { name, version, rows: model.rows(), dim: model.dim() }
    }

    /// Whether it is this model.
    pub fn is(&self, model: &ModelStore) -> bool {
        self.version == model.content()
    }

    /// Checks that it is this model. `head` is for the error.
    pub(super) fn check(&self, head: &Path, model: &ModelStore) -> Result<(), HeadError> {
        if self.is(model) && self.rows == model.rows() {
            return Ok(());
        }
        Err(HeadError::OtherModel {
            path: head.to_owned(),
            made_for: self.to_string(),
            model: Self::of(model).to_string(),
        })
    }
}

impl fmt::Display for MadeFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, version, rows, dim } = self;
        write!(f, "the model {name} (version {version}, {rows} × {dim})")
    }
}

/// Only the version, so that a head of another version is told from a damaged one.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Reads what a `head.json` says of any head, or of one kind. Checks its version and its checksum.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, json: &[u8]) -> Result<T, HeadError> {
    if let Ok(Versioned { version: found }) = serde_json::from_slice(json)
        && found != HEAD_VERSION
    {
        let path = path.to_owned();
        return Err(HeadError::Version { path, found, supported: HEAD_VERSION });
    }
    let read = serde_json::from_slice(json)
        .map_err(|error| HeadError::Description { path: path.to_owned(), reason: error.into() })?;
    seal::check(path, json)?;
    Ok(read)
}

/// Refuses the description of a head of another kind. Otherwise only its first field that the
/// wanted kind does not have would be named.
pub(super) fn check_kind(path: &Path, json: &[u8], wanted: HeadFormat) -> Result<(), HeadError> {
    match parse::<About>(path, json) {
        Ok(About { format, .. }) if format != wanted => Err(HeadError::OtherKind {
            path: path.parent().unwrap_or(path).to_owned(),
            found: format.with_article(),
            wanted: wanted.with_article(),
            how: wanted.kind().how_to_make(),
        }),
        // Reading it as the wanted kind names any other fault.
        _ => Ok(()),
    }
}

impl Description {
    pub(super) fn parse(path: &Path, json: &[u8]) -> Result<Self, HeadError> {
        check_kind(path, json, HeadFormat::Classifier)?;
        parse(path, json)
    }

    /// Checks that it does not contradict itself.
    pub(super) fn check(&self) -> Result<(), String> {
        let sorted = |words: &[String]| {
            let mut words: Vec<String> = words.to_vec();
            words.sort_unstable();
            words
        };
        let twice = |words: &[String]| {
            sorted(words).windows(2).find(|two| two[0] == two[1]).map(|two| two[0].clone())
        };
        if self.layers.last() != Some(&self.labels.len()) || self.labels.is_empty() {
            return Err(format!(
                "it has {} labels, but its last layer has {} outputs",
                self.labels.len(),
                self.layers.last().copied().unwrap_or_default()
            ));
        }
        if let Some(label) = twice(&self.labels) {
            return Err(format!("the label {label:?} is there twice"));
        }
        if let Some(word) = twice(&self.words) {
            return Err(format!("the word {word:?} is there twice"));
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return Err(format!("its temperature is {}; it must be above 0", self.temperature));
        }
        if !(0.0..=1.0).contains(&self.other_words) {
            return Err(format!(
                "its `other_words` is {}; it must be from 0 to 1",
                self.other_words
            ));
        }
        self.tokens.check()
    }
}

//! The description of a model and of the engine that answers for it.

use std::borrow::Cow;

use contract::EngineDescription;
use encoders::{StaticModel, TextEncoder, text_encoder};
use model_store::attributes::{AttributeSummary, AttributeType, Attributes};
use model_store::format::Provenance;
use model_store::{ModelStore, NO_ENCODER, Ngrams};
use serde::{Deserialize, Serialize};

use crate::evaluation::results::Engine;
use crate::placement::{Placed, Shard};
use crate::rows::AtPosition;

/// The encoder of models without another.
const WORDS: &str = "words";
const UNICODE: &str = "unicode";

fn of_words() -> Cow<'static, str> {
    WORDS.into()
}

fn by_unicode() -> Cow<'static, str> {
    UNICODE.into()
}

/// A model and the engine that answers for it. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelDescription<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// The version of its content.
    pub version: Cow<'a, str>,
    /// The position of its rows, if they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Whether its rows may be changed here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writable: bool,
    /// Number of rows.
    pub rows: usize,
    /// Components in a row.
    pub dim: usize,
    /// How a vector and a row become a score.
    pub metric: Cow<'a, str>,
    /// How texts get vectors: `words` by the words that are rows; `fasttext` by these, and the
    /// n-grams of all others; `static` by the tokens of a static model; `none` if they get none,
    /// because the vectors of the rows were made elsewhere.
    #[serde(default = "of_words")]
    pub encoder: Cow<'a, str>,
    /// The weights of words in texts, if these have any: `sif`, as Arora, Liang and Ma have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_weights: Option<Cow<'a, str>>,
    /// How texts are cut into words or tokens: `unicode`, or of a static model `wordpiece`,
    /// `unigram` or `bpe`; `none` without an encoder.
    #[serde(default = "by_unicode")]
    pub tokeniser: Cow<'a, str>,
    /// Whether its rows are documents: their words are keys, and their vectors those of texts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub documents: bool,
    /// The attributes of its rows, if they have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<DescribedAttribute<'a>>,
    /// What answers.
    pub engine: Engine<'a>,
    /// The shards of each replica, on several GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Vec<Vec<ShardDescription<'a>>>>,
    /// Where it came from.
    pub provenance: Cow<'a, Provenance>,
}

/// An attribute. Its counts are absent if rows were changed since they were counted. JSON has these
/// names, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribedAttribute<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: AttributeType,
    /// Number of different values; of lists, of different texts in any of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct: Option<usize>,
    /// Number of rows without a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<usize>,
    /// Of texts and lists, the most frequent texts, when they were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frequent: Vec<DescribedText<'a>>,
}

/// A text that many rows have. JSON has these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribedText<'a> {
    /// The text.
    pub value: Cow<'a, str>,
    /// Number of rows, unless rows were changed since they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
}

/// Some rows on one GPU. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardDescription<'a> {
    /// The GPU's index in the driver's order, from 0.
    pub gpu: u32,
    /// Its name.
    pub name: Cow<'a, str>,
    /// The first of its rows.
    pub first_row: usize,
    /// How many rows it has.
    pub rows: usize,
    /// The memory that they take there, in bytes.
    pub memory_bytes: u64,
    /// Whether that is enough for full speed.
    pub at_full_speed: bool,
}

impl<'a> ModelDescription<'a> {
    /// That of a model and its engine, after its attributes were read once; `placed` says which GPUs
    /// it is on, if there are several.
    pub fn new(
        model: &'a ModelStore,
        engine: &'a EngineDescription,
        placed: Option<&'a Placed>,
    ) -> Self {
        let of_words = |model: &'a ModelStore| {
            let weights = model.text_weights().map(|weights| weights.kind().into());
            (model.ngrams().map_or(WORDS, Ngrams::kind), weights, UNICODE)
        };
        let own = text_encoder(model).ok().flatten();
        let (encoder, text_weights, tokeniser) = match own {
            Some(TextEncoder::Static(model)) => (StaticModel::KIND, None, model.tokeniser().kind()),
            Some(TextEncoder::Words(words)) => of_words(words),
            Some(TextEncoder::Elsewhere) => (NO_ENCODER, None, NO_ENCODER),
            None => of_words(model),
        };
        let attributes = model.attributes().map(Attributes::summaries).unwrap_or_default();
        let replica = |shards: &'a Vec<Shard>| shards.iter().map(ShardDescription::of).collect();
        Self {
            name: model.name().into(),
            version: model.version().into(),
            position: None,
            writable: false,
            rows: model.rows(),
            dim: model.dim(),
            metric: model.metric().name().into(),
            encoder: encoder.into(),
            text_weights,
            tokeniser: tokeniser.into(),
            documents: own.is_some_and(TextEncoder::is_of_documents),
            attributes: attributes.iter().map(DescribedAttribute::of).collect(),
            engine: Engine::of(engine),
            replicas: placed.map(|placed| placed.replicas.iter().map(replica).collect()),
            provenance: Cow::Borrowed(&model.header().provenance),
        }
    }
}

impl ModelDescription<'_> {
    /// The same of its rows at a position, if they change.
    #[must_use]
    pub fn at(mut self, at: Option<&AtPosition>) -> Self {
        let Some(at) = at else { return self };
        if at.is_changed() {
            // Those of the base, and nobody counts as often as rows change.
            self.attributes.iter_mut().for_each(DescribedAttribute::leave_counts_out);
        }
        Self { position: Some(at.position()), rows: at.live_rows(), ..self }
    }
}

impl<'a> DescribedAttribute<'a> {
    fn of(summary: &'a AttributeSummary) -> Self {
        let AttributeSummary { description, frequent } = summary;
        let text = |value: &'a str, rows| DescribedText { value: value.into(), rows: Some(rows) };
        Self {
            name: description.name.as_str().into(),
            kind: description.kind,
            distinct: Some(description.distinct),
            missing: Some(description.missing),
            frequent: frequent.iter().map(|one| text(&one.value, one.rows)).collect(),
        }
    }

    fn leave_counts_out(&mut self) {
        (self.distinct, self.missing) = (None, None);
        for text in &mut self.frequent {
            text.rows = None;
        }
    }
}

impl<'a> ShardDescription<'a> {
    fn of(shard: &'a Shard) -> Self {
        let Shard { gpu, name, rows, bytes, at_full_speed } = shard;
        Self {
            gpu: *gpu,
            name: name.into(),
            first_row: rows.start,
            rows: rows.len(),
            memory_bytes: *bytes,
            at_full_speed: *at_full_speed,
        }
    }
}

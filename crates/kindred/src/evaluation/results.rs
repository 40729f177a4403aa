//! The results of an evaluation, in the form in which they are written as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

use contract::EngineDescription;
use model_store::ModelStore;
use serde::{Deserialize, Serialize};

use crate::method::Method;

/// How words of a set are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// As written, then in lower case
    Lower,
    /// As written only
    Exact,
}

// The default first.
contract::names! { Case { Lower: "lower", Exact: "exact" } }

impl FromStr for Case {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::named(name).ok_or_else(|| format!("`{name}` is neither lower nor exact"))
    }
}

/// All results of an evaluation.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// What was evaluated.
    pub model: Model<'a>,
    /// What answered.
    pub engine: Engine<'a>,
    /// How words were looked up.
    pub case: Case,
    /// The sets of analogies, in order.
    pub analogies: Vec<AnalogyResult>,
    /// The sets of pairs, in order.
    pub similarities: Vec<SimilarityResult>,
}

/// A model's name and shape.
#[derive(Debug, Serialize)]
pub struct Model<'a> {
    /// Its name.
    pub name: &'a str,
    /// The version of its content.
    pub version: &'a str,
    /// The position, if its rows change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Number of words.
    pub rows: usize,
    /// Components of each.
    pub dim: usize,
}

/// An engine's name, and what it runs on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Engine<'a> {
    /// As in `--device`.
    pub name: Cow<'a, str>,
    /// For people.
    pub detail: Cow<'a, str>,
}

impl<'a> Engine<'a> {
    /// The names of an engine.
    pub fn of(engine: &'a EngineDescription) -> Self {
        Self { name: engine.name.into(), detail: engine.detail.as_str().into() }
    }
}

impl<'a> Report<'a> {
    /// One without any set yet.
    pub fn new(model: &'a ModelStore, engine: &'a EngineDescription, case: Case) -> Self {
        Self {
            model: Model {
                name: model.name(),
                version: model.version(),
                position: None,
                rows: model.rows(),
                dim: model.dim(),
            },
            engine: Engine::of(engine),
            case,
            analogies: Vec::new(),
            similarities: Vec::new(),
        }
    }
}

/// The result of an analogy set.
#[derive(Debug, Clone, Serialize)]
pub struct AnalogyResult {
    /// The set's name.
    pub set: String,
    /// Its sections, in order.
    pub sections: Vec<SectionResult>,
    /// All of them together.
    pub total: SectionResult,
}

/// The result of a section.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SectionResult {
    /// Its name; `total` for all of a set.
    pub name: String,
    /// Questions, all of them.
    pub questions: usize,
    /// Questions whose three words and answer the model has. The others count as wrong.
    pub in_vocabulary: usize,
    /// The result of each method.
    pub methods: BTreeMap<Method, MethodResult>,
}

/// The result of a method.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct MethodResult {
    /// Questions whose best row is a right answer.
    pub right: usize,
    /// Their fraction of all questions, 0 if there are none.
    pub accuracy: f64,
    /// The time that it took.
    pub seconds: f64,
}

/// The result of a similarity set.
#[derive(Debug, Clone, Serialize)]
pub struct SimilarityResult {
    /// The set's name.
    pub set: String,
    /// Pairs, all of them.
    pub pairs: usize,
    /// Pairs whose two words the model has, each with a direction. The others are left out.
    pub found: usize,
    /// Spearman's ρ between cosine similarities and people's scores; none where nothing varies.
    pub spearman: Option<f64>,
}

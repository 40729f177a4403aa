//! What a query asks for, as the request's fields say it.

use std::fmt;

use kindred::Target;
use kindred::expression::MAX_TERMS;
use kindred::question::WordWithWeight;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::at_most::AtMost;
use super::not_exactly_one;
use crate::http::ApiError;

/// The words of one side of an analogy, with their weights.
pub(in crate::http) type WeightedWords = AtMost<WeightedWord, MAX_TERMS>;

/// What a query asks for, as the request's fields say it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) enum RawTarget {
    Nearest {
        word: Option<String>,
        vector: Option<Vec<f64>>,
        text: Option<String>,
    },
    Analogy {
        expression: Option<String>,
        positive: Option<WeightedWords>,
        negative: Option<WeightedWords>,
    },
}

impl RawTarget {
    /// Whether the request has any of these fields.
    pub(in crate::http) fn is_given(&self) -> bool {
        match self {
            Self::Nearest { word, vector, text } => {
                word.is_some() || vector.is_some() || text.is_some()
            }
            Self::Analogy { expression, positive, negative } => {
                expression.is_some() || positive.is_some() || negative.is_some()
            }
        }
    }

    /// The alternatives, for messages.
    pub(in crate::http) fn alternatives(&self) -> &'static str {
        match self {
            Self::Nearest { .. } => "`word`, `vector`, `text` or `queries`",
            Self::Analogy { .. } => "`expression`, `positive` and/or `negative`, or `queries`",
        }
    }

    /// The one target that the query asks for.
    pub(in crate::http) fn resolve(self) -> Result<Target, ApiError> {
        let alternatives = self.alternatives();
        self.resolve_among(alternatives)
    }

    /// As `resolve`, with these alternatives in the message.
    pub(super) fn resolve_among(self, alternatives: &str) -> Result<Target, ApiError> {
        match self {
            Self::Nearest { word: Some(word), vector: None, text: None } => Ok(Target::Word(word)),
            Self::Nearest { word: None, vector: Some(vector), text: None } => {
                Ok(Target::Vector(vector))
            }
            Self::Nearest { word: None, vector: None, text: Some(text) } => Ok(Target::Text(text)),
            Self::Analogy { expression: Some(text), positive, negative } => {
                let target = Target::expression(&text)?;
                if positive.is_some() || negative.is_some() {
                    return Err(not_exactly_one(alternatives));
                }
                Ok(target)
            }
            Self::Analogy { expression: None, positive, negative }
                if positive.is_some() || negative.is_some() =>
            {
                let found =
                    [&positive, &negative].map(|words| words.as_ref().map_or(0, |w| w.found));
                Target::check_terms(found.into_iter().sum())?;
                let [positive, negative] = [positive, negative].map(|words| {
                    let words = words.map(AtMost::first).unwrap_or_default();
                    words.into_iter().map(|WeightedWord(word)| word).collect()
                });
                Ok(Target::sum(positive, negative)?)
            }
            _ => Err(not_exactly_one(alternatives)),
        }
    }
}

/// An element of `positive` or `negative`: a word, or a word and its weight.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) struct WeightedWord(pub(in crate::http) WordWithWeight);

impl WeightedWord {
    /// The names of the fields of one that is an object.
    pub(super) const FIELDS: &'static [&'static str] = &["word", "weight"];
}

impl<'de> Deserialize<'de> for WeightedWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Both {
            word: String,
            #[serde(default = "one")]
            weight: f64,
        }
        fn one() -> f64 {
            1.0
        }

        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = WeightedWord;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or an object {\"word\", \"weight\"}")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<WeightedWord, E> {
                Ok(WeightedWord(WordWithWeight { word: word.to_owned(), weight: 1.0 }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WeightedWord, A::Error> {
                let Both { word, weight } = Both::deserialize(MapAccessDeserializer::new(map))?;
                Ok(WeightedWord(WordWithWeight { word, weight }))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

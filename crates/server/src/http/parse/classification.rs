//! The JSON body of `/classify`.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::at_most::{AtMost, present};
use super::limits::{MAX_EXPLAINED_TEXTS, MAX_TEXTS, MAX_TOKENS};
use super::{invalid, not_exactly_one};
use crate::http::ApiError;
use crate::http::parse::body::JsonBody;

/// The body of `POST /classify`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ClassifyBody<'a> {
    #[serde(default, deserialize_with = "present", borrow)]
    text: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present", borrow)]
    texts: Option<AtMost<&'a RawValue, MAX_TEXTS>>,
    #[serde(default, deserialize_with = "present")]
    head: Option<String>,
    #[serde(default, deserialize_with = "present")]
    explain: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    explain_label: Option<String>,
    #[serde(default, deserialize_with = "present")]
    scores: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    threshold: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    top: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    timeout_ms: Option<u64>,
}

impl<'a> JsonBody<'a> for ClassifyBody<'a> {}

/// What is asked of a head.
#[derive(Debug)]
pub(in crate::http) struct ClassifyRequest<'a> {
    pub(in crate::http) texts: Vec<&'a RawValue>,
    /// Whether there was one `text`, and not `texts`.
    pub(in crate::http) is_single: bool,
    pub(in crate::http) head: Option<String>,
    /// The label to explain; otherwise the most probable one.
    pub(in crate::http) explained: Option<String>,
    pub(in crate::http) shown: Shown,
}

/// What answers say.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Shown {
    /// At most this number of labels.
    pub(in crate::http) top: usize,
    /// Only labels of at least this probability.
    pub(in crate::http) threshold: f64,
    /// The class score beside each probability.
    pub(in crate::http) scores: bool,
    /// Which n-grams decided.
    pub(in crate::http) explain: bool,
}

/// A text to classify.
#[derive(Debug)]
pub(in crate::http) enum Text {
    Whole(String),
    /// Its words one by one.
    Tokens(Vec<String>),
}

impl<'a> ClassifyBody<'a> {
    /// The field `timeout_ms`, unchecked.
    pub(in crate::http) fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }

    /// Checks the form of the body. The texts stay unparsed JSON.
    pub(in crate::http) fn check(self) -> Result<ClassifyRequest<'a>, ApiError> {
        let is_single = self.text.is_some();
        let texts = match (self.text, self.texts) {
            (Some(text), None) => vec![text],
            (None, Some(texts)) => {
                let texts = texts.all().filter(|texts| !texts.is_empty());
                texts.ok_or_else(|| invalid("texts"))?
            }
            _ => return Err(not_exactly_one("`text` and `texts`")),
        };
        let threshold = self.threshold.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&threshold) {
            return Err(invalid("threshold"));
        }
        let top = match self.top {
            None => usize::MAX,
            Some(0) => return Err(invalid("top")),
            Some(top) => usize::try_from(top).unwrap_or(usize::MAX),
        };
        let explained = self.explain_label;
        let explain = self.explain.unwrap_or(explained.is_some());
        if explain && texts.len() > MAX_EXPLAINED_TEXTS {
            let reason = format!(
                "{} texts with `explain`; the maximum is {MAX_EXPLAINED_TEXTS}",
                texts.len()
            );
            return Err(ApiError::TooManyResults { reason });
        }
        let shown = Shown { top, threshold, scores: self.scores.unwrap_or(false), explain };
        Ok(ClassifyRequest { texts, is_single, head: self.head, explained, shown })
    }
}

/// Parses the text with this index; `None` if it is the only one.
pub(in crate::http) fn read_text(index: Option<usize>, text: &RawValue) -> Result<Text, ApiError> {
    let field = || index.map_or("text".to_owned(), |index| format!("texts[{index}]"));
    serde_json::from_str(text.get()).map_err(|_| ApiError::InvalidValue {
        field: field(),
        expected: super::expected("texts[0]").to_owned(),
    })
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTokens;
        impl<'de> Visitor<'de> for TextOrTokens {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of words")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text::Whole(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<Text, A::Error> {
                let words: AtMost<String, MAX_TOKENS> =
                    AtMost::deserialize(SeqAccessDeserializer::new(words))?;
                words.all().map(Text::Tokens).ok_or_else(|| de::Error::custom("too many words"))
            }
        }
        deserializer.deserialize_any(TextOrTokens)
    }
}

//! Texts in the bodies of requests: those that heads read, and the sides of pairs.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::limits::{MAX_TEXTS, MAX_TOKENS};
use super::{expected, invalid, not_exactly_one};
use crate::http::ApiError;

/// What is asked of a head: for some texts, which are not parsed yet, with these options.
#[derive(Debug)]
pub(in crate::http) struct TextsRequest<T, O> {
    pub(in crate::http) texts: Vec<T>,
    /// Whether there was one text, and not `texts`.
    pub(in crate::http) is_single: bool,
    /// The name of the head.
    pub(in crate::http) head: Option<String>,
    pub(in crate::http) options: O,
}

/// A text, or at most `MOST` words one by one.
#[derive(Debug)]
pub(in crate::http) enum TextOrWords<const MOST: usize> {
    Text(String),
    Words(Vec<String>),
}

/// The texts of a body with either of these fields, and whether it has one `text`.
pub(super) fn text_or_texts<'a>(
    text: Option<&'a RawValue>,
    texts: Option<AtMost<&'a RawValue, MAX_TEXTS>>,
) -> Result<(Vec<&'a RawValue>, bool), ApiError> {
    match (text, texts) {
        (Some(text), None) => Ok((vec![text], true)),
        (None, Some(texts)) => {
            let texts = texts.all().filter(|texts| !texts.is_empty());
            Ok((texts.ok_or_else(|| invalid("texts"))?, false))
        }
        _ => Err(not_exactly_one("`text` and `texts`")),
    }
}

/// Parses the text with this index, for a head; `None` if it is the only one.
pub(in crate::http) fn read_text(
    index: Option<usize>,
    text: &RawValue,
) -> Result<TextOrWords<MAX_TOKENS>, ApiError> {
    serde_json::from_str(text.get()).map_err(|_| {
        let field = index.map_or("text".to_owned(), |index| format!("texts[{index}]"));
        ApiError::invalid_value(&field, expected("texts[0]"))
    })
}

impl<'de, const MOST: usize> Deserialize<'de> for TextOrWords<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<const MOST: usize>;
        impl<'de, const MOST: usize> Visitor<'de> for Either<MOST> {
            type Value = TextOrWords<MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of words")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(TextOrWords::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<Self::Value, A::Error> {
                let words: AtMost<String, MOST> =
                    AtMost::deserialize(SeqAccessDeserializer::new(words))?;
                let words = words.all().map(TextOrWords::Words);
                words.ok_or_else(|| de::Error::custom("too many words"))
            }
        }
        deserializer.deserialize_any(Either::<MOST>)
    }
}

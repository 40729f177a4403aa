//! Texts in the bodies of requests to heads.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::expected;
use super::limits::MAX_TOKENS;
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

/// A text that a head reads.
#[derive(Debug)]
pub(in crate::http) enum Text {
    Whole(String),
    /// Its words one by one.
    Tokens(Vec<String>),
}

/// Parses the text with this index; `None` if it is the only one.
pub(in crate::http) fn read_text(index: Option<usize>, text: &RawValue) -> Result<Text, ApiError> {
    serde_json::from_str(text.get()).map_err(|_| {
        let field = index.map_or("text".to_owned(), |index| format!("texts[{index}]"));
        ApiError::invalid_value(&field, expected("texts[0]"))
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

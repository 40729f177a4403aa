//! Texts of requests: those that heads read, from a body or from a query string, and the sides of
//! pairs.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::json::JsonBody;
use super::limits::{MAX_TEXTS, MAX_TOKENS};
use super::query_string::{Parameters, only_with_post};
use super::{expected, found, invalid, not_exactly_one};
use crate::http::ApiError;

/// A JSON body with texts. Its options may also be query parameters: with a text by GET, or beside
/// an array.
pub(in crate::http) trait TextsBody<'a>: JsonBody<'a> {
    /// The names of its options.
    const OPTIONS: &'static [&'static str];

    /// Takes its options out of parameters. It has no texts then.
    fn of_parameters(parameters: &mut Parameters<'_>) -> Result<Self, ApiError>;
}

/// Defines a JSON body with texts: the fields for them, and the options.
macro_rules! texts_body {
    (
        $(#[$meta:meta])* $name:ident<$life:lifetime> {
            $($(#[$attribute:meta])* $field:ident: $type:ty),+ $(,)?
        }
        options { $($option:ident: $option_type:ty),+ $(,)? }
    ) => {
        crate::http::parse::json::json_body! {
            $(#[$meta])*
            $name<$life> {
                $($(#[$attribute])* $field: $type,)+
                $($option: $option_type,)+
            }
        }

        impl<$life> crate::http::parse::texts::TextsBody<$life> for $name<$life> {
            const OPTIONS: &'static [&'static str] = &[$(stringify!($option)),+];

            fn of_parameters(
                parameters: &mut crate::http::parse::query_string::Parameters<'_>,
            ) -> Result<Self, ApiError> {
                Ok(Self {
                    $($option: parameters.take_parsed(stringify!($option))?,)+
                    ..Self::default()
                })
            }
        }
    };
}

pub(super) use texts_body;

/// The parameters of a GET: a text, and the options of this body.
pub(in crate::http) fn of_query<'a, B: TextsBody<'a>>(
    query: &str,
) -> Result<(String, B), ApiError> {
    let mut parameters = Parameters::decode(query)?;
    let text = parameters.take_one("text")?;
    let options = B::of_parameters(&mut parameters)?;
    if let Some(field) = parameters.first().filter(|field| B::FIELDS.contains(field)) {
        return Err(only_with_post(field));
    }
    parameters.only(&[&["text"][..], B::OPTIONS].concat())?;
    let missing = || {
        let reason = "a parameter is missing: `text`, as in ?text=a+film (a body is read only with \
                      POST)";
        ApiError::invalid_request(reason)
    };
    Ok((text.ok_or_else(missing)?, options))
}

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

/// A text that is not parsed yet.
#[derive(Debug)]
pub(in crate::http) enum UnreadText<'a> {
    /// From a body: a string, or a list of words.
    Json(&'a RawValue),
    /// From a query string.
    Plain(String),
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
) -> Result<(Vec<UnreadText<'a>>, bool), ApiError> {
    not_null("text", text)?;
    match (text, texts) {
        (Some(text), None) => Ok((vec![UnreadText::Json(text)], true)),
        (None, Some(texts)) => {
            let texts = texts.all().filter(|texts| !texts.is_empty());
            let texts = texts.ok_or_else(|| invalid("texts"))?;
            Ok((texts.into_iter().map(UnreadText::Json).collect(), false))
        }
        _ => Err(not_exactly_one("`text` and `texts`")),
    }
}

/// Checks that a field which is parsed later is not null.
pub(super) fn not_null(field: &str, value: Option<&RawValue>) -> Result<(), ApiError> {
    match value.map(RawValue::get) {
        Some(json @ "null") => {
            let expected = if field == "text" { expected("texts[0]") } else { expected(field) };
            Err(ApiError::invalid_value(field, expected).with_found(Some(found::of_json(json))))
        }
        _ => Ok(()),
    }
}

impl UnreadText<'_> {
    /// Parses the text with this index, for a head; `None` if it is the only one.
    pub(in crate::http) fn read(
        self,
        index: Option<usize>,
    ) -> Result<TextOrWords<MAX_TOKENS>, ApiError> {
        let json = match self {
            Self::Plain(text) => return Ok(TextOrWords::Text(text)),
            Self::Json(json) => json.get(),
        };
        serde_json::from_str(json).map_err(|_| {
            let field = index.map_or("text".to_owned(), |index| format!("texts[{index}]"));
            let wrong = ApiError::invalid_value(&field, expected("texts[0]"));
            wrong.with_found(Some(found::of_json(json)))
        })
    }
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

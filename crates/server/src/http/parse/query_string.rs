//! GET requests, and POST requests whose body is an array: parses form-encoded query parameters
//! into the same fields as those of JSON bodies.

use std::borrow::Cow;

use kindred::cut;
use kindred::question::WordWithWeight;
use kindred::{Error, Method, Options, Unknown, WithAttributes, expression, with_options};
use percent_encoding::percent_decode;
use serde::de::value::Error as ValueError;
use serde::de::{DeserializeOwned, IntoDeserializer as _};

use super::bodies::Parts;
use super::targets::{RawTarget, WeightedWord};
use super::{found, invalid, not_exactly_one};
use crate::http::ApiError;

/// The names of the options that a kind of question has.
macro_rules! names {
    (options { $($option:ident: $type:ty { $($about:tt)* })+ }) => {
        &[$(stringify!($option)),+]
    };
}

/// Takes the options of a kind of question out of parameters.
macro_rules! taken_out {
    ($parameters:ident options { $($option:ident: $type:ty { $($about:tt)* })+ }) => {{
        let mut options = Options::new();
        $(
            let name = stringify!($option);
            options.$option = <$type as FromParameters>::take(&mut $parameters, name)?;
        )+
        options
    }};
}

/// How an option is read from parameters.
trait FromParameters: Sized {
    fn take(parameters: &mut Parameters<'_>, name: &str) -> Result<Option<Self>, ApiError>;
}

macro_rules! given_once {
    ($($type:ty),+) => {
        $(impl FromParameters for $type {
            fn take(parameters: &mut Parameters<'_>, name: &str) -> Result<Option<Self>, ApiError> {
                parameters.take_parsed(name)
            }
        })+
    };
}

given_once!(u64, f64, bool, Unknown, Method);

impl FromParameters for String {
    fn take(parameters: &mut Parameters<'_>, name: &str) -> Result<Option<Self>, ApiError> {
        parameters.take_one(name)
    }
}

/// The parameter is `true` or `false`, or given once for each name. No attribute is called so.
impl FromParameters for WithAttributes {
    fn take(parameters: &mut Parameters<'_>, name: &str) -> Result<Option<Self>, ApiError> {
        let names: Vec<String> = parameters.take(name).collect();
        Ok(match &names[..] {
            [] => None,
            [all] if all == "true" || all == "false" => Some(Self::All(all == "true")),
            _ => Some(Self::Named(names)),
        })
    }
}

/// The parameter is given once for each word.
impl FromParameters for Vec<String> {
    fn take(parameters: &mut Parameters<'_>, name: &str) -> Result<Option<Self>, ApiError> {
        let words: Vec<String> = parameters.take(name).collect();
        Ok((!words.is_empty()).then_some(words))
    }
}

/// The parameters of `GET /nearest`: a word or a text, and the options. Vectors need POST.
pub(in crate::http) fn nearest(query: &str) -> Result<Parts<'static>, ApiError> {
    let mut parameters = Parameters::decode(query)?;
    let word = parameters.take_one("word")?;
    let text = parameters.take_one("text")?;
    let options = parameters.options_of_nearest()?;
    parameters.refuse_others(&["word", "text"], with_options! { nearest: names! {} })?;
    if word.is_some() && text.is_some() {
        return Err(not_exactly_one("`word` and `text`"));
    }
    let target = RawTarget::Nearest { word, vector: None, text };
    if !target.is_given() {
        let reason = "a parameter is missing: `word` or `text`, as in /nearest?word=frog; \
                      a JSON body needs POST";
        return Err(ApiError::invalid_request(reason));
    }
    Ok(Parts { target, queries: None, options })
}

/// The parameters of a `POST /nearest` whose body is an array: the options.
pub(in crate::http) fn options_of_vectors(query: &str) -> Result<Options, ApiError> {
    let mut parameters = Parameters::decode(query)?;
    let options = parameters.options_of_nearest()?;
    parameters.only(with_options! { nearest: names! {} })?;
    Ok(options)
}

/// The parameter `timeout_ms`, if it is there and is a number.
pub(in crate::http) fn named_timeout(query: &str) -> Option<u64> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == "timeout_ms")?.1.parse().ok()
}

/// The parameters of `GET /analogy`: an expression, or repeated word parameters, and the options.
pub(in crate::http) fn analogy(query: &str) -> Result<Parts<'static>, ApiError> {
    let mut parameters = Parameters::decode(query)?;
    let expressions: Vec<String> = parameters.take("expression").collect();
    for text in &expressions {
        // Checked before everything else that may be wrong, as in a body.
        expression::parse(text).map_err(Error::from)?;
    }
    let expression = at_most_one("expression", expressions.into_iter())?;
    let [positive, negative] = ["positive", "negative"].map(|name| {
        let words = parameters.take(name);
        let words: Vec<_> =
            words.map(|word| WeightedWord(WordWithWeight { word, weight: 1.0 })).collect();
        (!words.is_empty()).then(|| words.into())
    });
    let options = with_options! { analogy: taken_out! { parameters } };
    let own = ["expression", "positive", "negative"];
    parameters.refuse_others(&own, with_options! { analogy: names! {} })?;
    let target = RawTarget::Analogy { expression, positive, negative };
    if !target.is_given() {
        let reason = "a parameter is missing: `expression`, or `positive` and/or `negative`; \
                      a JSON body needs POST";
        return Err(ApiError::invalid_request(reason));
    }
    Ok(Parts { target, queries: None, options })
}

/// The parameters of `GET /count`: the filter, and the request's own timeout.
pub(in crate::http) fn count(query: &str) -> Result<(String, Option<u64>), ApiError> {
    let mut parameters = Parameters::decode(query)?;
    let filter = parameters.take_one("filter")?;
    let timeout_ms = parameters.take_parsed("timeout_ms")?;
    parameters.only(&["filter", "timeout_ms"])?;
    let reason = "a parameter is missing: `filter`, as in /count?filter=price+<+80";
    Ok((filter.ok_or_else(|| ApiError::invalid_request(reason))?, timeout_ms))
}

/// What a `GET /words` asks for.
pub(in crate::http) enum WordsRequest {
    /// Words that begin with this.
    Prefix { prefix: String, limit: Option<usize> },
    /// Everything about one word.
    Word { word: String, with_vector: bool },
}

/// The parameters of `GET /words`: a prefix and how many words to list, or one word and whether to
/// add its vector.
pub(in crate::http) fn words(query: &str) -> Result<WordsRequest, ApiError> {
    let mut parameters = Parameters::decode(query)?;
    let prefix = parameters.take_one("prefix")?;
    let word = parameters.take_one("word")?;
    let limit = parameters.take_parsed("limit")?;
    let with_vector = parameters.take_parsed("with_vector")?;
    parameters.only(&["prefix", "limit", "word", "with_vector"])?;
    let reason = match (prefix, word) {
        (Some(prefix), None) if with_vector.is_none() => {
            return Ok(WordsRequest::Prefix { prefix, limit });
        }
        (None, Some(word)) if limit.is_none() => {
            return Ok(WordsRequest::Word { word, with_vector: with_vector.unwrap_or(false) });
        }
        (Some(_), None) => "`with_vector` can only be used with `word`, not with `prefix`",
        (None, Some(_)) => "`limit` can only be used with `prefix`, not with `word`",
        _ => "give exactly one of `prefix` and `word`, as in /words?prefix=fro",
    };
    Err(ApiError::invalid_request(reason))
}

/// The parameters of `GET /words/{word}`: whether to add its vector.
pub(in crate::http) fn word_options(query: &str) -> Result<bool, ApiError> {
    let mut parameters = Parameters::decode(query)?;
    let with_vector = parameters.take_parsed("with_vector")?;
    parameters.only(&["with_vector"])?;
    Ok(with_vector.unwrap_or(false))
}

/// For routes without parameters: every parameter is unknown.
pub(in crate::http) fn nothing(query: &str) -> Result<(), ApiError> {
    refuse_all(query, |name| format!("this route has no parameters; remove `{name}`"))
}

/// The same beside a JSON body, which has the fields.
pub(super) fn nothing_beside_json(query: &str) -> Result<(), ApiError> {
    refuse_all(query, |name| {
        format!("beside a JSON body there are no parameters; move `{name}` into the body")
    })
}

/// Refuses the first parameter for this reason.
fn refuse_all(query: &str, reason: impl FnOnce(&str) -> String) -> Result<(), ApiError> {
    match Parameters::decode(query)?.0.into_iter().next() {
        None => Ok(()),
        Some((name, _)) => Err(ApiError::invalid_request(reason(&cut(name.into_owned())))),
    }
}

/// The decoded names and values, in order.
pub(in crate::http) struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    pub(super) fn decode(query: &'a str) -> Result<Self, ApiError> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name)
                .ok_or_else(|| ApiError::NotUtf8 { what: "a parameter name".into() })?;
            let value = decode(value)
                .ok_or_else(|| ApiError::NotUtf8 { what: format!("parameter `{name}`") })?;
            Ok((name, value))
        });
        decoded.collect::<Result<_, ApiError>>().map(Self)
    }

    /// Takes out all values of a parameter, as the iterator is advanced.
    fn take(&mut self, name: &str) -> impl Iterator<Item = String> {
        let taken = self.0.extract_if(.., move |(found, _)| found == name);
        taken.map(|(_, value)| value.into_owned())
    }

    pub(super) fn take_one(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        at_most_one(name, self.take(name))
    }

    pub(super) fn take_parsed<T: std::str::FromStr>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, ApiError> {
        let wrong = |value: &str| invalid(name).with_found(found::of_parameter(value));
        self.take_one(name)?.map(|value| value.parse().map_err(|_| wrong(&value))).transpose()
    }

    /// The same of a value that is one of some names, as it is in JSON.
    pub(super) fn take_named<T: DeserializeOwned>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, ApiError> {
        let wrong = |value: &str| invalid(name).with_found(found::of_parameter(value));
        let named = |value: String| {
            let read = T::deserialize(value.as_str().into_deserializer());
            read.map_err(|_: ValueError| wrong(&value))
        };
        self.take_one(name)?.map(named).transpose()
    }

    fn options_of_nearest(&mut self) -> Result<Options, ApiError> {
        if self.0.is_empty() {
            // The most common case.
            return Ok(Options::default());
        }
        let mut parameters = self;
        Ok(with_options! { nearest: taken_out! { parameters } })
    }

    /// Checks that nothing is left, for a search with these parameters and the options.
    fn refuse_others(self, own: &[&str], options: &[&str]) -> Result<(), ApiError> {
        let Some((field, _)) = self.0.first() else {
            return Ok(());
        };
        if ["vector", "queries"].contains(&&**field) {
            return Err(only_with_post(field));
        }
        self.only(&[own, options].concat())
    }

    /// The name of the first that is left.
    pub(super) fn first(&self) -> Option<&str> {
        self.0.first().map(|(name, _)| &**name)
    }

    /// Checks that nothing is left, for a route that has only these parameters.
    pub(super) fn only(self, known: &[&str]) -> Result<(), ApiError> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((field, _)) => Err(ApiError::UnknownField {
                field: cut(field.into_owned()),
                known: known.iter().map(|&name| name.to_owned()).collect(),
            }),
        }
    }
}

/// The error for a field that is no parameter.
pub(super) fn only_with_post(field: &str) -> ApiError {
    let reason = format!("`{field}` is no parameter: send it in the body of a POST");
    ApiError::invalid_request(reason)
}

fn at_most_one(
    name: &str,
    mut values: impl Iterator<Item = String>,
) -> Result<Option<String>, ApiError> {
    let first = values.next();
    match values.count() {
        0 => Ok(first),
        others => {
            let reason = format!("`{name}` is given {} times; give it once", others + 1);
            Err(ApiError::invalid_request(reason))
        }
    }
}

/// Form encoding: a plus is a space, %XX is a byte. `None` if the bytes are not UTF-8.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['+', '%']) {
        return Some(Cow::Borrowed(text));
    }
    let spaced = text.replace('+', " ");
    percent_decode(spaced.as_bytes()).decode_utf8().ok().map(|text| Cow::Owned(text.into_owned()))
}

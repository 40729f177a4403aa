//! The body of `/expand`: JSON, or an array of the tokens' vectors with the rest in the query
//! string.

use kindred::heads::{Form, WantedTerms};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::arrays::{Array, TokenArray};
use super::at_most::{AtMost, present};
use super::limits::{MAX_RESULTS, MAX_TEXTS, MAX_TOKEN_VECTORS};
use super::query_string::Parameters;
use super::texts::{Text, TextsRequest, read_text};
use super::{invalid, not_exactly_one};
use crate::http::ApiError;
use crate::http::parse::body::JsonBody;

/// The body of `POST /expand`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ExpandBody<'a> {
    #[serde(default, deserialize_with = "present", borrow)]
    text: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present", borrow)]
    texts: Option<AtMost<&'a RawValue, MAX_TEXTS>>,
    #[serde(default, deserialize_with = "present", borrow)]
    vectors: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present")]
    head: Option<String>,
    #[serde(default, deserialize_with = "present")]
    top: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    min_weight: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    max_ratio: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    format: Option<String>,
    #[serde(default, deserialize_with = "present")]
    explain: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    timeout_ms: Option<u64>,
    /// The vectors of a body that is an array.
    #[serde(skip)]
    array: Option<TokenArray>,
}

impl<'a> JsonBody<'a> for ExpandBody<'a> {}

/// What is asked of an expander.
#[derive(Debug)]
pub(in crate::http) struct TermOptions {
    pub(in crate::http) wanted: WantedTerms,
    pub(in crate::http) form: Form,
    /// Which token gave each term.
    pub(in crate::http) explain: bool,
}

/// A text that is not parsed yet.
#[derive(Debug)]
pub(in crate::http) enum Unread<'a> {
    /// A text, its words, or an object with its vectors.
    Text(&'a RawValue),
    /// The vectors of its tokens.
    Vectors(&'a RawValue),
    /// The same from an array, `[tokens, dim]`, and the number of tokens.
    Array(Vec<f32>, usize),
}

/// What is expanded.
#[derive(Debug)]
pub(in crate::http) enum Source {
    Text(Text),
    /// `[tokens, dim]`, and the number of tokens.
    Vectors(Vec<f32>, usize),
}

/// An element of `texts` with the vectors of its tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithVectors<'a> {
    #[serde(borrow)]
    vectors: &'a RawValue,
}

impl<'a> ExpandBody<'a> {
    /// A body that is an array; `query` has everything but its texts.
    pub(in crate::http) fn of_array(array: &Array<'_>, query: &str) -> Result<Self, ApiError> {
        let options = of_query(query)?;
        Ok(Self { array: Some(array.tokens()?), ..options })
    }

    /// The field `timeout_ms`, unchecked.
    pub(in crate::http) fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }

    /// Checks the form of the body. The texts stay unparsed JSON.
    pub(in crate::http) fn check(self) -> Result<TextsRequest<Unread<'a>, TermOptions>, ApiError> {
        let is_list = self.array.as_ref().map_or(self.texts.is_some(), |array| array.is_list);
        let is_single = !is_list;
        let texts = match (self.text, self.vectors, self.texts, self.array) {
            (None, None, None, Some(TokenArray { tokens, texts, .. })) => {
                texts.into_iter().map(|text| Unread::Array(text, tokens)).collect()
            }
            (Some(text), None, None, None) => vec![Unread::Text(text)],
            (None, Some(vectors), None, None) => vec![Unread::Vectors(vectors)],
            (None, None, Some(texts), None) => {
                let texts = texts.all().filter(|texts| !texts.is_empty());
                texts.ok_or_else(|| invalid("texts"))?.into_iter().map(Unread::Text).collect()
            }
            _ => return Err(not_exactly_one("`text`, `vectors` and `texts`")),
        };
        let Self { min_weight, max_ratio, .. } = self;
        let (min_weight, max_ratio) = (min_weight.unwrap_or(0.0), max_ratio.unwrap_or(0.0));
        if !(0.0..=f64::MAX).contains(&min_weight) {
            return Err(invalid("min_weight"));
        }
        if !(0.0..=1.0).contains(&max_ratio) {
            return Err(invalid("max_ratio"));
        }
        let most = WantedTerms::MOST as u64;
        let top = self.top.unwrap_or(WantedTerms::TOP as u64);
        if !(1..=most).contains(&top) {
            let expected = format!("a whole number from 1 to {most}");
            return Err(ApiError::InvalidValue { field: "top".to_owned(), expected });
        }
        let results = top as usize * texts.len();
        if results > MAX_RESULTS && self.top.is_some() {
            let reason = format!("`top` × texts is {results}; the maximum is {MAX_RESULTS}");
            return Err(ApiError::TooManyResults { reason });
        }
        let top = (top as usize).min(MAX_RESULTS / texts.len());
        let form = self.format.as_deref().map(str::parse).transpose();
        let form = form.map_err(|_| invalid("format"))?.unwrap_or_default();
        let explain = self.explain.unwrap_or(false);
        if explain && form != Form::Terms {
            let reason = format!("`explain` needs the format `terms`, not `{form}`");
            return Err(ApiError::InvalidRequest { reason });
        }
        let wanted = WantedTerms { top, min_weight, max_ratio };
        let options = TermOptions { wanted, form, explain };
        Ok(TextsRequest { texts, is_single, head: self.head, options })
    }
}

/// The parameters of a `POST /expand` whose body is an array: everything of a JSON body but its
/// texts.
fn of_query(query: &str) -> Result<ExpandBody<'static>, ApiError> {
    let mut parameters = Parameters::decode(query)?;
    let body = ExpandBody {
        head: parameters.take_one("head")?,
        top: parameters.take_parsed("top")?,
        min_weight: parameters.take_parsed("min_weight")?,
        max_ratio: parameters.take_parsed("max_ratio")?,
        format: parameters.take_one("format")?,
        explain: parameters.take_parsed("explain")?,
        timeout_ms: parameters.take_parsed("timeout_ms")?,
        ..ExpandBody::default()
    };
    parameters.only(&[
        "head",
        "top",
        "min_weight",
        "max_ratio",
        "format",
        "explain",
        "timeout_ms",
    ])?;
    Ok(body)
}

impl Unread<'_> {
    /// Parses the text with this index; `None` if it is the only one.
    pub(in crate::http) fn read(self, index: Option<usize>) -> Result<Source, ApiError> {
        let of_text = |name: &str| match index {
            Some(index) => format!("texts[{index}]{name}"),
            None => name.trim_start_matches('.').to_owned(),
        };
        match self {
            Self::Array(components, tokens) => Ok(Source::Vectors(components, tokens)),
            Self::Vectors(vectors) => read_vectors(vectors, &of_text(".vectors")),
            Self::Text(text) if text.get().trim_start().starts_with('{') => {
                let field = index.map_or_else(|| "text".to_owned(), |_| of_text(""));
                let expected = super::expected("texts[0]").to_owned();
                let object: WithVectors<'_> = serde_json::from_str(text.get())
                    .map_err(|_| ApiError::InvalidValue { field, expected })?;
                read_vectors(object.vectors, &of_text(".vectors"))
            }
            Self::Text(text) => read_text(index, text).map(Source::Text),
        }
    }
}

/// Parses vectors of equal lengths: JSON's numbers to the nearest float64, then float32.
fn read_vectors(vectors: &RawValue, field: &str) -> Result<Source, ApiError> {
    let wrong = |expected: &str| ApiError::InvalidValue {
        field: field.to_owned(),
        expected: expected.to_owned(),
    };
    let unequal = "lists of the same length, one for each token";
    let read: AtMost<Vec<f64>, MAX_TOKEN_VECTORS> =
        serde_json::from_str(vectors.get()).map_err(|_| wrong(super::expected("vectors")))?;
    let read = read.all().filter(|vectors| !vectors.is_empty());
    let read = read.ok_or_else(|| wrong(super::expected("vectors")))?;
    let dim = read[0].len();
    if read.iter().any(|vector| vector.len() != dim) {
        return Err(wrong(unequal));
    }
    let components = read.iter().flatten().map(|&component| component as f32).collect();
    Ok(Source::Vectors(components, read.len()))
}

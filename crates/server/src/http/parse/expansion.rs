//! The body of `/expand`: JSON, or an array of the tokens' vectors with the rest in the query
//! string. Without a body, the text is in the query string, too.

use kindred::heads::{Form, WantedTerms};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::arrays::TokenArray;
use super::at_most::AtMost;
use super::limits::{MAX_RESULTS, MAX_TEXTS, MAX_TOKEN_VECTORS, MAX_TOKENS, at_most};
use super::query_string::Parameters;
use super::texts::{TextOrWords, TextsBody, TextsRequest, UnreadText, not_null, texts_body};
use super::{expected, found, invalid, not_exactly_one};
use crate::http::ApiError;

texts_body! {
    /// The body of `POST /expand`.
    ExpandBody<'a> {
        #[serde(borrow)]
        text: &'a RawValue,
        #[serde(borrow)]
        texts: AtMost<&'a RawValue, MAX_TEXTS>,
        #[serde(borrow)]
        vectors: &'a RawValue,
    }
    options {
        head: String,
        top: u64,
        min_weight: f64,
        max_ratio: f64,
        filter: String,
        format: String,
        explain: bool,
        timeout_ms: u64,
    }
}

/// What is asked of an expander.
#[derive(Debug)]
pub(in crate::http) struct TermOptions {
    pub(in crate::http) wanted: WantedTerms,
    pub(in crate::http) form: Form,
    /// Which token gave each term.
    pub(in crate::http) explain: bool,
}

/// The part of a request outside a JSON body.
#[derive(Debug)]
pub(in crate::http) enum Besides {
    /// Nothing.
    Nothing,
    /// The body is an array.
    Array(TokenArray),
    /// The text is a query parameter.
    Text(String),
}

/// A text that is not parsed yet.
#[derive(Debug)]
pub(in crate::http) enum Unread<'a> {
    /// A text, its words, or an object with its vectors.
    Text(UnreadText<'a>),
    /// The vectors of its tokens.
    Vectors(&'a RawValue),
    /// The same from an array, `[tokens, dim]`, and the number of tokens.
    Array(Vec<f32>, usize),
}

/// What is expanded.
#[derive(Debug)]
pub(in crate::http) enum Source {
    Text(TextOrWords<MAX_TOKENS>),
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
    /// The parameters of a request whose body is an array: all fields but the texts.
    pub(in crate::http) fn of_query(query: &str) -> Result<Self, ApiError> {
        let mut parameters = Parameters::decode(query)?;
        let body = Self::of_parameters(&mut parameters)?;
        parameters.only(Self::OPTIONS)?;
        Ok(body)
    }

    /// Checks the form of the request. Texts of the body stay unparsed JSON.
    pub(in crate::http) fn check(
        self,
        besides: Besides,
    ) -> Result<TextsRequest<Unread<'a>, TermOptions>, ApiError> {
        not_null("text", self.text)?;
        not_null("vectors", self.vectors)?;
        let is_single = match &besides {
            Besides::Nothing => self.texts.is_none(),
            Besides::Array(array) => !array.is_list,
            Besides::Text(_) => true,
        };
        let of_json = |text| Unread::Text(UnreadText::Json(text));
        let texts = match (self.text, self.vectors, self.texts, besides) {
            (None, None, None, Besides::Array(TokenArray { tokens, texts, .. })) => {
                texts.into_iter().map(|text| Unread::Array(text, tokens)).collect()
            }
            (None, None, None, Besides::Text(text)) => {
                vec![Unread::Text(UnreadText::Plain(text))]
            }
            (Some(text), None, None, Besides::Nothing) => vec![of_json(text)],
            (None, Some(vectors), None, Besides::Nothing) => vec![Unread::Vectors(vectors)],
            (None, None, Some(texts), Besides::Nothing) => {
                let texts = texts.all().filter(|texts| !texts.is_empty());
                texts.ok_or_else(|| invalid("texts"))?.into_iter().map(of_json).collect()
            }
            _ => return Err(not_exactly_one("`text`, `vectors` and `texts`")),
        };
        let Self { min_weight, max_ratio, .. } = self;
        let (min_weight, max_ratio) = (min_weight.unwrap_or(0.0), max_ratio.unwrap_or(0.0));
        if !(0.0..=f64::MAX).contains(&min_weight) {
            return Err(invalid("min_weight").with_found(Some(found::of_number(min_weight))));
        }
        if !(0.0..=1.0).contains(&max_ratio) {
            return Err(invalid("max_ratio").with_found(Some(found::of_number(max_ratio))));
        }
        let most = WantedTerms::MOST as u64;
        let top = self.top.unwrap_or(WantedTerms::TOP as u64);
        if !(1..=most).contains(&top) {
            let expected = format!("a whole number from 1 to {most}");
            let wrong = ApiError::invalid_value("top", expected);
            return Err(wrong.with_found(Some(top.to_string())));
        }
        let results = top as usize * texts.len();
        if self.top.is_some() {
            at_most(results, MAX_RESULTS, |found| format!("`top` × texts is {found}"))?;
        }
        let top = (top as usize).min(MAX_RESULTS / texts.len());
        let read = |form: &str| {
            let wrong = || invalid("format").with_found(found::of_parameter(form));
            form.parse::<Form>().map_err(|_| wrong())
        };
        let form = self.format.as_deref().map(read).transpose()?.unwrap_or_default();
        let explain = self.explain.unwrap_or(false);
        if explain && form != Form::Terms {
            let reason = format!("`explain` needs the format `terms`, not `{form}`");
            return Err(ApiError::invalid_request(reason));
        }
        let wanted = WantedTerms { top, min_weight, max_ratio, filter: self.filter };
        let options = TermOptions { wanted, form, explain };
        Ok(TextsRequest { texts, is_single, head: self.head, options })
    }
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
            Self::Text(UnreadText::Json(text)) if text.get().trim_start().starts_with('{') => {
                let field = index.map_or_else(|| "text".to_owned(), |_| of_text(""));
                let object: WithVectors<'_> = serde_json::from_str(text.get())
                    .map_err(|_| ApiError::invalid_value(&field, expected("texts[0]")))?;
                read_vectors(object.vectors, &of_text(".vectors"))
            }
            Self::Text(text) => text.read(index).map(Source::Text),
        }
    }
}

/// Parses vectors of equal lengths: JSON's numbers to the nearest float64, then float32.
fn read_vectors(vectors: &RawValue, field: &str) -> Result<Source, ApiError> {
    let wrong = |must_be: &str| ApiError::invalid_value(field, must_be);
    let unequal = "lists of the same length, one for each token";
    let read: AtMost<Vec<f64>, MAX_TOKEN_VECTORS> = serde_json::from_str(vectors.get())
        .map_err(|_| wrong(expected("vectors")).with_found(Some(found::of_json(vectors.get()))))?;
    let read = read.all().filter(|vectors| !vectors.is_empty());
    let read = read.ok_or_else(|| wrong(expected("vectors")))?;
    let dim = read[0].len();
    if read.iter().any(|vector| vector.len() != dim) {
        return Err(wrong(unequal));
    }
    let components = read.iter().flatten().map(|&component| component as f32).collect();
    Ok(Source::Vectors(components, read.len()))
}

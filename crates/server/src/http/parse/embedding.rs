//! The JSON bodies of `/embed` and `/v1/embeddings`: Kindred's own, and those that clients of OpenAI
//! and of Hugging Face's text-embeddings-inference (TEI) send. In these, `null` means absent.

use kindred::Unknown;
use kindred::question::EncodeOptions;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::body::Received;
use super::json::{JsonBody, json_body};
use super::limits::{MAX_INPUTS, MAX_TEXTS};
use super::{found, invalid};
use crate::http::ApiError;

json_body! {
    /// The body of `POST /embed`.
    EmbedBody<'a> {
        #[serde(borrow)]
        texts: AtMost<&'a RawValue, MAX_TEXTS>,
        unknown: Unknown,
        normalize: bool,
        truncate: bool,
        timeout_ms: u64,
    }
}

/// The body of `POST /v1/embeddings`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OpenAiBody<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    model: Option<String>,
    encoding_format: Option<EncodingFormat>,
    dimensions: Option<u64>,
    user: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EncodingFormat {
    Float,
    Base64,
}

/// The body of TEI's `POST /embed`. Fields that are not here are ignored, as there.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TeiBody<'a> {
    #[serde(borrow)]
    inputs: Option<&'a RawValue>,
    truncate: Option<bool>,
    truncation_direction: Option<String>,
    prompt_name: Option<String>,
    normalize: Option<bool>,
    dimensions: Option<u64>,
    /// Not TEI's: the name of the own form's field.
    texts: Option<IgnoredAny>,
}

impl<'a> JsonBody<'a> for OpenAiBody<'a> {
    const FIELDS: &'static [&'static str] =
        &["input", "model", "encoding_format", "dimensions", "user"];
}

impl<'a> JsonBody<'a> for TeiBody<'a> {
    const FIELDS: &'static [&'static str] = &[
        "inputs",
        "truncate",
        "truncation_direction",
        "prompt_name",
        "normalize",
        "dimensions",
        "texts",
    ];
}

/// Whose form a request has, and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) enum Form {
    /// Kindred's own.
    Own,
    /// OpenAI's. `model` may name a model that is served.
    OpenAi { in_base64: bool, model: Option<String> },
    /// That of text-embeddings-inference.
    Tei,
}

/// Texts to encode.
pub(in crate::http) struct Asked<'a> {
    pub(in crate::http) form: Form,
    /// The texts, as unparsed JSON.
    pub(in crate::http) texts: Vec<&'a RawValue>,
    pub(in crate::http) options: EncodeOptions,
    pub(in crate::http) timeout_ms: Option<u64>,
    /// The components that the client expects, if it says so.
    pub(in crate::http) dimensions: Option<u64>,
    /// The field with the texts.
    field: &'static str,
    /// Whether this is one text and not a list.
    is_one: bool,
}

impl<'a> Asked<'a> {
    /// Whose form the body of `POST /embed` has: its field with the texts says it.
    pub(in crate::http) fn is_tei(received: &Received) -> bool {
        has_key(received.bytes(), b"\"inputs\"")
    }

    /// A body in OpenAI's form.
    pub(in crate::http) fn open_ai(received: &'a Received) -> Result<Self, ApiError> {
        let body = received.parse::<OpenAiBody<'_>>()?;
        let OpenAiBody { input, model, encoding_format, dimensions, user: _ } = body;
        let in_base64 = encoding_format == Some(EncodingFormat::Base64);
        // The reference has these for unit length only.
        let options = EncodeOptions { normalize: Some(true), ..EncodeOptions::default() };
        let form = Form::OpenAi { in_base64, model };
        Self::of_inputs("input", input, form, options, dimensions)
    }

    /// A body in Kindred's own form.
    pub(in crate::http) fn own(received: &'a Received) -> Result<Self, ApiError> {
        let body = received.parse::<EmbedBody<'_>>()?;
        let EmbedBody { texts, unknown, normalize, truncate, timeout_ms } = body;
        let texts = texts.and_then(AtMost::all).filter(|texts| !texts.is_empty());
        let texts = texts.ok_or_else(|| invalid("texts"))?;
        let options = EncodeOptions { unknown, normalize, truncate };
        let (form, field, dimensions, is_one) = (Form::Own, "texts", None, false);
        Ok(Self { form, texts, options, timeout_ms, dimensions, field, is_one })
    }

    /// A body in TEI's form.
    pub(in crate::http) fn tei(received: &'a Received) -> Result<Self, ApiError> {
        let body = received.parse::<TeiBody<'_>>()?;
        let TeiBody { inputs, truncate, truncation_direction, prompt_name, .. } = body;
        if body.texts.is_some() {
            return Err(super::not_exactly_one("`texts` and `inputs`"));
        }
        if truncation_direction.is_some_and(|side| side != "Right") {
            return Err(invalid("truncation_direction"));
        }
        if let Some(name) = prompt_name {
            return Err(
                invalid("prompt_name").with_found(Some(format!("`{}`", kindred::cut(name))))
            );
        }
        let normalize = Some(body.normalize.unwrap_or(true));
        let options = EncodeOptions { normalize, truncate, unknown: None };
        Self::of_inputs("inputs", inputs, Form::Tei, options, body.dimensions)
    }

    fn of_inputs(
        field: &'static str,
        inputs: Option<&'a RawValue>,
        form: Form,
        options: EncodeOptions,
        dimensions: Option<u64>,
    ) -> Result<Self, ApiError> {
        let inputs = inputs.ok_or_else(|| invalid(field))?;
        let is_one = !inputs.get().starts_with('[');
        let texts = match is_one {
            true => vec![inputs],
            false => {
                let list: AtMost<&RawValue, MAX_INPUTS> =
                    serde_json::from_str(inputs.get()).map_err(|_| invalid(field))?;
                let count = list.found;
                if count == 0 && form == Form::Tei {
                    return Err(ApiError::EmptyInput { field: field.to_owned() });
                }
                let texts = list.all().filter(|texts| !texts.is_empty());
                texts
                    .ok_or_else(|| invalid(field).with_found(Some(format!("a list of {count}"))))?
            }
        };
        Ok(Self { form, texts, options, timeout_ms: None, dimensions, field, is_one })
    }

    /// Whether an error is that of one text, beside which the others have their vectors.
    pub(in crate::http) fn is_own(&self) -> bool {
        self.form == Form::Own
    }

    /// The name of the field of a text, in errors.
    pub(in crate::http) fn field(&self, index: usize) -> String {
        match self.is_one {
            true => self.field.to_owned(),
            false => format!("{}[{index}]", self.field),
        }
    }

    /// Parses the text with this index.
    pub(in crate::http) fn text(&self, index: usize) -> Result<String, ApiError> {
        let json = self.texts[index].get();
        if json == "\"\"" && self.form == Form::Tei {
            return Err(ApiError::EmptyInput { field: self.field(index) });
        }
        serde_json::from_str(json).map_err(|_| {
            let field = self.field(index);
            let is_token = json.starts_with(|first: char| first == '[' || first.is_ascii_digit());
            if is_token && !self.is_own() {
                return ApiError::invalid_value(&field, TOKENS);
            }
            ApiError::invalid_value(&field, A_TEXT).with_found(Some(found::of_json(json)))
        })
    }

    /// Checks that the client expects vectors of this many components.
    pub(in crate::http) fn check_dimensions(&self, dim: usize) -> Result<(), ApiError> {
        match self.dimensions {
            Some(wanted) if wanted != dim as u64 => {
                let must_be = format!(
                    "{dim}, the model's, or left out: a part of the components is no vector of this \
                     model"
                );
                let error = ApiError::invalid_value("dimensions", must_be);
                Err(error.with_found(Some(wanted.to_string())))
            }
            _ => Ok(()),
        }
    }
}

/// The reason why ids of tokens are refused.
const TOKENS: &str = "a text, and not ids of tokens, which are those of another program's \
                      tokeniser; LangChain's OpenAIEmbeddings sends texts with \
                      check_embedding_ctx_length=False";

/// A text, in words.
const A_TEXT: &str = "a string, such as \"a quick brown fox\"";

/// Whether a body of JSON has this name, in quotes, as a key.
fn has_key(body: &[u8], quoted: &[u8]) -> bool {
    let is_key = |at: usize| {
        // A quote in a string has a backslash before it; before a key there is none.
        let behind = body[at + quoted.len()..].trim_ascii_start();
        behind.first() == Some(&b':') && (at == 0 || body[at - 1] != b'\\')
    };
    memchr::memmem::find_iter(body, quoted).any(is_key)
}

/// The names of the fields whose values errors explain here.
pub(super) fn must_be(field: &str) -> Option<&'static str> {
    Some(match field {
        "input" | "inputs" => "a text, or a list of 1 to 2048 texts",
        "model" => "the name of a model, as a string",
        "encoding_format" => "`float` or `base64`",
        "dimensions" => "the model's number of components, or left out",
        "user" => "a string",
        "truncation_direction" => "`Right`, or left out: the beginning of a long text is kept",
        "prompt_name" => "left out: models here have no prompts",
        "normalize" => {
            "true for vectors of unit length, or false for the mean of the words or tokens"
        }
        "truncate" => "true to cut texts that are too long, or false to refuse them",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::expected;
    use super::*;

    #[test]
    fn a_key_is_told_from_a_text() {
        for (body, is_key) in [
            (r#"{"inputs":"a"}"#, true),
            ("{\n \"inputs\" \n: [\"a\"]}", true),
            (r#"{"texts":["inputs"]}"#, false),
            (r#"{"texts":["inputs","a"]}"#, false),
            (r#"{"texts":["\"inputs\": 3"]}"#, false),
            (r#"{"texts":["inputs"],"inputs":1}"#, true),
        ] {
            assert_eq!(has_key(body.as_bytes(), b"\"inputs\""), is_key, "{body}");
        }
    }

    #[test]
    fn every_field_has_an_explanation() {
        for name in OpenAiBody::FIELDS.iter().chain(TeiBody::FIELDS).chain(EmbedBody::FIELDS) {
            assert_ne!(expected(name), "a different value", "{name}");
        }
    }
}

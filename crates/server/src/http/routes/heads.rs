//! The heads of a model: finding one, looking up the words of its texts, the form of its answers,
//! and `GET /heads`.

use std::borrow::Cow;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use kindred::heads::{HeadKind, Tokenised, Vocabulary};
use serde::Serialize;
use serde_json::json;

use crate::http::ApiError;
use crate::http::offload::check_deadline;
use crate::http::parse::classification::Text;
use crate::http::parse::negotiation;
use crate::http::render;
use crate::http::render::caching;
use crate::models::{AnyHead, Call, ServedHead, ServedModel, find_head};
use crate::workers::Cancellation;

/// The head of this name and kind, or the only one of this kind.
pub(super) fn find(
    served: &ServedModel,
    name: Option<&str>,
    kind: HeadKind,
) -> Result<ServedHead, ApiError> {
    let found = find_head(&served.heads.load(), served.name(), name, kind).cloned();
    found.map_err(|reason| ApiError::NoSuchHead { reason })
}

/// A text whose words were looked up.
pub(super) struct KnownText {
    pub(super) tokenised: Tokenised,
    /// The text, for an explanation; otherwise empty.
    pub(super) text: String,
}

/// Looks up the words of a text. It is kept only if `explain` says so.
pub(super) fn look_up(
    vocabulary: &Vocabulary<'_>,
    text: Text,
    explain: bool,
) -> Result<KnownText, ApiError> {
    let tokenised = match &text {
        Text::Whole(text) => vocabulary.tokenise(text),
        Text::Tokens(words) => vocabulary.take(words.iter().map(String::as_str)),
    };
    if tokenised.tokens.is_empty() {
        return Err(kindred::Error::no_known_word(tokenised.unknown).into());
    }
    let text = match text {
        _ if !explain => String::new(),
        Text::Whole(text) => text,
        Text::Tokens(words) => words.join(" "),
    };
    Ok(KnownText { tokenised, text })
}

/// The answer to a request with texts.
#[derive(Serialize)]
pub(super) struct HeadAnswer<'a, T> {
    model: &'a str,
    version: &'a str,
    head: &'a str,
    #[serde(flatten)]
    one: Option<TextAnswer<'a, T>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Vec<TextAnswer<'a, T>>>,
}

/// The answer to one text.
#[derive(Serialize)]
#[serde(untagged)]
enum TextAnswer<'a, T> {
    Found(T),
    Failed { error: Cow<'a, ApiError> },
}

impl<'a, T> HeadAnswer<'a, T> {
    /// The answers that `found` gives to texts, and the errors of the others. The error of a single
    /// text is that of the request.
    pub(super) fn new<K>(
        (served, head): (&'a ServedModel, &'a str),
        texts: &'a [Result<K, ApiError>],
        is_single: bool,
        cancellation: &Cancellation,
        mut found: impl FnMut(&'a K) -> Result<T, ApiError>,
    ) -> Result<Self, ApiError> {
        let mut results = Vec::with_capacity(texts.len());
        for text in texts {
            check_deadline(cancellation)?;
            results.push(match text.as_ref().map(&mut found) {
                Ok(Ok(answer)) => TextAnswer::Found(answer),
                Ok(Err(error)) if is_single => return Err(error),
                Ok(Err(error)) => TextAnswer::Failed { error: Cow::Owned(error) },
                Err(error) => TextAnswer::Failed { error: Cow::Borrowed(error) },
            });
        }
        Ok(Self {
            model: served.model.name(),
            version: served.model.version(),
            head,
            one: if is_single { results.pop() } else { None },
            results: (!is_single).then_some(results),
        })
    }
}

/// `GET /heads`
pub(in crate::http) async fn get_heads(
    call: Call,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::JSON)?;
    let heads = call.heads.load();
    let described = heads.iter().map(|ServedHead { name, head }| match head {
        AnyHead::Classifier(classifier) => {
            let about = classifier.head.description();
            json!({
                "name": name,
                "kind": about.kind,
                "labels": about.labels,
                "probabilities": about.probabilities,
                "tokens": about.tokens,
                "training": about.training,
            })
        }
        AnyHead::Expander(expander) => {
            let about = expander.description();
            json!({
                "name": name,
                "kind": about.kind,
                "terms": expander.len(),
                "log1p": about.log1p,
                "tokens": about.tokens,
                "training": about.training,
            })
        }
    });
    let answer = json!({
        "model": call.name(),
        "version": call.model.version(),
        "heads": described.collect::<Vec<_>>(),
    });
    caching::content(&headers, render::bytes(&answer))
}

//! The heads of a model: finding one, and `GET /heads`.

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use kindred::UnknownWord;
use kindred::heads::HeadKind;
use serde_json::json;

use crate::http::ApiError;
use crate::http::parse::negotiation;
use crate::http::render;
use crate::http::render::caching;
use crate::models::{AnyHead, Call, ServedHead, ServedModel};

/// The head of this name and kind, or the only one of this kind.
pub(super) fn find(
    served: &ServedModel,
    name: Option<&str>,
    kind: HeadKind,
) -> Result<ServedHead, ApiError> {
    let all = served.heads.load();
    let heads: Vec<&ServedHead> = all.iter().filter(|head| head.head.kind() == kind).collect();
    let names = || heads.iter().map(|head| head.name.as_str()).collect::<Vec<_>>().join(", ");
    let reason = match (name, &heads[..]) {
        (None, [only]) => return Ok((*only).clone()),
        (_, []) => {
            let (what, data) = match kind {
                HeadKind::Classifier => ("classifier", " --data FILE"),
                HeadKind::Expander => ("expander", ""),
            };
            format!(
                "the model `{}` has no {what}; make one with `kindred train {what} --model DIR{data} --out HEAD`, and \
                 serve it with `kindred serve --model DIR --head HEAD`",
                served.name()
            )
        }
        (None, _) => format!("there are several heads; name one in `head`: {}", names()),
        (Some(name), _) => match heads.iter().find(|head| head.name == name) {
            Some(head) => return Ok((*head).clone()),
            None => match all.iter().find(|head| head.name == name) {
                Some(other) => {
                    format!(
                        "the head `{name}` is {}; choose from: {}",
                        other.head.kind().name(),
                        names()
                    )
                }
                None => format!("there is no head `{name}`; heads: {}", names()),
            },
        },
    };
    Err(ApiError::NoSuchHead { reason })
}

/// The error for a text without a word that is known.
pub(super) fn no_known_word(unknown: Vec<String>) -> ApiError {
    if unknown.is_empty() {
        let expected = "a text with at least one word".to_owned();
        return ApiError::InvalidValue { field: "text".to_owned(), expected };
    }
    let unknown = unknown.into_iter().map(|word| UnknownWord { word, suggestions: Vec::new() });
    ApiError::UnknownWord { unknown: unknown.collect() }
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

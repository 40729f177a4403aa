//! `POST /embed` and `POST /v1/embeddings`: the vectors of texts, those that a search for each text
//! has. No search is needed.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kindred::question::{EncodedText, Notes, encode};
use kindred::{SubwordsOf, TextTokens};
use scheduler::account::Reservation;
use serde::Serialize;

use super::search::{Answering, Timed};
use super::{require_key, suggestions};
use crate::http::ApiError;
use crate::http::offload::{check_deadline, stage};
use crate::http::parse::body::Received;
use crate::http::parse::embedding::{Asked, Form};
use crate::http::parse::limits::{MAX_VECTOR_COMPONENTS, at_most};
use crate::http::parse::negotiation::{self, Format};
use crate::http::render::problem::ErrorForm;
use crate::http::render::server_timing::Timing;
use crate::http::render::size::{BYTES_PER_COMPONENT, Size};
use crate::http::render::{self, ItemAnswer, caching, table};
use crate::models::{Call, Reloader};
use crate::workers::Cancellation;

#[derive(Serialize)]
struct EmbedAnswer<'a> {
    model: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    results: Vec<ItemAnswer<'a, Embedded<'a>>>,
}

/// A text as a vector.
#[derive(Serialize)]
struct Embedded<'a> {
    vector: &'a [f32],
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subwords: Option<&'a [SubwordsOf]>,
    tokens: TextTokens,
}

/// An answer in OpenAI's form.
#[derive(Serialize)]
struct OpenAiAnswer<'a> {
    object: &'static str,
    data: Vec<OpenAiEmbedding<'a>>,
    model: &'a str,
    usage: Usage,
}

#[derive(Serialize)]
struct OpenAiEmbedding<'a> {
    object: &'static str,
    index: usize,
    embedding: Components<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Components<'a> {
    Numbers(&'a [f32]),
    Base64(String),
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: usize,
    total_tokens: usize,
}

/// Where a request came, which says the form of its body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Embed,
    OpenAi,
    Start,
}

impl Entry {
    fn is_tei(self, received: &Received) -> bool {
        self == Self::Start || (self == Self::Embed && Asked::is_tei(received))
    }

    fn read(self, received: &Received) -> Result<Asked<'_>, ApiError> {
        match self {
            Self::OpenAi => Asked::open_ai(received),
            _ if self.is_tei(received) => Asked::tei(received),
            _ => Asked::own(received),
        }
    }
}

/// `POST /embed`
pub(in crate::http) async fn post_embed(call: Call, received: Received) -> Timed {
    answer(call, received, Entry::Embed).await
}

/// `POST /v1/embeddings`
pub(in crate::http) async fn post_open_ai(call: Call, received: Received) -> Timed {
    answer(call, received, Entry::OpenAi).await
}

/// `POST /`, as `/embed` in the form of text-embeddings-inference, whose clients send it there.
pub(in crate::http) fn post_start(call: Call, request: Request, _: &Arc<Reloader>) -> Answering {
    Box::pin(async move {
        // The page at the same path may be seen without a key.
        require_key(&call, request.extensions())?;
        if !call.has_model() {
            return Err(ApiError::NoModels);
        }
        call.log_model();
        let received = Received::receive(&call, request).await?;
        answer(call, received, Entry::Start).await
    })
}

/// Vectors, and what belongs to their answer.
struct Encoded {
    /// The request, about the model that it names.
    call: Call,
    results: Vec<Result<EncodedText, ApiError>>,
    format: Format,
    size: Size,
    room: Option<Reservation>,
}

async fn answer(call: Call, received: Received, entry: Entry) -> Timed {
    let (cost, latest, same) = (received.cost(), received.latest(&call), call.clone());
    let encode_all = move |cancellation: &Cancellation| {
        let received = received.whole()?;
        let (form, deadline, encoded) = match entry.read(&received) {
            Err(error) if entry.is_tei(&received) => (Form::Tei, latest, Err(error)),
            Err(error) => return Err(error),
            Ok(asked) => {
                let (form, deadline) = (asked.form.clone(), same.deadline(asked.timeout_ms)?);
                let cancellation = cancellation.at_most(deadline);
                (form, deadline, encoded(same, &received, asked, &cancellation))
            }
        };
        Ok((form, encoded, deadline, received.into_room()))
    };
    let (form, encoded, deadline, _room) = stage(&call, cost, latest, encode_all).await?;
    let mut encoded = match suggestions::with(&call, encoded).await {
        Ok(encoded) => encoded,
        Err(error) if form == Form::Tei => return Ok((in_tei(error), Timing::default())),
        Err(error) => return Err(error),
    };
    let faults = encoded.results.iter_mut().filter_map(|result| result.as_mut().err());
    suggestions::fill_in(&call, faults).await;
    let cost = encoded.size.cost();
    let write = move |_: &Cancellation| Ok(written(encoded, &form));
    Ok((stage(&call, cost, deadline, write).await?, Timing::default()))
}

/// An error in the form of text-embeddings-inference.
fn in_tei(error: ApiError) -> Response {
    let mut response = error.into_response();
    response.extensions_mut().insert(ErrorForm::Tei);
    response
}

fn encoded(
    call: Call,
    received: &Received,
    asked: Asked<'_>,
    cancellation: &Cancellation,
) -> Result<Encoded, ApiError> {
    let call = match &asked.form {
        Form::OpenAi { model: Some(name), .. } if !received.names_a_model() => call.about(name),
        _ => call,
    };
    let count = asked.texts.len();
    call.log_queries(count);
    let dim = call.model.dim();
    asked.check_dimensions(dim)?;
    at_most(count * dim, MAX_VECTOR_COMPONENTS, |found| {
        format!("{count} texts × {dim} components is {found}")
    })?;
    let format = match asked.is_own() {
        true => negotiation::json_or_npy(&received.headers)?,
        false => {
            negotiation::check(&received.headers, &negotiation::JSON)?;
            Format::Json
        }
    };
    // Before any vector is there.
    let size = Size::of_vectors(count, dim);
    let room = size.room(&call)?;
    let mut results = Vec::with_capacity(count);
    for index in 0..count {
        check_deadline(cancellation)?;
        results.push(one(&call, &asked, index, format)?);
    }
    Ok(Encoded { call, results, format, size, room })
}

/// A text as a vector, or its fault. Where there is no place for one, it is that of the whole
/// request.
fn one(
    call: &Call,
    asked: &Asked<'_>,
    index: usize,
    format: Format,
) -> Result<Result<EncodedText, ApiError>, ApiError> {
    let text = asked.text(index);
    let found =
        text.and_then(|text| encode(call.rows(), &text, &asked.options).map_err(ApiError::from));
    match (found, format) {
        (Err(error), Format::Npy) => {
            let (list, item, error) = ("texts", "text", Box::new(error));
            Err(ApiError::InItem { list, item, index, error })
        }
        // It names its field.
        (Err(error @ ApiError::EmptyInput { .. }), _) => Err(error),
        (Err(error), _) if !asked.is_own() => Err(error.in_field(asked.field(index))),
        (found, _) => Ok(found),
    }
}

fn written(encoded: Encoded, form: &Form) -> Response {
    let Encoded { call, results, format, room, .. } = encoded;
    let bytes = results.len() * call.model.dim() * BYTES_PER_COMPONENT;
    let pinned = call.pinned();
    let vectors = || results.iter().flatten().map(|found| &found.vector[..]);
    let body = match (form, format) {
        (Form::Own, Format::Npy) => {
            return table::vectors(pinned, (results.len(), call.model.dim()), vectors(), room);
        }
        (Form::Own, Format::Json) => in_json(&call, &results, bytes),
        (Form::Tei, _) => render::bytes_of_about(bytes, &vectors().collect::<Vec<_>>()),
        (Form::OpenAi { in_base64, .. }, _) => {
            let in_base_64 = |vector: &[f32]| {
                STANDARD.encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
            };
            let data = vectors().enumerate().map(|(index, vector)| OpenAiEmbedding {
                object: "embedding",
                index,
                embedding: match in_base64 {
                    true => Components::Base64(in_base_64(vector)),
                    false => Components::Numbers(vector),
                },
            });
            let tokens = results.iter().flatten().map(|found| found.tokens);
            let read = tokens.map(|tokens| tokens.count + tokens.unknown).sum();
            render::bytes_of_about(
                bytes,
                &OpenAiAnswer {
                    object: "list",
                    data: data.collect(),
                    model: call.name(),
                    usage: Usage { prompt_tokens: read, total_tokens: read },
                },
            )
        }
    };
    caching::tagged(pinned, Format::Json, body, room)
}

fn in_json(call: &Call, results: &[Result<EncodedText, ApiError>], bytes: usize) -> Vec<u8> {
    let rows = call.rows();
    let (model, version, position) = (call.name(), rows.version(), call.pinned().position());
    let results = results.iter().map(|result| match result {
        Ok(EncodedText { vector, notes: Notes { used, skipped, subwords, .. }, tokens }) => {
            let words = |used: &Vec<_>| used.iter().map(|&row| rows.word(row)).collect();
            let used = used.as_ref().map(words);
            let (skipped, subwords) = (skipped.as_deref(), subwords.as_deref());
            ItemAnswer::Found(Embedded { vector, used, skipped, subwords, tokens: *tokens })
        }
        Err(error) => ItemAnswer::Failed { error: Cow::Borrowed(error) },
    });
    let results = results.collect();
    render::bytes_of_about(bytes, &EmbedAnswer { model, version, position, results })
}

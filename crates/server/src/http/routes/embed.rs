//! `POST /embed`: the vectors of texts, those that a search for each text has. No search is needed.

use std::borrow::Cow;

use axum::response::Response;
use kindred::SubwordsOf;
use kindred::question::{EncodedText, Notes, encode};
use serde::Serialize;
use serde_json::value::RawValue;

use super::search::Timed;
use super::suggestions;
use crate::http::ApiError;
use crate::http::offload::{check_deadline, stage};
use crate::http::parse::body::Received;
use crate::http::parse::embedding::{EmbedBody, read_text};
use crate::http::parse::limits::{MAX_VECTOR_COMPONENTS, at_most};
use crate::http::parse::negotiation::{self, Format};
use crate::http::render::server_timing::Timing;
use crate::http::render::size::Size;
use crate::http::render::{self, ItemAnswer, caching, table};
use crate::models::Call;
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
    used: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subwords: Option<&'a [SubwordsOf]>,
}

/// `POST /embed`
pub(in crate::http) async fn post_embed(call: Call, received: Received) -> Timed {
    let (cost, latest, same) = (received.cost(), received.latest(&call), call.clone());
    let encode_all = move |cancellation: &Cancellation| {
        let received = received.whole()?;
        let body = received.parse::<EmbedBody<'_>>()?;
        let deadline = same.deadline(body.timeout_ms)?;
        let cancellation = cancellation.at_most(deadline);
        let (texts, unknown) = body.check()?;
        same.log_queries(texts.len());
        let dim = same.model.dim();
        at_most(texts.len() * dim, MAX_VECTOR_COMPONENTS, |found| {
            format!("{} texts × {dim} components is {found}", texts.len())
        })?;
        let format = negotiation::json_or_npy(&received.headers)?;
        // Before any vector is there.
        let size = Size::of_vectors(texts.len(), dim);
        let room = size.room(&same)?;
        let mut results = Vec::with_capacity(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            check_deadline(&cancellation)?;
            results.push(encoded(&same, (index, text), unknown, format)?);
        }
        Ok((results, format, size, room, deadline, received.into_room()))
    };
    let encoded = stage(&call, cost, latest, encode_all).await;
    let (mut results, format, size, room, deadline, _room) =
        suggestions::with(&call, encoded).await?;
    let faults = results.iter_mut().filter_map(|result| result.as_mut().err());
    suggestions::fill_in(&call, faults).await;
    let (cost, same) = (size.cost(), call.clone());
    let write = move |_: &Cancellation| match format {
        Format::Npy => {
            let vectors = results.iter().flatten().map(|found| &found.vector[..]);
            Ok(table::vectors(same.pinned(), (results.len(), same.model.dim()), vectors, room))
        }
        Format::Json => Ok(in_json(&same, &results, room)),
    };
    Ok((stage(&call, cost, deadline, write).await?, Timing::default()))
}

/// A text as a vector, or its fault. In an array there is no place for one, which then is that of
/// the whole request.
fn encoded(
    call: &Call,
    (index, text): (usize, &RawValue),
    unknown: Option<kindred::Unknown>,
    format: Format,
) -> Result<Result<EncodedText, ApiError>, ApiError> {
    let found = read_text(index, text)
        .and_then(|text| encode(call.rows(), text, unknown).map_err(ApiError::from));
    match (found, format) {
        (Err(error), Format::Npy) => {
            let (list, item, error) = ("texts", "text", Box::new(error));
            Err(ApiError::InItem { list, item, index, error })
        }
        (found, _) => Ok(found),
    }
}

fn in_json(
    call: &Call,
    results: &[Result<EncodedText, ApiError>],
    room: Option<scheduler::account::Reservation>,
) -> Response {
    let rows = call.rows();
    let (model, version, position) = (call.name(), rows.version(), call.pinned().position());
    let results = results.iter().map(|result| match result {
        Ok(EncodedText { vector, notes: Notes { used, skipped, subwords } }) => {
            let used = used.iter().flatten().map(|&row| rows.word(row)).collect();
            let (skipped, subwords) = (skipped.as_deref(), subwords.as_deref());
            ItemAnswer::Found(Embedded { vector, used, skipped, subwords })
        }
        Err(error) => ItemAnswer::Failed { error: Cow::Borrowed(error) },
    });
    let results = results.collect();
    let body = render::bytes(&EmbedAnswer { model, version, position, results });
    caching::tagged(call.pinned(), Format::Json, body, room)
}

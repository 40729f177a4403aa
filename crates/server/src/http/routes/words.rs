//! `GET /words`: lists words of the model by their prefix, and describes one word.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::Response;
use kindred::contract::{Row, TableRows as _, score};
use kindred::question::unknown_words;
use kindred::rows::Rows;
use kindred::{SubwordsOf, vector_of_unknown};
use serde::Serialize;

use super::search::Answered;
use super::{last_part, suggestions};
use crate::http::offload::{Cost, offloaded, stage};
use crate::http::parse::negotiation::{self, Format};
use crate::http::parse::query_string::WordsRequest;
use crate::http::parse::{invalid, query_string};
use crate::http::render::size::{BYTES_PER_COMPONENT, Size, room_for};
use crate::http::render::{self, caching, table};
use crate::models::{Call, Pinned};
use crate::workers::Cancellation;
use scheduler::account::Reservation;

/// Maximum number of words that one answer lists.
pub const MAX_LISTED: usize = 1000;
/// Number of words that are listed by default.
const DEFAULT_LISTED: usize = 10;

/// Words with the same prefix.
#[derive(Serialize)]
struct Listed<'a> {
    model: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    words: Vec<ListedWord<'a>>,
}

#[derive(Serialize)]
struct ListedWord<'a> {
    word: &'a str,
    row: u32,
}

/// What is known about a word.
#[derive(Serialize)]
struct Described<'a> {
    model: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    word: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u32>,
    norm: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<&'a [f32]>,
    /// Of a word that is no row.
    #[serde(skip_serializing_if = "Option::is_none")]
    ngrams: Option<Vec<String>>,
    suggestions: Vec<String>,
}

/// A word with a vector.
struct Word<'a> {
    text: String,
    /// Of a word of the model.
    row: Option<u32>,
    vector: Cow<'a, [f32]>,
    norm: f64,
    /// Of a word that is no row.
    ngrams: Option<Vec<String>>,
}

impl Word<'static> {
    /// A word that has the vector of its subwords; the word if it has none.
    fn of_subwords(rows: &dyn Rows, text: String) -> Result<Self, String> {
        match vector_of_unknown(rows, &text) {
            Some((vector, SubwordsOf { ngrams, .. })) => {
                let norm = score::norm(&vector);
                Ok(Self { text, row: None, vector: vector.into(), norm, ngrams })
            }
            None => Err(text),
        }
    }
}

/// `GET /words`: a list, or one word
pub(super) async fn get_words(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    match query_string::words(uri.query().unwrap_or_default())? {
        WordsRequest::Prefix { prefix, limit } => {
            let limit = limit.unwrap_or(DEFAULT_LISTED);
            if !(1..=MAX_LISTED).contains(&limit) {
                return Err(invalid("limit").with_found(Some(limit.to_string())));
            }
            negotiation::check(&headers, &negotiation::JSON)?;
            if let Some(known) = caching::not_modified(&headers, call.pinned(), Format::Json) {
                return Ok(known);
            }
            let (same, deadline) = (call.clone(), call.deadline(None)?);
            let room = Size::of_rows(limit).room(&call)?;
            let cost = Cost::of_listing(call.rows().count());
            let search = move |_: &Cancellation| Ok(same.rows().with_prefix(&prefix, limit));
            let found = offloaded(&call, cost, deadline, search).await?;
            Ok(list(call.pinned(), &found, room))
        }
        WordsRequest::Word { word, with_vector } => {
            describe(&call, &headers, word, with_vector).await
        }
    }
}

/// `GET /words/{word}`
pub(super) async fn get_word(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    let with_vector = query_string::word_options(uri.query().unwrap_or_default())?;
    let word = last_part(&uri)?.into_owned();
    describe(&call, &headers, word, with_vector).await
}

fn list(asked: Pinned<'_>, found: &[Row], room: Option<Reservation>) -> Response {
    let rows = asked.rows();
    let listed = |&row: &Row| ListedWord { word: rows.word(row), row: rows.number(row) };
    let words = found.iter().map(listed).collect();
    let (model, version, position) = (asked.name(), rows.version(), asked.position());
    let listed = Listed { model, version, position, words };
    caching::tagged(asked, Format::Json, render::bytes(&listed), room)
}

async fn describe(call: &Call, headers: &HeaderMap, word: String, with_vector: bool) -> Answered {
    let (rows, table) = (call.rows(), call.rows().table());
    let found = match rows.row_of(&word) {
        Some(row) => {
            let (vector, norm) = (Cow::Borrowed(table.row(row)), table.norm(row));
            Ok(Word { text: word, row: Some(rows.number(row)), vector, norm, ngrams: None })
        }
        None => {
            let cost = Cost(word.len() as u64 * Cost::of_encoder(call));
            let (same, deadline) = (call.clone(), call.deadline(None)?);
            stage(call, cost, deadline, move |_| Ok(Word::of_subwords(same.rows(), word))).await?
        }
    };
    let word = match found {
        Ok(word) => word,
        Err(word) => {
            let mut error = unknown_words([word]).into();
            suggestions::fill_in(call, std::iter::once(&mut error)).await;
            return Err(error);
        }
    };
    let format = negotiation::json_or_npy(headers)?;
    let mut response = match (caching::not_modified(headers, call.pinned(), format), format) {
        (Some(known), _) => known,
        (None, Format::Npy) => {
            let room = room_for(call, size_of_val(&*word.vector) as u64)?;
            table::vector(call.pinned(), &word.vector, room)
        }
        (None, Format::Json) => describe_in_json(call, word, with_vector).await?,
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

async fn describe_in_json(call: &Call, word: Word<'_>, with_vector: bool) -> Answered {
    let Word { text, row, vector, norm, ngrams } = word;
    let suggestions = suggestions::of(call, vec![text.clone()]).await?.pop().unwrap_or_default();
    let described = Described {
        model: call.name(),
        version: call.rows().version(),
        position: call.pinned().position(),
        word: &text,
        row,
        norm,
        vector: with_vector.then_some(&*vector),
        ngrams,
        suggestions,
    };
    let components = if with_vector { vector.len() } else { 0 };
    let room = room_for(call, (components * BYTES_PER_COMPONENT) as u64)?;
    Ok(caching::tagged(call.pinned(), Format::Json, render::bytes(&described), room))
}

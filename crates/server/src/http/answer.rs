//! From hits to JSON, written straight into the body. By hand where answers come by the hundred thousand.

use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use contract::{Hit, Row};
use serde::Serialize;

use super::aside::goes_on;
use super::explain::{Explanation, placed};
use super::formula::Formula;
use super::size::{BYTES_PER_COMPONENT, BYTES_PER_NEIGHBOR, BYTES_PER_TERM};
use super::{ApiError, caching};
use crate::models::ServedModel;
use crate::workers::Patience;
use scheduler::account::Held;

/// What an answer says of the words that were asked for.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The words of a text that the model has.
    pub(super) used: Option<Vec<Row>>,
    /// The words that were left out, if words may be.
    pub(super) skipped: Option<Vec<String>>,
}

impl Notes {
    fn write(&self, body: &mut Vec<u8>, served: &ServedModel) {
        if let Some(used) = &self.used {
            body.extend_from_slice(b",\"used\":[");
            for (place, &row) in used.iter().enumerate() {
                if place > 0 {
                    body.push(b',');
                }
                served.words.write(body, &served.model, row);
            }
            body.push(b']');
        }
        if let Some(skipped) = &self.skipped {
            body.extend_from_slice(b",\"skipped\":");
            write(body, skipped);
        }
    }
}

/// Neighbours that are to be written.
pub(super) struct Neighbors<'a> {
    pub(super) served: &'a ServedModel,
    pub(super) hits: &'a [Hit],
    pub(super) with_vectors: bool,
    pub(super) notes: &'a Notes,
    pub(super) explanation: Option<&'a Explanation>,
}

impl Neighbors<'_> {
    /// About how long they will be.
    fn bytes(&self) -> usize {
        let components = if self.with_vectors { self.served.model.dim() } else { 0 };
        let terms = self.explanation.map_or(0, |e| e.formula.number_of_words());
        let bytes = BYTES_PER_NEIGHBOR + components * BYTES_PER_COMPONENT + terms * BYTES_PER_TERM;
        self.hits.len() * bytes
    }

    fn write(&self, body: &mut Vec<u8>) {
        let formula = self.explanation.map(|explanation| &explanation.formula);
        body.extend_from_slice(b"\"neighbors\":");
        write_hits(body, self.served, self.hits, self.with_vectors, formula);
        self.notes.write(body, self.served);
        if let Some(explanation) = self.explanation {
            body.extend_from_slice(b",\"inputs\":");
            write(body, &placed(&self.served.model, &explanation.inputs));
        }
    }
}

/// Words of which one is odd.
pub(super) struct OddOneOut<'a> {
    pub(super) served: &'a ServedModel,
    /// Not empty; the odd one is the last.
    pub(super) ranked: &'a [Hit],
    pub(super) notes: &'a Notes,
}

/// One item's answer in a batch, or its problem.
pub(super) enum ItemAnswer<'a> {
    Found(Neighbors<'a>),
    Failed(&'a ApiError),
}

/// The answer to a single query.
pub(super) fn single(neighbors: &Neighbors<'_>, room: Option<Held>) -> Response {
    let mut body = begin(neighbors.served, neighbors.bytes());
    neighbors.write(&mut body);
    body.push(b'}');
    caching::tagged(response(body, room), neighbors.served)
}

/// The answers to `queries`, in their order; about n bytes. A body that grew on its way would take twice what it
/// needs.
pub(super) fn many<'a>(
    served: &ServedModel,
    items: impl Iterator<Item = ItemAnswer<'a>>,
    bytes: usize,
    room: Option<Held>,
    patience: &Patience,
) -> Result<Response, ApiError> {
    let mut body = begin(served, bytes);
    body.extend_from_slice(b"\"results\":[");
    for (place, item) in items.enumerate() {
        goes_on(patience)?;
        body.extend_from_slice(if place == 0 { b"{" } else { b",{" });
        match item {
            ItemAnswer::Found(neighbors) => neighbors.write(&mut body),
            ItemAnswer::Failed(error) => {
                body.extend_from_slice(b"\"error\":");
                write(&mut body, error);
            }
        }
        body.push(b'}');
    }
    body.extend_from_slice(b"]}");
    Ok(caching::tagged(response(body, room), served))
}

/// The answer to which word is odd.
pub(super) fn odd_one_out(found: &OddOneOut<'_>) -> Response {
    let mut body = begin(found.served, found.ranked.len() * BYTES_PER_NEIGHBOR);
    if let Some(odd) = found.ranked.last() {
        body.extend_from_slice(b"\"odd_one_out\":");
        found.served.words.write(&mut body, &found.served.model, odd.row);
    }
    body.extend_from_slice(b",\"ranked\":");
    write_hits(&mut body, found.served, found.ranked, false, None);
    found.notes.write(&mut body, found.served);
    body.push(b'}');
    caching::tagged(response(body, None), found.served)
}

/// Any other body of JSON, a small one.
pub(super) fn json(answer: &impl Serialize) -> Response {
    json_in(answer, None)
}

/// Any other body of JSON, in memory that was counted for it.
pub(super) fn json_in(answer: &impl Serialize, room: Option<Held>) -> Response {
    response(bytes(answer), room)
}

/// As JSON.
pub(super) fn bytes(answer: &impl Serialize) -> Vec<u8> {
    let mut body = Vec::new();
    write(&mut body, answer);
    body
}

/// Until when an answer is of use: what its body said, for whoever goes on working on it.
#[derive(Clone)]
pub(super) struct Until(pub(super) Instant);

/// Marks answers whose memory is counted. All others of any size are counted by `front`.
#[derive(Clone)]
pub(super) struct IsCounted;

/// An answer that says how much memory it takes, until the last of it is sent.
struct Counted {
    body: Vec<u8>,
    _room: Held,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// Bytes whose memory is counted by this, as long as there are any of them.
pub(super) fn counted(mut body: Vec<u8>, mut room: Held) -> Bytes {
    if body.capacity() - body.len() > body.len() / 4 {
        body.shrink_to_fit();
    }
    room.set(body.capacity() as u64);
    Bytes::from_owner(Counted { body, _room: room })
}

#[inline]
fn write_hits(
    body: &mut Vec<u8>,
    served: &ServedModel,
    hits: &[Hit],
    with_vectors: bool,
    explained_by: Option<&Formula>,
) {
    let (model, table) = (&served.model, served.model.table());
    body.push(b'[');
    for (place, hit) in hits.iter().enumerate() {
        body.extend_from_slice(if place == 0 { b"{\"word\":" } else { b",{\"word\":" });
        served.words.write(body, model, hit.row);
        body.extend_from_slice(b",\"score\":");
        // The float64 itself, in its shortest form that reads back the same.
        body.extend_from_slice(zmij::Buffer::new().format_finite(hit.score).as_bytes());
        body.extend_from_slice(b",\"row\":");
        body.extend_from_slice(itoa::Buffer::new().format(hit.row.0).as_bytes());
        if with_vectors {
            body.extend_from_slice(b",\"vector\":");
            write(body, table.row(hit.row));
        }
        if let Some(formula) = explained_by {
            body.extend_from_slice(b",\"terms\":");
            write(body, &formula.terms(model, hit.row));
        }
        body.push(b'}');
    }
    body.push(b']');
}

fn begin(served: &ServedModel, bytes: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(64 + served.beginning.len() + bytes);
    body.extend_from_slice(&served.beginning);
    body
}

fn write(body: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(body, value).expect("texts and finite numbers become JSON");
}

pub(super) fn response(body: Vec<u8>, room: Option<Held>) -> Response {
    let is_counted = room.is_some();
    let body = match room {
        None => Body::from(body),
        Some(room) => counted(body, room).into(),
    };
    let mut response = Response::new(body);
    if is_counted {
        response.extensions_mut().insert(IsCounted);
    }
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model_store::ModelStore;
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn any_word_and_score_read_back_as_they_are() {
        let words = ["plain", "\"", "back\\slash", "käse", "\u{1}\u{7f}", "a/b", "\u{1F438}"];
        let rows = words.map(|word| (word, &[1.5f32, -0.5][..]));
        let served = crate::models::for_tests(ModelStore::from_rows("m\"", 2, rows).unwrap());
        let scores = [1.0, -1.0, 0.0, 0.1 + 0.2, 5e-324, 1.0 / 3.0, -1e-7];
        let hits: Vec<Hit> =
            scores.into_iter().zip(0..).map(|(score, row)| Hit { row: Row(row), score }).collect();
        let notes = Notes::default();
        for with_vectors in [false, true] {
            let neighbors = |hits| Neighbors {
                served: &served,
                hits,
                with_vectors,
                notes: &notes,
                explanation: None,
            };
            let expected: Vec<Value> = hits
                .iter()
                .zip(words)
                .map(|(hit, word)| {
                    let mut one = json!({"word": word, "score": hit.score, "row": hit.row.0});
                    if with_vectors {
                        one["vector"] = json!([1.5, -0.5]);
                    }
                    one
                })
                .collect();
            let read = async |response: Response| -> Value {
                let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
                serde_json::from_slice(&body).unwrap()
            };
            let one = read(single(&neighbors(&hits), None)).await;
            let version = served.model.version();
            assert_eq!(one, json!({"model": "m\"", "version": version, "neighbors": expected}));
            let error = ApiError::Internal;
            let failed = || ItemAnswer::Failed(&error);
            let items = [0, 1, 2].into_iter().map(|place| match place {
                0 => ItemAnswer::Found(neighbors(&hits)),
                1 => failed(),
                _ => ItemAnswer::Found(neighbors(&[])),
            });
            let patience = Patience::until(Instant::now() + Duration::from_secs(60));
            let many = read(many(&served, items, 0, None, &patience).unwrap()).await;
            let results = json!([{"neighbors": expected}, {"error": serde_json::to_value(&error).unwrap()}, {"neighbors": []}]);
            assert_eq!(many, json!({"model": "m\"", "version": version, "results": results}));
        }
    }
}

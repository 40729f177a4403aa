//! From hits to JSON, written straight into the body.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use model_store::{Hit, ModelStore};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The answer to a single query.
#[derive(Serialize)]
pub(super) struct SingleAnswer<'a> {
    pub(super) model: &'a str,
    pub(super) neighbors: Neighbors<'a>,
}

/// The answers to `queries`, in their order.
#[derive(Serialize)]
pub(super) struct BatchAnswer<'a> {
    pub(super) model: &'a str,
    pub(super) results: Vec<ItemAnswer<'a>>,
}

/// One item's answer, or its problem.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ItemAnswer<'a> {
    Found { neighbors: Neighbors<'a> },
    Failed { error: Value },
}

/// A list of neighbours.
pub(super) struct Neighbors<'a> {
    pub(super) store: &'a ModelStore,
    pub(super) hits: &'a [Hit],
    pub(super) with_vectors: bool,
}

#[derive(Serialize)]
struct Neighbor<'a> {
    word: &'a str,
    /// The float64 itself, in its shortest form that reads back the same.
    score: f64,
    row: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<&'a [f32]>,
}

impl Serialize for Neighbors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = self.store.table();
        serializer.collect_seq(self.hits.iter().map(|hit| Neighbor {
            word: self.store.words().word(hit.row),
            score: hit.score,
            row: hit.row.0,
            vector: self.with_vectors.then(|| table.row(hit.row)),
        }))
    }
}

/// A body of JSON.
pub(super) fn json(answer: &impl Serialize) -> Response {
    let body = serde_json::to_vec(answer).expect("texts and finite numbers become JSON");
    let mut response = body.into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

//! Neighbours as JSON, written by hand, because this is on the hot path.

use axum::response::Response;
use kindred::contract::{Row, TableRows as _};
use kindred::question::{Notes, OddOneOut, placed};
use kindred::rows::Rows;
use kindred::search::SearchResult;
use serde::Serialize;

use super::size::{BYTES_PER_NEIGHBOR, BYTES_PER_TERM, size_of_parts};
use super::write;
use crate::http::ApiError;
use crate::http::offload::check_deadline;
use crate::http::parse::negotiation::Format;
use crate::http::render::caching;
use crate::models::Pinned;
use crate::workers::Cancellation;
use scheduler::account::Reservation;

/// The answer to a single query.
pub(in crate::http) fn single(
    asked: Pinned<'_>,
    found: &SearchResult,
    room: Option<Reservation>,
) -> Response {
    let terms = found.explanation.as_ref().map_or(0, |e| e.formula.number_of_words());
    let (_, of_parts) = size_of_parts(asked, &found.included);
    let bytes = BYTES_PER_NEIGHBOR + of_parts + terms * BYTES_PER_TERM;
    let mut body = asked.begin(found.hits.len() * bytes);
    write_neighbors(&mut body, asked, found);
    body.push(b'}');
    caching::tagged(asked, Format::Json, body, room)
}

/// The answers to `queries`, in their order. `bytes` is about their size: a body that grows while
/// it is written would take twice the memory it needs.
pub(in crate::http) fn many<'a>(
    asked: Pinned<'_>,
    items: impl Iterator<Item = Result<&'a SearchResult, &'a ApiError>>,
    bytes: usize,
    room: Option<Reservation>,
    cancellation: &Cancellation,
) -> Result<Response, ApiError> {
    let mut body = asked.begin(bytes);
    body.extend_from_slice(b"\"results\":[");
    for (index, item) in items.enumerate() {
        check_deadline(cancellation)?;
        body.extend_from_slice(if index == 0 { b"{" } else { b",{" });
        match item {
            Ok(found) => write_neighbors(&mut body, asked, found),
            Err(error) => {
                body.extend_from_slice(b"\"error\":");
                write(&mut body, error);
            }
        }
        body.push(b'}');
    }
    body.extend_from_slice(b"]}");
    Ok(caching::tagged(asked, Format::Json, body, room))
}

/// A word that was compared.
#[derive(Serialize)]
struct RankedWord<'a> {
    word: &'a str,
    score: f64,
    /// Of a word of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u32>,
}

/// The answer to `/odd-one-out`.
pub(in crate::http) fn odd_one_out(asked: Pinned<'_>, found: &OddOneOut) -> Response {
    let mut body = asked.begin(found.ranked.len() * BYTES_PER_NEIGHBOR);
    let rows = asked.rows();
    let ranked: Vec<RankedWord<'_>> = found
        .ranked
        .iter()
        .map(|hit| RankedWord {
            word: found.word(rows, hit.row),
            score: hit.score,
            row: (!found.is_added(hit.row)).then(|| rows.number(hit.row)),
        })
        .collect();
    if let Some(odd) = ranked.last() {
        body.extend_from_slice(b"\"odd_one_out\":");
        write(&mut body, odd.word);
    }
    body.extend_from_slice(b",\"ranked\":");
    write(&mut body, &ranked);
    write_notes(&mut body, &found.notes, asked);
    body.push(b'}');
    caching::tagged(asked, Format::Json, body, None)
}

fn write_neighbors(body: &mut Vec<u8>, asked: Pinned<'_>, found: &SearchResult) {
    body.extend_from_slice(b"\"neighbors\":");
    write_hits(body, asked, found);
    write_notes(body, &found.notes, asked);
    if let Some(explanation) = &found.explanation {
        body.extend_from_slice(b",\"inputs\":");
        write(body, &placed(asked.rows(), &explanation.inputs));
    }
}

/// Writes which of the requested words were used, which were skipped, and which have the vectors of
/// their subwords; and how many tokens the text had.
fn write_notes(body: &mut Vec<u8>, notes: &Notes, asked: Pinned<'_>) {
    if let Some(used) = &notes.used {
        body.extend_from_slice(b",\"used\":[");
        for (index, &row) in used.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            write_word(body, asked, row);
        }
        body.push(b']');
    }
    if let Some(skipped) = &notes.skipped {
        body.extend_from_slice(b",\"skipped\":");
        write(body, skipped);
    }
    if let Some(subwords) = &notes.subwords {
        body.extend_from_slice(b",\"subwords\":");
        write(body, subwords);
    }
    if let Some(tokens) = &notes.tokens {
        body.extend_from_slice(b",\"tokens\":");
        write(body, tokens);
    }
}

#[inline]
fn write_hits(body: &mut Vec<u8>, asked: Pinned<'_>, found: &SearchResult) {
    let SearchResult { hits, included, explanation, .. } = found;
    let rows = asked.rows();
    let table = rows.table();
    body.push(b'[');
    for (index, hit) in hits.iter().enumerate() {
        body.extend_from_slice(if index == 0 { b"{\"word\":" } else { b",{\"word\":" });
        write_word(body, asked, hit.row);
        body.extend_from_slice(b",\"score\":");
        // The exact float64, in the shortest form that reads back as the same value.
        body.extend_from_slice(zmij::Buffer::new().format_finite(hit.score).as_bytes());
        body.extend_from_slice(b",\"row\":");
        body.extend_from_slice(itoa::Buffer::new().format(rows.number(hit.row)).as_bytes());
        if included.vectors {
            body.extend_from_slice(b",\"vector\":");
            write(body, table.row(hit.row));
        }
        if let Some(column) = included.text {
            body.extend_from_slice(b",\"text\":");
            write(body, &rows.value(hit.row, usize::from(column)));
        }
        if let Some(columns) = &included.attributes {
            write_attributes(body, rows, hit.row, columns);
        }
        if let Some(explanation) = explanation {
            body.extend_from_slice(b",\"terms\":");
            write(body, &explanation.terms(rows, hit.row));
        }
        body.push(b'}');
    }
    body.push(b']');
}

/// Appends some attributes of a row, by their columns; null where a value is missing.
fn write_attributes(body: &mut Vec<u8>, rows: &dyn Rows, row: Row, columns: &[usize]) {
    let all = rows.columns();
    body.extend_from_slice(b",\"attributes\":{");
    for (index, &column) in columns.iter().filter(|&&column| column < all.len()).enumerate() {
        if index > 0 {
            body.push(b',');
        }
        write(body, all[column].name());
        body.push(b':');
        write(body, &rows.value(row, column));
    }
    body.push(b'}');
}

/// Appends the word of a row, in quotes. Nearly all words are written as their own bytes.
#[inline]
fn write_word(body: &mut Vec<u8>, asked: Pinned<'_>, row: Row) {
    let word = asked.word(row);
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // No early exit, so that the compiler can vectorise it.
    if word.iter().fold(false, |any, &byte| any | is_escaped(byte)) {
        return write(body, asked.rows().word(row));
    }
    body.push(b'"');
    body.extend_from_slice(word);
    body.push(b'"');
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use kindred::ModelStore;
    use kindred::contract::Hit;
    use kindred::question::Included;
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
        for with_vectors in [false, true] {
            let found = |hits| SearchResult {
                hits,
                included: Included { vectors: with_vectors, ..Included::default() },
                notes: Notes::default(),
                explanation: None,
            };
            let (all, none) = (found(hits.clone()), found(Vec::new()));
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
            let one = read(single(served.pinned(), &all, None)).await;
            let version = served.model.version();
            assert_eq!(one, json!({"model": "m\"", "version": version, "neighbors": expected}));
            let error = ApiError::Internal;
            let items = [Ok(&all), Err(&error), Ok(&none)].into_iter();
            let cancellation = Cancellation::until(Instant::now() + Duration::from_secs(60));
            let many = read(many(served.pinned(), items, 0, None, &cancellation).unwrap()).await;
            let results = json!([{"neighbors": expected}, {"error": serde_json::to_value(&error).unwrap()}, {"neighbors": []}]);
            assert_eq!(many, json!({"model": "m\"", "version": version, "results": results}));
        }
    }
}

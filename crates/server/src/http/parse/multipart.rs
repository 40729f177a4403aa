//! Bodies of several parts (RFC 7578): rows as JSON lines, and beside them their vectors as an array
//! in NumPy's format, which takes a third of the bytes and no time to parse; and keys to delete with
//! them.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use kindred::answering::wait_at_most;
use multer::{Field, Multipart};

use crate::http::ApiError;

/// All of it is in memory, so nothing is waited for.
const LONGEST: Duration = Duration::from_secs(60);

/// The parts of a batch of rows.
#[derive(Debug)]
pub(in crate::http) struct RowParts {
    /// JSON lines, a row on each, without its vector.
    pub(in crate::http) rows: Bytes,
    /// An array `[rows, dim]`.
    pub(in crate::http) vectors: Bytes,
    /// A list of keys in JSON.
    pub(in crate::http) delete: Option<Bytes>,
}

/// The boundary of a body that is declared to have several parts.
pub(in crate::http) fn boundary(headers: &HeaderMap) -> Option<String> {
    let declared = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    multer::parse_boundary(declared).ok()
}

/// Takes a body apart: each of its parts is there once, in any order; `delete` may be absent.
pub(in crate::http) fn rows(body: Bytes, boundary: String) -> Result<RowParts, ApiError> {
    let reading = read(Multipart::new(Body::from(body).into_data_stream(), boundary));
    wait_at_most(LONGEST, reading).unwrap_or(Err(ApiError::DeadlinePassed))
}

async fn read(mut parts: Multipart<'static>) -> Result<RowParts, ApiError> {
    let broken = |why: multer::Error| {
        ApiError::invalid_request(format!("the body can't be taken apart: {why}"))
    };
    let (mut rows, mut vectors, mut delete) = (None, None, None);
    while let Some(part) = parts.next_field().await.map_err(broken)? {
        let place = match part.name() {
            Some("rows") => &mut rows,
            Some("vectors") => &mut vectors,
            Some("delete") => &mut delete,
            other => {
                let name = kindred::cut(other.unwrap_or("").to_owned());
                let reason = format!(
                    "the body has a part `{name}`; its parts are `rows`, JSON lines without vectors, \
                     `vectors`, a NumPy file (curl: -F rows=@rows.jsonl -F vectors=@vectors.npy) and, \
                     if you like, `delete`, a list of keys in JSON"
                );
                return Err(ApiError::invalid_request(reason));
            }
        };
        let name = part.name().unwrap_or_default().to_owned();
        let bytes = content(part).await.map_err(broken)?;
        if place.replace(bytes).is_some() {
            return Err(ApiError::invalid_request(format!("the body has the part `{name}` twice")));
        }
    }
    let missing = |name: &str| {
        ApiError::invalid_request(format!(
            "the body has no part `{name}`; it has `rows` and `vectors`"
        ))
    };
    let rows = rows.ok_or_else(|| missing("rows"))?;
    Ok(RowParts { rows, vectors: vectors.ok_or_else(|| missing("vectors"))?, delete })
}

/// The content of a part. Mostly it is one piece, which is not copied.
async fn content(mut part: Field<'static>) -> Result<Bytes, multer::Error> {
    let Some(first) = part.chunk().await? else { return Ok(Bytes::new()) };
    let Some(second) = part.chunk().await? else { return Ok(first) };
    let mut all = [first, second].concat();
    while let Some(more) = part.chunk().await? {
        all.extend_from_slice(&more);
    }
    Ok(all.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(body: &str) -> Result<(Bytes, Bytes), String> {
        let body = Bytes::from(body.replace('\n', "\r\n"));
        let parts = rows(body, "x".to_owned()).map_err(|error| error.to_string())?;
        Ok((parts.rows, parts.vectors))
    }

    fn part(name: &str, content: &str) -> String {
        format!("--x\nContent-Disposition: form-data; name=\"{name}\"\n\n{content}\n")
    }

    #[test]
    fn both_parts_are_there_once_in_any_order() {
        let (a, b) = (part("rows", "{}"), part("vectors", "[]"));
        let expected = (Bytes::from("{}"), Bytes::from("[]"));
        assert_eq!(parts(&format!("{a}{b}--x--\n")), Ok(expected.clone()));
        assert_eq!(parts(&format!("{b}{a}--x--\n")), Ok(expected));
        for (body, said) in [
            (format!("{a}--x--\n"), "no part `vectors`"),
            (format!("{b}--x--\n"), "no part `rows`"),
            (format!("{a}{a}{b}--x--\n"), "the part `rows` twice"),
            (format!("{a}{}--x--\n", part("row", "1")), "a part `row`"),
            (format!("{a}{b}"), "can't be taken apart"),
            ("--x".to_owned(), "can't be taken apart"),
            (String::new(), "can't be taken apart"),
        ] {
            let error = parts(&body).unwrap_err();
            assert!(error.contains(said), "{body}: {error}");
        }
    }
}

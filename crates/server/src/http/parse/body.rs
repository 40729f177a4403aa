//! Bodies: receives them, and says what reading them costs.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, Uri, header};
use kindred::filters::MAX_TESTS;
use memchr::memmem;

use super::arrays::Array;
use super::json::{self, JsonBody};
use super::limits::MAX_QUERIES;
use super::multipart::{self, RowParts};
use super::{negotiation, query_string};
use crate::http::ApiError;
use crate::http::offload::Cost;
use crate::models::Call;
use scheduler::account::{Pool, Reservation};

/// Bodies of up to this many bytes are not counted: they take no more memory than a connection's
/// own buffers.
pub(in crate::http) const UNCOUNTED_BODY: usize = 4 << 10;

/// Maximum memory of a request for each byte of its body, while it is parsed, looked up and made
/// into queries. `BYTES_BESIDES` is the maximum for everything else. Lists are bounded
/// ([`AtMost`](super::at_most::AtMost)), so most of the memory is for copies of the body's texts,
/// and for numbers that take eight bytes but were written in two.
pub(in crate::http) const BYTES_PER_BYTE: u64 = 6;
const BYTES_BESIDES: u64 = 64 << 10;

/// The same of an array's bytes: as they arrived, and joined. What is made of them is counted when
/// it is known ([`Received::count`]).
const BYTES_PER_ARRAY_BYTE: u64 = 2;

/// A body of several parts that is longer is taken for an array, and for JSON of this cost.
const LONG_PARTS: usize = 64 << 10;
const NANOSECONDS_PER_BYTE_OF_PARTS: u64 = 6;

/// The largest body that can be valid, in bytes. An array takes less than JSON.
fn body_limit(call: &Call) -> usize {
    /// A component in JSON: sign, 17 digits, point, exponent, comma, space.
    const BYTES_PER_COMPONENT: usize = 27;
    /// Everything else in a body: words, options and excluded words.
    const REST: usize = 4 << 20;
    let dim = if call.has_model() { call.model.dim() } else { 0 };
    REST + dim * MAX_QUERIES * BYTES_PER_COMPONENT
}

/// A POST request that has arrived completely, with a query string that can be decoded; or a GET
/// request to a route that also has a POST.
pub(in crate::http) struct Received {
    pub(in crate::http) headers: HeaderMap,
    uri: Uri,
    pieces: Vec<Bytes>,
    /// The memory that is counted for it.
    room: Option<Reservation>,
    /// Whether it is declared as an array ([`negotiation::NPY`]). Then its options are in the query
    /// string.
    pub(in crate::http) is_array: bool,
    /// Whether it is a GET: everything is in the query string.
    pub(in crate::http) is_get: bool,
    /// Rows and dimensions of the model that it is for.
    shape: (usize, usize),
    /// What a byte of the body may cost if words are made of their subwords, in ns.
    subwords: u64,
}

/// Receives a body. Memory is counted as the body arrives, not as its length is declared. So a
/// client that declares much and sends little does not block others.
async fn arrive(
    call: &Call,
    mut body: Body,
    limit: usize,
) -> Result<(Vec<Bytes>, Option<Reservation>), ApiError> {
    /// A smaller piece is appended to the piece before it, because on its own it would take more
    /// memory than its bytes.
    const SMALL_PIECE: usize = 4 << 10;
    /// Memory is counted in steps of this many bytes.
    const STEP: usize = 64 << 10;
    let (mut length, mut room) = (0, None::<Reservation>);
    let (mut pieces, mut small): (Vec<Bytes>, Vec<u8>) = (Vec::new(), Vec::new());
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(piece) = frame.map_err(|_| ApiError::UnreadableBody)?.into_data() else { continue };
        length += piece.len();
        if length > limit {
            return Err(ApiError::BodyTooLarge { limit });
        }
        if length > UNCOUNTED_BODY {
            let bytes = length.next_multiple_of(STEP) as u64;
            match &mut room {
                Some(room) => room.grow(bytes)?,
                None => {
                    let memory = &call.service().memory;
                    room = Some(memory.take(&call.account, Pool::Requests, bytes)?);
                }
            }
        }
        let is_small = piece.len() < SMALL_PIECE && small.len() < STEP;
        if is_small && (!pieces.is_empty() || !small.is_empty()) {
            small.extend_from_slice(&piece);
        } else {
            if !small.is_empty() {
                pieces.push(std::mem::take(&mut small).into());
            }
            pieces.push(piece);
        }
    }
    if !small.is_empty() {
        pieces.push(small.into());
    }
    Ok((pieces, room))
}

impl Received {
    /// Receives the body of a request. One whose declared length is too large is refused before any
    /// of it is read.
    pub(in crate::http) async fn receive(call: &Call, request: Request) -> Result<Self, ApiError> {
        let (limit, body_read_timeout) = (body_limit(call), call.service().timeouts.body_read);
        let (head, body) = request.into_parts();
        let declared = head.headers.get(header::CONTENT_LENGTH).and_then(|n| n.to_str().ok());
        if declared.and_then(|n| n.parse().ok()).is_some_and(|n: u64| n > limit as u64) {
            return Err(ApiError::BodyTooLarge { limit });
        }
        if let Some(found) = negotiation::coding(&head.headers) {
            return Err(ApiError::EncodedBody { found });
        }
        let (within, latest) = (Instant::now() + body_read_timeout, call.latest());
        let until = within.min(latest).into();
        let arrives = tokio::time::timeout_at(until, arrive(call, body, limit)).await;
        query_string::Parameters::decode(head.uri.query().unwrap_or_default())?;
        let late = |_| match latest < within {
            true => ApiError::DeadlinePassed,
            false => ApiError::BodyTimeout { limit: body_read_timeout },
        };
        let (pieces, room) = arrives.map_err(late)??;
        let (is_array, shape) = (negotiation::is_npy(&head.headers), shape(call));
        let subwords = Cost::of_encoder(call);
        let (headers, uri) = (head.headers, head.uri);
        Ok(Self { headers, uri, pieces, room, is_array, is_get: false, shape, subwords })
    }

    /// A GET request. Memory for its query string is counted already, if that is long.
    pub(in crate::http) fn of_get(call: &Call, headers: HeaderMap, uri: Uri) -> Self {
        let (pieces, room, shape) = (Vec::new(), None, shape(call));
        let subwords = Cost::of_encoder(call);
        Self { headers, uri, pieces, room, is_array: false, is_get: true, shape, subwords }
    }

    /// The query string, still encoded.
    pub(in crate::http) fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }

    /// The cost of parsing the body, looking up its words, and making the sets of its filters.
    pub(in crate::http) fn cost(&self) -> Cost {
        let ((rows, dim), query) = (self.shape, self.query().as_bytes());
        let of_filters = || Cost::of_filters(tests(query, b"filter="), rows);
        if self.is_array {
            return Cost::of_array(self.length(), dim, query).and(of_filters());
        }
        // Of a long body of several parts, most is an array, too: no text that is worth looking at.
        if self.length() > LONG_PARTS && multipart::boundary(&self.headers).is_some() {
            let of_rest = Cost(self.length() as u64 * NANOSECONDS_PER_BYTE_OF_PARTS);
            return Cost::of_array(self.length(), dim, query).and(of_filters()).and(of_rest);
        }
        if self.is_get {
            let of_words = Cost(query.len() as u64 * self.subwords);
            return Cost::of_query_string(query).and(of_filters()).and(of_words);
        }
        let tests = self.pieces.iter().map(|piece| tests(piece, b"\"filter\"")).sum();
        let of_text = Cost::of_text(self.pieces.iter().map(|piece| &piece[..]));
        let of_words = Cost(self.length() as u64 * self.subwords);
        of_text.and(Cost::of_filters(tests, rows)).and(of_words)
    }

    /// The request's deadline, as far as it is known before the body is parsed. Parsing may wait
    /// for a thread, and the request's `timeout_ms` counts during that wait.
    pub(in crate::http) fn latest(&self, call: &Call) -> Instant {
        let named = match self.is_array || self.is_get {
            true => query_string::named_timeout(self.query()),
            false => self.pieces.iter().find_map(|piece| named_timeout(piece)),
        };
        let named = named.and_then(|ms| call.arrived.checked_add(Duration::from_millis(ms)));
        named.map_or(call.latest(), |named| named.min(call.latest()))
    }

    /// Joins the body's pieces into one, and counts the memory for everything that is made from it.
    pub(in crate::http) fn whole(mut self) -> Result<Self, ApiError> {
        let per_byte = if self.is_array { BYTES_PER_ARRAY_BYTE } else { BYTES_PER_BYTE };
        let bytes = self.length() as u64 * per_byte + BYTES_BESIDES;
        if let Some(room) = &mut self.room {
            room.grow(bytes)?;
        }
        if self.pieces.len() > 1 {
            self.pieces = vec![self.pieces.concat().into()];
        }
        Ok(self)
    }

    fn length(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether its path has the name of a model.
    pub(in crate::http) fn names_a_model(&self) -> bool {
        self.uri.path().starts_with("/models/")
    }

    /// The body, which must be in one piece.
    pub(super) fn bytes(&self) -> &[u8] {
        self.pieces.first().map_or(&[], |body| &body[..])
    }

    /// Counts memory for n bytes that are made from an array, besides the array itself.
    pub(in crate::http) fn count(&mut self, call: &Call, bytes: u64) -> Result<(), ApiError> {
        let bytes = bytes + self.length() as u64 * BYTES_PER_ARRAY_BYTE + BYTES_BESIDES;
        match &mut self.room {
            Some(room) => room.grow(bytes)?,
            None if bytes <= 2 * BYTES_BESIDES => {}
            None => {
                let memory = &call.service().memory;
                self.room = Some(memory.take(&call.account, Pool::Requests, bytes)?);
            }
        }
        Ok(())
    }

    /// Reads the body, which must be in one piece, as an array.
    pub(in crate::http) fn array(&self) -> Result<Array<'_>, ApiError> {
        Array::read(self.bytes())
    }

    /// The text of the body, which must be in one piece, if it is declared as JSON lines.
    pub(in crate::http) fn json_lines(&self) -> Result<Option<&str>, ApiError> {
        if !negotiation::is_json_lines(&self.headers) {
            return Ok(None);
        }
        let text = std::str::from_utf8(self.bytes());
        let text = text.map_err(|_| ApiError::NotUtf8 { what: "the body".to_owned() })?;
        // Some programs put a byte order mark before UTF-8.
        Ok(Some(text.strip_prefix('\u{feff}').unwrap_or(text)))
    }

    /// The rows and vectors of the body, which must be in one piece, if it is declared to have
    /// several parts.
    pub(in crate::http) fn row_parts(&self) -> Result<Option<RowParts>, ApiError> {
        let Some(boundary) = multipart::boundary(&self.headers) else { return Ok(None) };
        let body = self.pieces.first().cloned().unwrap_or_default();
        multipart::rows(body, boundary).map(Some)
    }

    /// Parses the body, which must be in one piece, and refuses any query parameter. Faults are
    /// found in the documented order.
    pub(in crate::http) fn parse<'a, B: JsonBody<'a>>(&'a self) -> Result<B, ApiError> {
        if self.is_array {
            // An array is never JSON, so this is what is wrong with it.
            return Err(json::unsupported(&self.headers));
        }
        let asked = json::parse(&self.headers, self.bytes())?;
        query_string::nothing_beside_json(self.query())?;
        Ok(asked)
    }

    /// The memory that was counted for it. Keep it as long as what was made from the body.
    pub(in crate::http) fn into_room(self) -> Option<Reservation> {
        self.room
    }
}

/// Rows and dimensions of the model of a call. There may be more rows among which its filters
/// choose: a head may have the terms of another folder.
fn shape(call: &Call) -> (usize, usize) {
    if !call.has_model() {
        return (0, 0);
    }
    let heads = call.heads.load();
    let of_terms = heads.iter().filter_map(|one| one.head.terms_folder()).map(|terms| terms.rows());
    (of_terms.fold(call.rows().count(), usize::max), call.model.dim())
}

/// About how many tests the filters of a body or of a query string have. `name` is what stands
/// before each filter.
fn tests(text: &[u8], name: &[u8]) -> usize {
    /// Bytes of a short test, with the word that joins it to the next.
    const BYTES_PER_TEST: usize = 12;
    match memmem::find_iter(text, name).count() {
        0 => 0,
        filters => (filters + text.len() / BYTES_PER_TEST).min(filters * MAX_TESTS),
    }
}

/// The number of milliseconds after `"timeout_ms":`, if these bytes contain that. It can only be
/// the field: inside a string its quotes would be escaped, and only the outermost object has such a
/// field.
fn named_timeout(json: &[u8]) -> Option<u64> {
    let name = b"\"timeout_ms\"";
    let rest = &json[memmem::find(json, name)? + name.len()..];
    let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_filters_are_estimated_from_their_length() {
        let of = |body: &str| tests(body.as_bytes(), b"\"filter\"");
        assert_eq!(of("{\"word\": \"filter\", \"text\": \"a filter\"}"), 4);
        assert_eq!(of(&format!("{{\"words\": [{}]}}", "\"a\",".repeat(1000))), 0);
        let filter = |tests: usize| vec!["price < 80"; tests].join(" AND ");
        for count in [1, 2, 10, 100] {
            let about = of(&format!("{{\"word\": \"a\", \"filter\": \"{}\"}}", filter(count)));
            assert!((count..2 * count + 4).contains(&about), "{about} for {count}");
        }
        assert_eq!(of(&format!("{{\"filter\": \"{}\"}}", filter(5000))), MAX_TESTS);
    }

    #[test]
    fn a_time_out_is_seen_before_the_body_is_parsed_and_nothing_is_taken_for_one() {
        for (body, found) in [
            ("{\"queries\":[],\"timeout_ms\":20}", Some(20)),
            ("{\"timeout_ms\" :\n 7 , \"k\": 1}", Some(7)),
            ("{\"word\":\"timeout_ms\"}", None),
            ("{\"words\":[\"timeout_ms\", 5]}", None),
            ("{\"text\":\"\\\"timeout_ms\\\": 5\"}", None),
            ("{\"timeout_ms\":\"5\"}", None),
            ("{\"timeout_ms\":99999999999999999999}", None),
            ("{\"timeout_ms\":", None),
            ("", None),
        ] {
            assert_eq!(named_timeout(body.as_bytes()), found, "{body}");
        }
    }
}

//! Bodies: receives them, parses JSON into fields, and finds the error that says what is wrong with
//! them.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, Uri, header};
use mediatype::names;
use memchr::memmem;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use super::arrays::Array;
use super::limits::MAX_QUERIES;
use super::targets::WeightedWord;
use super::{invalid, negotiation, query_string};
use crate::http::ApiError;
use crate::http::offload::Cost;
use crate::models::{Call, ServedModel};
use kindred::text::cut;
use kindred::{Error, expression};
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

/// The largest body that can be valid, in bytes. An array takes less than JSON.
fn body_limit(served: &ServedModel) -> usize {
    /// A component in JSON: sign, 17 digits, point, exponent, comma, space.
    const BYTES_PER_COMPONENT: usize = 27;
    /// Everything else in a body: words, options and excluded words.
    const REST: usize = 4 << 20;
    REST + served.model().dim() * MAX_QUERIES * BYTES_PER_COMPONENT
}

/// A POST request that has arrived completely, with a query string that can be decoded.
pub(in crate::http) struct Received {
    pub(in crate::http) headers: HeaderMap,
    uri: Uri,
    pieces: Vec<Bytes>,
    /// The memory that is counted for it.
    room: Option<Reservation>,
    /// Whether it is declared as an array ([`negotiation::NPY`]).
    is_array: bool,
    /// Dimensions of the model that it is for.
    dim: usize,
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
                    room = Some(memory.take(call.account(), Pool::Requests, bytes)?);
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
        let (within, latest) = (Instant::now() + body_read_timeout, call.latest());
        let until = within.min(latest).into();
        let arrives = tokio::time::timeout_at(until, arrive(call, body, limit)).await;
        query_string::check_encoding(head.uri.query().unwrap_or_default())?;
        let late = |_| match latest < within {
            true => ApiError::DeadlinePassed,
            false => ApiError::BodyTimeout { limit: body_read_timeout },
        };
        let (pieces, room) = arrives.map_err(late)??;
        let (is_array, dim) = (negotiation::is_npy(&head.headers), call.model.dim());
        Ok(Self { headers: head.headers, uri: head.uri, pieces, room, is_array, dim })
    }

    /// Whether the body is declared as an array. Then its options are in the query string.
    pub(in crate::http) fn is_array(&self) -> bool {
        self.is_array
    }

    /// The query string, still encoded.
    pub(in crate::http) fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }

    /// The cost of parsing the body and looking up its words.
    pub(in crate::http) fn cost(&self) -> Cost {
        if self.is_array {
            return Cost::of_array(self.length(), self.dim, self.query().as_bytes());
        }
        Cost::of_text(self.pieces.iter().map(|piece| &piece[..]))
    }

    /// The request's deadline, as far as it is known before the body is parsed. Parsing may wait
    /// for a thread, and the request's `timeout_ms` counts during that wait.
    pub(in crate::http) fn latest(&self, call: &Call) -> Instant {
        let named = match self.is_array {
            true => query_string::named_timeout(self.query()),
            false => self.pieces.iter().find_map(|piece| named_timeout(piece)),
        };
        let named = named.and_then(|ms| call.arrived().checked_add(Duration::from_millis(ms)));
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

    /// The body, which must be in one piece.
    fn bytes(&self) -> &[u8] {
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
                self.room = Some(memory.take(call.account(), Pool::Requests, bytes)?);
            }
        }
        Ok(())
    }

    /// Reads the body, which must be in one piece, as an array.
    pub(in crate::http) fn array(&self) -> Result<Array<'_>, ApiError> {
        Array::read(self.bytes())
    }

    /// Parses the body, which must be in one piece, and refuses any query parameter. Faults are
    /// found in the documented order.
    pub(in crate::http) fn parse<'a, B: JsonBody<'a>>(&'a self) -> Result<B, ApiError> {
        if self.is_array {
            // An array is never JSON, so this is what is wrong with it.
            return Err(unsupported(&self.headers));
        }
        let asked = parse(&self.headers, self.bytes())?;
        query_string::nothing(self.query())?;
        Ok(asked)
    }

    /// The memory that was counted for it. Keep it as long as what was made from the body.
    pub(in crate::http) fn into_room(self) -> Option<Reservation> {
        self.room
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

/// The JSON body of a route, as [`json_body!`] defines it.
pub(in crate::http) trait JsonBody<'a>: Deserialize<'a> {
    /// The names of its fields.
    const FIELDS: &'static [&'static str];

    /// The expression at its top level, which must follow the grammar.
    fn expression(&self) -> Option<&str> {
        None
    }
}

/// Defines a JSON body. Each of its fields may be absent, but must not be null, and it has no
/// others. What follows the fields belongs to its [`JsonBody`].
macro_rules! json_body {
    (
        $(#[$meta:meta])* $name:ident $(<$life:lifetime>)? {
            $($(#[$attribute:meta])* $field:ident: $type:ty),+ $(,)?
        }
        $($more:tt)*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(in crate::http) struct $name $(<$life>)? {
            $(
                #[serde(default, deserialize_with = "crate::http::parse::at_most::present")]
                $(#[$attribute])*
                pub(in crate::http) $field: Option<$type>,
            )+
        }

        impl<'a> crate::http::parse::body::JsonBody<'a> for $name $(<$life>)? {
            const FIELDS: &'static [&'static str] = &[$(stringify!($field)),+];

            $($more)*
        }
    };
}

pub(super) use json_body;

/// Parses a body. Faults are reported in the documented order: not JSON or a bad expression (400),
/// then the media type (415), then wrong fields (422).
fn parse<'a, B: JsonBody<'a>>(headers: &HeaderMap, body: &'a [u8]) -> Result<B, ApiError> {
    let text =
        std::str::from_utf8(body).map_err(|_| ApiError::NotUtf8 { what: "the body".to_owned() })?;
    let read = read_object::<B>(text);
    // The rest looks for faults; a valid request passes through quickly.
    if let Err(e) = &read {
        check_syntax(text, e)?;
    }
    let expression = match &read {
        Ok(body) => body.expression().map(expression::parse),
        Err(_) => expression_of(text).map(|text| expression::parse(&text)),
    };
    if let Some(Err(e)) = expression {
        return Err(Error::BadExpression(e).into());
    }
    check_media_type(headers)?;
    read.map_err(|_| shape_fault::<B>(text))
}

/// Parses one item of `queries`. The whole body is JSON, so the item is, too.
pub(in crate::http) fn parse_item<'a, B: JsonBody<'a>>(item: &'a RawValue) -> Result<B, ApiError> {
    let text = item.get();
    match read_object::<B>(text) {
        Ok(body) => Ok(body),
        Err(_) => match expression_of(text).map(|text| expression::parse(&text)) {
            Some(Err(e)) => Err(Error::BadExpression(e).into()),
            _ => Err(shape_fault::<B>(text)),
        },
    }
}

/// Parses a JSON object, and nothing else: serde would also accept a list, field by field.
fn read_object<'a, B: JsonBody<'a>>(text: &'a str) -> Result<B, serde_json::Error> {
    if !is_object(text) {
        return Err(serde::de::Error::custom("not an object"));
    }
    serde_json::from_str::<B>(text)
}

fn is_object(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{')
}

/// Checks whether a text that could not be parsed as the expected body is JSON at all.
fn check_syntax(text: &str, error: &serde_json::Error) -> Result<(), ApiError> {
    let not_json = |e: &serde_json::Error| {
        let reason = if text.trim().is_empty() { "it is empty".into() } else { e.to_string() };
        Err(ApiError::NotJson { reason })
    };
    if error.is_eof() || (error.is_syntax() && !is_at_number(text, error)) {
        return not_json(error);
    }
    // Reading stopped at a wrong value, which may be a number beyond float64: that is JSON, but no
    // field can hold it. What follows may not be JSON.
    serde_json::from_str::<IgnoredAny>(text).map(|_| ()).or_else(|e| not_json(&e))
}

/// Whether reading stopped inside or right behind a number.
fn is_at_number(text: &str, error: &serde_json::Error) -> bool {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let read = line.as_bytes().get(..error.column()).unwrap_or_default();
    let is_digit = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let digits = read.iter().rev().take_while(is_digit).count();
    // Before a number inside a string, such as the end of an escape, is something else.
    let before = read[..read.len() - digits].last();
    digits > 0 && before.is_none_or(|byte| b" \t\r:,[".contains(byte))
}

/// The expression of a body whose other fields do not have the right form.
fn expression_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct OnlyExpression {
        expression: String,
    }
    serde_json::from_str::<OnlyExpression>(text).ok().map(|only| only.expression)
}

fn check_media_type(headers: &HeaderMap) -> Result<(), ApiError> {
    if !headers.contains_key(header::CONTENT_TYPE) {
        // Without a declared type, only JSON can be meant.
        return Ok(());
    }
    let is_json = negotiation::declared(headers).is_some_and(|declared| {
        declared.ty == names::APPLICATION
            && (declared.subty == names::JSON || declared.suffix == Some(names::JSON))
    });
    if is_json { Ok(()) } else { Err(unsupported(headers)) }
}

fn unsupported(headers: &HeaderMap) -> ApiError {
    let declared = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    ApiError::UnsupportedMediaType { found: String::from_utf8_lossy(declared).into_owned() }
}

/// Why JSON does not have the form of `B`: which field, and what it must be. Slow, so it is used
/// only for bodies that have already failed.
fn shape_fault<'a, B: JsonBody<'a>>(text: &'a str) -> ApiError {
    let not_an_object =
        || ApiError::invalid_request("a request is a JSON object with the documented fields");
    if !is_object(text) {
        return not_an_object();
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, B>(&mut json) else {
        return not_an_object();
    };
    let segments: Vec<&Segment> = error.path().iter().collect();
    let path = error.path().to_string();
    // Inside a body, only words with weights are objects with fields.
    let known_of = |depth| if depth == 0 { B::FIELDS } else { WeightedWord::FIELDS };
    let twice = match segments.split_last() {
        Some((Segment::Map { key }, parents)) => {
            let known = known_of(parents.len());
            if !known.contains(&&**key) {
                // The path ends with the field, which may itself contain dots.
                let parent = path.strip_suffix(&**key).unwrap_or_default();
                let field = format!("{parent}{}", cut(key.clone()));
                let known = known.iter().map(|&name| name.to_owned()).collect();
                return ApiError::UnknownField { field, known };
            }
            None
        }
        _ => given_twice(text, &segments, known_of(segments.len())),
    };
    match twice {
        Some(field) => {
            ApiError::invalid_request(format!("`{field}` is given more than once; give it once"))
        }
        None if segments.is_empty() => not_an_object(),
        None => invalid(&path),
    }
}

/// The first of the `known` fields that the object at the end of a path has twice.
fn given_twice(
    text: &str,
    path: &[&Segment],
    known: &'static [&'static str],
) -> Option<&'static str> {
    let mut found = None;
    let search = Twice { path, known, found: &mut found };
    // Reading ends with an error where the search ends.
    let _ = search.deserialize(&mut serde_json::Deserializer::from_str(text));
    found
}

/// The search of [`given_twice`].
struct Twice<'a> {
    path: &'a [&'a Segment],
    known: &'static [&'static str],
    found: &'a mut Option<&'static str>,
}

impl<'de> DeserializeSeed<'de> for Twice<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Twice<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if let Some((Segment::Seq { index }, path)) = self.path.split_first() {
            for _ in 0..*index {
                list.next_element::<IgnoredAny>()?;
            }
            list.next_element_seed(Twice { path, ..self })?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let mut seen = Vec::new();
        while let Some(name) = object.next_key::<String>()? {
            match self.path.split_first() {
                Some((Segment::Map { key }, path)) if *key == name => {
                    return object.next_value_seed(Twice { path, ..self });
                }
                None => {
                    if let Some(field) = self.known.iter().copied().find(|field| *field == name) {
                        if seen.contains(&field) {
                            *self.found = Some(field);
                            return Ok(());
                        }
                        seen.push(field);
                    }
                }
                Some(_) => {}
            }
            object.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    json_body! {
        /// A body with a number and a list of words with weights.
        #[allow(dead_code)]
        Sample {
            number: f64,
            words: Vec<WeightedWord>,
        }
    }

    #[test]
    fn faults_are_named_by_their_field() {
        let fault = |json: &'static str| parse::<Sample>(&HeaderMap::new(), json.as_bytes()).err();
        let unknown = |field: &str, known: &[&str]| ApiError::UnknownField {
            field: field.to_owned(),
            known: known.iter().map(|&name| name.to_owned()).collect(),
        };
        let own = ["number", "words"];
        for (json, name) in [
            ("{\"c\":1}", "c"),
            ("{\"c`, expected `d\":1}", "c`, expected `d"),
            ("{\"words\":[],\"a.b\":1}", "a.b"),
        ] {
            assert_eq!(fault(json), Some(unknown(name, &own)), "{json}");
        }
        let nested = fault("{\"words\":[\"a\",{\"word\":\"b\",\"wait\":1}]}");
        assert_eq!(nested, Some(unknown("words[1].wait", &["word", "weight"])));
        for (json, name) in [
            ("{\"number\":1,\"words\":[{\"word\":1,\"word\":2}],\"number\":2}", "words[0].word"),
            ("{\"number\":\"1\",\"number\":2}", "number"),
            ("{\"words\":[{\"weight\":1}]}", "words[0]"),
            ("{\"words\":{\"word\":1,\"word\":2}}", "words"),
            ("{\"number\":1e999}", "number"),
            ("{\"number\":-1e99999999999999999999 }", "number"),
            ("{\n\"number\":\n1e999}", "number"),
        ] {
            assert_eq!(fault(json), Some(invalid(name)), "{json}");
        }
        for (json, name) in [
            ("{\"number\":1,\"number\":2}", "number"),
            ("{\"words\":[\"a\",{\"word\":\"b\",\"word\":\"c\"}]}", "word"),
        ] {
            let reason = format!("`{name}` is given more than once; give it once");
            assert_eq!(fault(json), Some(ApiError::invalid_request(reason)), "{json}");
        }
        for json in [
            "{\"number\":01}",
            "{\"number\":1e999",
            "{\"number\":1} 2",
            "{\"words\":[\"\\ud83d\"]}",
            "{\"words\":[\":1\\ude00\"]}",
            "{\"words\":[\"\\ud83d\\u0041\"]}",
        ] {
            assert!(matches!(fault(json), Some(ApiError::NotJson { .. })), "{json}");
        }
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

//! Writes errors as problem documents (RFC 9457).

use std::borrow::Cow;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use kindred::Error;
use kindred::filter::FilterFault;
use kindred::live::changes::BadRow;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::http::ApiError;

impl ApiError {
    /// Writes the extra fields of some codes.
    fn write_extras<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Question(error) => match error {
                Error::BadExpression(e) => {
                    map.serialize_entry("column", &e.column)?;
                    map.serialize_entry("expected", &e.expected)
                }
                Error::InvalidFilter(fault) => {
                    map.serialize_entry("field", "filter")?;
                    map.serialize_entry("column", &fault.column)?;
                    if let Some(expected) = fault.fault.expected() {
                        map.serialize_entry("expected", expected)?;
                    }
                    match fault.fault {
                        FilterFault::UnknownAttribute { ref known, .. } => {
                            map.serialize_entry("known", known)
                        }
                        _ => Ok(()),
                    }
                }
                Error::InvalidValue { field, expected, .. } => {
                    map.serialize_entry("field", field)?;
                    map.serialize_entry("expected", expected)
                }
                Error::DimensionMismatch { found, expected } => {
                    map.serialize_entry("found", found)?;
                    map.serialize_entry("expected", expected)
                }
                Error::UnknownWord { unknown } => map.serialize_entry("unknown", unknown),
                _ => Ok(()),
            },
            Self::BodyTooLarge { limit }
            | Self::UriTooLong { limit }
            | Self::HeadersTooLarge { limit } => map.serialize_entry("limit", limit),
            Self::UnknownField { field, known } => {
                map.serialize_entry("field", field)?;
                map.serialize_entry("known", known)
            }
            Self::InItem { index, error, .. } => {
                map.serialize_entry("query", index)?;
                error.write_extras(map)
            }
            Self::NoSuchModel { known, .. } => map.serialize_entry("known", known),
            Self::BadRows { rows } => {
                let rows: Vec<NamedRow<'_>> = rows.iter().map(NamedRow::from).collect();
                map.serialize_entry("rows", &rows)
            }
            _ => match self.retry_after_seconds() {
                Some(seconds) => map.serialize_entry("retry_after", &seconds),
                None => Ok(()),
            },
        }
    }

    fn write_problem<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let (status, code) = self.kind();
        map.serialize_entry("type", &format_args!("urn:kindred:problem:{code}"))?;
        map.serialize_entry("title", &title(code))?;
        map.serialize_entry("status", &status.as_u16())?;
        map.serialize_entry("detail", &format_args!("{self}"))?;
        map.serialize_entry("code", code)?;
        self.write_extras(map)
    }

    /// The problem document that answers the request with this id.
    pub(in crate::http) fn document(&self, request_id: &str) -> Vec<u8> {
        let mut document = Vec::with_capacity(256);
        let mut writer = serde_json::Serializer::new(&mut document);
        let written = writer.serialize_map(None).and_then(|mut map| {
            self.write_problem(&mut map)?;
            map.serialize_entry("request_id", request_id)?;
            map.end()
        });
        written.expect("texts and numbers become JSON");
        document
    }
}

/// A bad row of a batch in JSON.
#[derive(Serialize)]
pub(in crate::http) struct NamedRow<'a> {
    index: usize,
    key: &'a str,
    reason: &'a str,
}

impl<'a> From<&'a BadRow> for NamedRow<'a> {
    fn from(BadRow { index, key, reason }: &'a BadRow) -> Self {
        Self { index: *index, key, reason }
    }
}

/// The title of the errors with this code: `no_such_route` is "No such route".
fn title(code: &str) -> Cow<'_, str> {
    Cow::Borrowed(match code {
        "not_utf8" => "Not UTF-8",
        "not_json" => "Not JSON",
        "uri_too_long" => "URI too long",
        "internal" => "Internal error",
        _ => {
            let mut title = code.replace('_', " ");
            title[..1].make_ascii_uppercase();
            return Cow::Owned(title);
        }
    })
}

/// A problem document as the answer to one of several queries in a request.
impl Serialize for ApiError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write_problem(&mut map)?;
        map.end()
    }
}

/// Without the body: `front` writes it, because it knows the request's id.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, _) = self.kind();
        let mut response = status.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Self::Unauthorized { .. } = self {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Self::EncodedBody { .. } = self {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if let Self::MethodNotAllowed { allowed, .. } = self {
            headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
        }
        if let Some(seconds) = self.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

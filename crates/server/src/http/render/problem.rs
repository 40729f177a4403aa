//! Writes errors as problem documents (RFC 9457).

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kindred::Error;
use kindred::filters::FilterFault;
use kindred::live::changes::BadRow;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::json;

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
            Self::InField { error, .. } => error.write_extras(map),
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

/// The form of the document of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum ErrorForm {
    /// A problem document.
    Problem,
    /// As clients of OpenAI read it.
    OpenAi,
    /// As text-embeddings-inference has it.
    Tei,
}

impl ErrorForm {
    /// The status of an error. Clients of OpenAI know 404 for models that are not there alone, and
    /// 400 for requests that are wrong in any way.
    pub(in crate::http) fn status(self, error: &ApiError) -> StatusCode {
        let (status, code) = error.kind();
        match (self, status, code) {
            (Self::OpenAi, StatusCode::UNPROCESSABLE_ENTITY, _)
            | (Self::OpenAi, _, "unknown_word") => StatusCode::BAD_REQUEST,
            (Self::Tei, ..) if error.is_of_empty_input() => StatusCode::BAD_REQUEST,
            (Self::Tei, _, "unknown_word") => StatusCode::UNPROCESSABLE_ENTITY,
            _ => status,
        }
    }

    /// The media type of its documents.
    pub(in crate::http) fn media_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Problem => "application/problem+json",
            Self::OpenAi | Self::Tei => "application/json",
        })
    }

    /// The document that answers the request with this id.
    pub(in crate::http) fn document(self, error: &ApiError, request_id: &str) -> Vec<u8> {
        let (_, code) = error.kind();
        let status = self.status(error);
        let message = error.to_string();
        let document = match self {
            Self::Problem => return error.document(request_id),
            Self::OpenAi => json!({"error": {
                "message": message,
                "type": match status {
                    StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
                    status if status.is_server_error() => "server_error",
                    _ => "invalid_request_error",
                },
                "param": error.field(),
                "code": code,
            }}),
            Self::Tei => json!({
                "error": message,
                "error_type": match status {
                    StatusCode::TOO_MANY_REQUESTS => "Overloaded",
                    StatusCode::SERVICE_UNAVAILABLE => "Unhealthy",
                    status if status.is_server_error() => "Backend",
                    _ if error.is_of_empty_input() => "Empty",
                    _ => "Validation",
                },
            }),
        };
        serde_json::to_vec(&document).expect("texts become JSON")
    }
}

impl ApiError {
    fn is_of_empty_input(&self) -> bool {
        matches!(self, Self::EmptyInput { .. })
    }

    /// The field that it is about.
    fn field(&self) -> Option<&str> {
        match self {
            Self::Question(Error::InvalidValue { field, .. }) => Some(field),
            Self::UnknownField { field, .. } | Self::InField { field, .. } => Some(field),
            _ => None,
        }
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

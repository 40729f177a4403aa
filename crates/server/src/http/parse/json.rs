//! JSON bodies: parses them into fields, and finds the error that says what is wrong with them.

use axum::http::{HeaderMap, header};
use kindred::cut;
use kindred::heads::json_faults;
use kindred::npy::Numbers;
use kindred::{Error, expression};
use mediatype::names;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use super::targets::WeightedWord;
use super::{found, invalid, negotiation};
use crate::http::ApiError;

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

        impl<'a> crate::http::parse::json::JsonBody<'a> for $name $(<$life>)? {
            const FIELDS: &'static [&'static str] = &[$(stringify!($field)),+];

            $($more)*
        }
    };
}

pub(super) use json_body;

/// Parses a body. Faults are reported in the documented order: not JSON or a bad expression (400),
/// then the media type (415), then wrong fields (422).
pub(super) fn parse<'a, B: JsonBody<'a>>(
    headers: &HeaderMap,
    body: &'a [u8],
) -> Result<B, ApiError> {
    let text = std::str::from_utf8(body).map_err(|_| not_utf8(body))?;
    // Some programs put a byte order mark before UTF-8; readers may skip it (RFC 8259, 8.1).
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read = read_object::<B>(text);
    // The rest looks for faults; a valid request passes through quickly.
    if let Err(e) = &read {
        check_syntax(text, e).map_err(|error| naming_the_type(error, headers))?;
    }
    let expression = match &read {
        Ok(body) => body.expression().map(expression::parse),
        Err(_) => expression_of(text).map(|text| expression::parse(&text)),
    };
    if let Some(Err(e)) = expression {
        return Err(Error::BadExpression(e).into());
    }
    check_media_type(headers)?;
    read.map_err(|_| shape_fault::<B>("a request", text))
}

/// Parses one item of `queries`. The whole body is JSON, so the item is, too.
pub(in crate::http) fn parse_item<'a, B: JsonBody<'a>>(item: &'a RawValue) -> Result<B, ApiError> {
    let text = item.get();
    match read_object::<B>(text) {
        Ok(body) => Ok(body),
        Err(_) => match expression_of(text).map(|text| expression::parse(&text)) {
            Some(Err(e)) => Err(Error::BadExpression(e).into()),
            _ => Err(shape_fault::<B>("a query", text)),
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
        let reason = match json_faults::cure(text, e) {
            _ if text.trim().is_empty() => "it is empty".to_owned(),
            Some(cure) => format!("{e}; {cure}"),
            None => e.to_string(),
        };
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

/// The error for a body that is not UTF-8. Arrays are no text, and their type is easily forgotten.
fn not_utf8(body: &[u8]) -> ApiError {
    let what = match Numbers::begins(body) {
        true => "the body, a NumPy file without the header Content-Type: application/x-npy,",
        false => "the body",
    };
    ApiError::NotUtf8 { what: what.to_owned() }
}

/// The same error. One about the syntax of a body that is not declared as JSON, such as a form, has
/// the declared type.
fn naming_the_type(error: ApiError, headers: &HeaderMap) -> ApiError {
    match (error, check_media_type(headers)) {
        (ApiError::NotJson { reason }, Err(ApiError::UnsupportedMediaType { found })) => {
            let cure = "send JSON with the header Content-Type: application/json (curl: -H \
                        'Content-Type: application/json'), or parameters in the URL of a GET";
            let found = cut(found);
            ApiError::NotJson { reason: format!("{reason}; the Content-Type is {found}: {cure}") }
        }
        (error, _) => error,
    }
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

pub(super) fn unsupported(headers: &HeaderMap) -> ApiError {
    let declared = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    ApiError::UnsupportedMediaType { found: String::from_utf8_lossy(declared).into_owned() }
}

/// Why JSON, which is `what`, does not have the form of `B`: which field, and what it must be.
/// Slow, so it is used only for bodies that have already failed.
fn shape_fault<'a, B: JsonBody<'a>>(what: &str, text: &'a str) -> ApiError {
    let must_be = format!("{what} is a JSON object with the documented fields");
    if !is_object(text) {
        let found = found::of_json(text.trim());
        return ApiError::invalid_request(format!("{must_be}, not {found}"));
    }
    let not_an_object = || ApiError::invalid_request(must_be);
    let mut json = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, B>(&mut json) else {
        return not_an_object();
    };
    let segments: Vec<&Segment> = error.path().iter().collect();
    let path = error.path().to_string();
    // The types of attributes stand behind names that nobody knows beforehand.
    let is_type =
        segments.len() == 2 && matches!(segments[0], Segment::Map { key } if key == "attributes");
    if is_type {
        return invalid("attributes").with_found(found::at(text, segments));
    }
    if let Some(Segment::Map { key }) = segments.last() {
        // Inside a body, only words with weights are objects with fields.
        let known = if segments.len() == 1 { B::FIELDS } else { WeightedWord::FIELDS };
        if !known.contains(&&**key) {
            // The path ends with the field, which may itself contain dots.
            let parent = path.strip_suffix(&**key).unwrap_or_default();
            let field = format!("{parent}{}", cut(key.clone()));
            let known = known.iter().map(|&name| name.to_owned()).collect();
            return ApiError::UnknownField { field, known };
        }
    }
    // serde says only in its text that a field is given twice.
    let said = error.inner().to_string();
    let twice = said.strip_prefix("duplicate field `").and_then(|rest| rest.split('`').next());
    match twice {
        Some(field) => {
            ApiError::invalid_request(format!("`{field}` is given more than once; give it once"))
        }
        None if segments.is_empty() => not_an_object(),
        None => invalid(&path).with_found(found::at(text, segments)),
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
    fn a_byte_order_mark_before_the_body_is_skipped() {
        let read = |json: &'static str| {
            parse::<Sample>(&HeaderMap::new(), json.as_bytes()).map(|sample| sample.number)
        };
        assert_eq!(read("\u{feff}{\"number\":2}"), Ok(Some(2.0)));
        assert_eq!(read("\u{feff}\n {\"number\":2}"), Ok(Some(2.0)));
        assert!(matches!(read("\u{feff}{\"number\":null}"), Err(ApiError::Question(_))));
        for json in [
            "\u{feff}",
            "\u{feff}\u{feff}{\"number\":2}",
            " \u{feff}{\"number\":2}",
            "{\u{feff}\"number\":2}",
        ] {
            assert!(matches!(read(json), Err(ApiError::NotJson { .. })), "{json}");
        }
    }

    #[test]
    fn bodies_that_are_not_json_get_the_cure() {
        let said = |body: &'static str, declared: &'static str| {
            let headers = [(header::CONTENT_TYPE, declared.parse().unwrap())];
            match parse::<Sample>(&HeaderMap::from_iter(headers), body.as_bytes()) {
                Err(ApiError::NotJson { reason }) => reason,
                other => panic!("{body}: {other:?}"),
            }
        };
        for (body, expected) in [
            ("{'number': 1}", "JSON has double quotes"),
            ("'{number:1}'", "cmd"),
            ("{number:1}", "PowerShell"),
            ("{\"number\": NaN}", "no NaN and no infinities"),
            ("{\"words\": [\"\\ud83d\"]}", "half of a character"),
        ] {
            let said = said(body, "application/json");
            assert!(said.contains(expected) && !said.contains("Content-Type"), "{body}: {said}");
        }
        let form = said("word=frog&k=1", "application/x-www-form-urlencoded");
        assert!(form.contains("the Content-Type is application/x-www-form-urlencoded"), "{form}");
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
        for (json, name, found) in [
            (
                "{\"number\":1,\"words\":[{\"word\":1,\"word\":2}],\"number\":2}",
                "words[0].word",
                "1",
            ),
            ("{\"number\":\"1\",\"number\":2}", "number", "the string \"1\""),
            ("{\"number\":null}", "number", "null"),
            ("{\"words\":[{\"weight\":1}]}", "words[0]", "{\"weight\":1}"),
            ("{\"words\":{\"word\":1,\"word\":2}}", "words", "{\"word\":1,\"word\":2}"),
            ("{\"number\":1e999}", "number", "1e999"),
            ("{\"number\":-1e99999999999999999999 }", "number", "-1e99999999999999999999"),
            ("{\n\"number\":\n1e999}", "number", "1e999"),
        ] {
            let expected = invalid(name).with_found(Some(found.to_owned()));
            assert_eq!(fault(json), Some(expected), "{json}");
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
}

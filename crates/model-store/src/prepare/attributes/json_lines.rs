//! Attributes in JSON lines: an object in each line.

use std::borrow::Cow;
use std::fmt;

use indexmap::IndexSet;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::super::formats::MAX_RECORD_BYTES;
use super::super::lines::for_each_line;
use super::super::unpack::Unpacked;
use super::field::Field;
use super::line::{Line, Read, Take, Wanted};
use crate::ModelError;
use crate::attributes::{AttributeType, Value};

/// Reads a file that begins with `start`; `more` says whether it may go on.
pub(super) fn read(
    unpacked: &mut Unpacked<'_>,
    start: Vec<u8>,
    more: bool,
    wanted: Option<Wanted<'_>>,
    take: Take<'_>,
) -> Result<Read, ModelError> {
    let so_far = unpacked.progress().clone();
    let (mut names, mut number, mut fault) = (Names::default(), 0, None);
    let what = "each line is a JSON object, such as {\"price\": 1.5}";
    let warning = for_each_line(unpacked, start, more, None, MAX_RECORD_BYTES, what, |line| {
        number += 1;
        take_line(line, number, &mut names, wanted, take).map_err(|reason| {
            fault = Some(format!("line {number}: {reason}"));
            String::new()
        })
    });
    match fault {
        Some(reason) => Err(so_far.bad(reason)),
        None => Ok(Read { warning: warning?, names: names.all }),
    }
}

/// The names of fields so far, each with the last line that had it.
#[derive(Default)]
struct Names {
    all: IndexSet<String>,
    last: Vec<u64>,
}

impl Names {
    /// The index of a name in this line; `None` if the line had it before.
    fn index_of(&mut self, name: &str, line: u64) -> Option<usize> {
        let index = match self.all.get_index_of(name) {
            Some(index) => index,
            None => {
                self.last.push(0);
                self.all.insert_full(name.to_owned()).0
            }
        };
        let before = std::mem::replace(&mut self.last[index], line);
        (before != line).then_some(index)
    }
}

fn take_line(
    line: &[u8],
    number: u64,
    names: &mut Names,
    wanted: Option<Wanted<'_>>,
    take: Take<'_>,
) -> Result<(), String> {
    let text = std::str::from_utf8(line)
        .map_err(|_| "it is not valid UTF-8; name its encoding with --encoding")?;
    let raw = object(text)?;
    let mut fields = Vec::with_capacity(raw.len());
    for (name, value) in &raw {
        let twice = || format!("it has the field `{name}` twice");
        let index = names.index_of(name, number).ok_or_else(twice)?;
        if wanted.is_some_and(|wanted| !wanted(name)) {
            continue;
        }
        fields.push((index, field(value.get()).map_err(|reason| format!("`{name}` {reason}"))?));
    }
    take(&Line { number, names: &names.all, fields: &fields })
}

/// The fields of an object of JSON, in their order, also those that are repeated.
///
/// # Errors
/// If it is none.
pub fn object(json: &str) -> Result<Vec<(Cow<'_, str>, &RawValue)>, String> {
    let Object(fields) = serde_json::from_str(json).map_err(|error| {
        // The line that it names is always the first.
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        format!("it is not a JSON object: {said} (column {})", error.column())
    })?;
    Ok(fields.into_iter().map(|(Text(name), value)| (name, value)).collect())
}

/// The value of an attribute of this type; `None` if it is missing.
///
/// # Errors
/// Says what the JSON is instead, behind the attribute's name.
pub fn value(json: &str, kind: AttributeType) -> Result<Option<Value<'static>>, String> {
    let field = field(json)?;
    Ok(field.value(kind)?.map(Value::into_owned))
}

/// The field that this JSON is.
fn field(json: &str) -> Result<Field<'_>, &'static str> {
    const NO_LIST: &str = "is an array with other elements than texts; a list has texts only";
    let json = json.trim();
    match json.as_bytes().first() {
        Some(b'n') => Ok(Field::Missing),
        Some(b't') => Ok(Field::Boolean(true)),
        Some(b'f') => Ok(Field::Boolean(false)),
        Some(b'"') => {
            let Text(text) = serde_json::from_str(json).map_err(|_| "is half of a character")?;
            Ok(Field::Text(text))
        }
        Some(b'[') => {
            let texts: Vec<Text<'_>> = serde_json::from_str(json).map_err(|_| NO_LIST)?;
            Ok(Field::List(texts.into_iter().map(|Text(text)| text).collect()))
        }
        Some(b'{') => Err("is an object; make an attribute of each of its fields"),
        _ if json.contains(['.', 'e', 'E']) => {
            let number = json.parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(Field::Number).ok_or("is a number that no float64 holds")
        }
        _ => json.parse().map(Field::Integer).map_err(|_| {
            "is a whole number of more than 64 bits, of which a number would lose digits; write \
             it as a text"
        }),
    }
}

/// A text that is borrowed if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The fields of an object, in their order, also those that are repeated.
struct Object<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_types_of_json() {
        let text = |text: &'static str| Field::Text(text.into());
        for (json, expected) in [
            ("null", Field::Missing),
            ("true", Field::Boolean(true)),
            ("false", Field::Boolean(false)),
            (r#""a\"\u00e9""#, text("a\"é")),
            (r#""""#, text("")),
            ("[]", Field::List(Vec::new())),
            (r#"["a", "b\n"]"#, Field::List(vec!["a".into(), "b\n".into()])),
            ("-0", Field::Integer(0)),
            ("9223372036854775807", Field::Integer(i64::MAX)),
            ("1.0", Field::Number(1.0)),
            ("1e2", Field::Number(100.0)),
        ] {
            assert_eq!(field(json), Ok(expected), "{json}");
        }
        for (json, part) in [
            ("{}", "an object"),
            ("[1]", "other elements"),
            ("[[\"a\"]]", "other elements"),
            ("[null]", "other elements"),
            ("1e999", "no float64"),
            ("9223372036854775808", "more than 64 bits"),
            (r#""\ud800""#, "half of a character"),
        ] {
            let error = field(json).unwrap_err();
            assert!(error.contains(part), "{json}: {error}");
        }
    }

    #[test]
    fn lines_are_objects_with_each_field_once() {
        let mut names = Names::default();
        let mut line = |text: &str, number| {
            let mut found = Vec::new();
            let read = take_line(text.as_bytes(), number, &mut names, None, &mut |line| {
                found.extend(line.fields.iter().map(|(index, _)| *index));
                Ok(())
            });
            read.map(|()| found)
        };
        assert_eq!(
            line(r#"{"a": 1, "b": {"c": 2}}"#, 1).unwrap_err(),
            "`b` is an object; make an attribute of each of its fields"
        );
        assert_eq!(line(r#" {"b" : "x", "a":[]} "#, 2), Ok(vec![1, 0]));
        assert_eq!(line("{}", 3), Ok(vec![]));
        assert_eq!(line(r#"{"c": null, "a": 1}"#, 4), Ok(vec![2, 0]));
        assert!(line(r#"{"a": 1, "\u0061": 2}"#, 5).unwrap_err().contains("`a` twice"));
        for text in ["", "1", "[]", "{", r#"{"a"}"#, "{} {}", "{'a': 1}"] {
            let error = line(text, 6).unwrap_err();
            assert!(error.contains("it is not a JSON object: "), "{text}: {error}");
            assert!(!error.contains("at line"), "{text}: {error}");
        }
    }
}

//! The value that stands where another was expected, in words for messages.

use std::borrow::Cow;
use std::fmt;

use kindred::heads::json_faults::half_character;
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

/// Longer values are not repeated, in bytes.
const LONGEST: usize = 40;

/// The value at this path of a JSON text. `None` if there is none.
pub(super) fn at<'p>(json: &str, path: impl IntoIterator<Item = &'p Segment>) -> Option<String> {
    path.into_iter().try_fold(json, step).map(of_json)
}

/// JSON: as it is written if it is short, otherwise its kind.
pub(in crate::http) fn of_json(json: &str) -> String {
    // It looks like what is wanted.
    if let Some(half) = half_character(json) {
        return format!("text that was cut inside a character, of which {half} is half");
    }
    let is_short = json.len() <= LONGEST && !json.contains(char::is_control);
    match (json.as_bytes().first(), is_short) {
        (Some(b'"'), true) => format!("the string {json}"),
        (_, true) => json.to_owned(),
        (Some(b'"'), false) => "a long string".to_owned(),
        (Some(b'['), false) => "a list".to_owned(),
        (Some(b'{'), false) => "an object".to_owned(),
        (_, false) => "a number of so many digits".to_owned(),
    }
}

/// The value of a parameter or header, which is a text. `None` if it is long.
pub(in crate::http) fn of_parameter(value: &str) -> Option<String> {
    match value {
        "" => Some("empty".to_owned()),
        _ if value.len() > LONGEST || value.contains(char::is_control) => None,
        _ => Some(format!("`{value}`")),
    }
}

/// A number; one that would be long has an exponent.
pub(super) fn of_number(value: f64) -> String {
    let written = value.to_string();
    if written.len() > LONGEST { format!("{value:e}") } else { written }
}

/// The part of a JSON text that a segment leads to.
fn step<'a>(json: &'a str, segment: &Segment) -> Option<&'a str> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let found = match segment {
        Segment::Map { key } => reader.deserialize_map(Field(key)),
        Segment::Seq { index } => reader.deserialize_seq(Element(*index)),
        _ => return None,
    };
    found.ok()?.map(RawValue::get)
}

/// Finds the first field of this name.
struct Field<'n>(&'n str);

impl<'de> Visitor<'de> for Field<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

        let mut found = None;
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            if found.is_none() && key == self.0 {
                found = Some(map.next_value::<&'de RawValue>()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Finds the element with this index.
struct Element(usize);

impl<'de> Visitor<'de> for Element {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        for _ in 0..self.0 {
            if list.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let found = list.next_element::<&'de RawValue>()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_path() {
        let json = r#" {"a.b": 1, "k": "3", "list": [0, {"w\u006frd": null}, [2]], "k": 4} "#;
        let key = |key: &str| Segment::Map { key: key.to_owned() };
        let index = |index| Segment::Seq { index };
        for (path, found) in [
            (vec![key("k")], Some("the string \"3\"")),
            (vec![key("a.b")], Some("1")),
            (vec![key("list"), index(1), key("word")], Some("null")),
            (vec![key("list"), index(2)], Some("[2]")),
            (vec![key("list"), index(3)], None),
            (vec![key("none")], None),
            (vec![key("k"), index(0)], None),
            (vec![index(0)], None),
            (vec![key("list"), Segment::Unknown], None),
        ] {
            assert_eq!(at(json, &path).as_deref(), found, "{path:?}");
        }
    }

    #[test]
    fn only_what_is_short_is_repeated() {
        let long = "x".repeat(100);
        for (json, words) in [
            ("null".to_owned(), "null"),
            (
                r#""film \ud83d""#.to_owned(),
                r"text that was cut inside a character, of which \ud83d is half",
            ),
            ("-1e400".to_owned(), "-1e400"),
            ("[\"a\",1]".to_owned(), "[\"a\",1]"),
            ("\"\"".to_owned(), "the string \"\""),
            (format!("\"{long}\""), "a long string"),
            (format!("[\"{long}\"]"), "a list"),
            ("[1,\n2]".to_owned(), "a list"),
            (format!("{{\"{long}\":1}}"), "an object"),
            ("1".repeat(100), "a number of so many digits"),
        ] {
            assert_eq!(of_json(&json), words);
        }
        for (value, words) in [
            (2.0, "2"),
            (-0.5, "-0.5"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (-1e300, "-1e300"),
            (1e-300, "1e-300"),
        ] {
            assert_eq!(of_number(value), words);
        }
        assert_eq!(of_parameter("ten").as_deref(), Some("`ten`"));
        assert_eq!(of_parameter("").as_deref(), Some("empty"));
        assert_eq!((of_parameter(&long), of_parameter("\0")), (None, None));
    }
}

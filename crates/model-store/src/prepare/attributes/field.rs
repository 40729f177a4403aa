//! Fields of a file of attributes, and the values that they are.

use std::borrow::Cow;

use crate::attributes::{AttributeType, Value, format_date_time, parse_date_time};

/// A field as it stands in the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Field<'a> {
    /// `null`; or the field is not there.
    Missing,
    /// Of CSV: whatever its column is. Empty, it is missing.
    Untyped(&'a str),
    /// A string of JSON.
    Text(Cow<'a, str>),
    /// An array of strings.
    List(Vec<Cow<'a, str>>),
    /// A number without a fraction and an exponent.
    Integer(i64),
    /// A finite number with one of them.
    Number(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// Of Parquet: microseconds since 1970 (UTC), of a year that has four digits.
    DateTime(i64),
}

impl Field<'_> {
    /// The word of a row that the field names.
    pub(in crate::prepare) fn key(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Untyped(text) if !text.is_empty() => Some(Cow::Borrowed(text)),
            Self::Text(text) if !text.is_empty() => Some(Cow::Borrowed(text)),
            Self::Integer(number) => Some(Cow::Owned(number.to_string())),
            _ => None,
        }
    }

    /// The text that the field is, which may be empty.
    pub(in crate::prepare) fn text(&self) -> Option<&str> {
        match self {
            Self::Untyped(text) => Some(text),
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of this type; `None` if it is missing.
    pub(super) fn value(&self, kind: AttributeType) -> Result<Option<Value<'_>>, String> {
        let kind = kind.of_values();
        let found = match self {
            Self::Missing | Self::Untyped("") => return Ok(None),
            Self::Untyped(text) if kind != AttributeType::Text && text.trim().is_empty() => {
                return Ok(None);
            }
            Self::Untyped(text) => value_of(text, kind),
            Self::Text(text) => match kind {
                // Only in CSV has a field to stand for an array.
                AttributeType::List => None,
                _ => value_of(text, kind),
            },
            Self::List(texts) if kind == AttributeType::List => {
                Some(Value::List(texts.iter().map(|text| Cow::Borrowed(&**text)).collect()))
            }
            Self::List(_) => None,
            Self::Integer(number) => match kind {
                AttributeType::Integer => Some(Value::Integer(*number)),
                AttributeType::Number => Some(Value::Number(*number as f64)),
                AttributeType::Text => Some(Value::Text(number.to_string().into())),
                AttributeType::Boolean => truth(&number.to_string()).map(Value::Boolean),
                _ => None,
            },
            Self::Number(number) => match kind {
                AttributeType::Number => Some(Value::Number(*number)),
                AttributeType::Integer => whole(*number).map(Value::Integer),
                AttributeType::Text => Some(Value::Text(Value::Number(*number).to_string().into())),
                _ => None,
            },
            Self::Boolean(found) => match kind {
                AttributeType::Boolean => Some(Value::Boolean(*found)),
                AttributeType::Text => Some(Value::Text(found.to_string().into())),
                _ => None,
            },
            Self::DateTime(micros) => match kind {
                AttributeType::DateTime => Some(Value::DateTime(*micros)),
                AttributeType::Text => Some(Value::Text(format_date_time(*micros).into())),
                _ => None,
            },
        };
        found.map(Some).ok_or_else(|| format!("is not {}: {}", kind.described(), self.shown()))
    }

    /// The field in messages.
    fn shown(&self) -> String {
        /// Characters that are shown.
        const MOST: usize = 40;
        let text = match self {
            Self::Missing => "null".to_owned(),
            Self::Untyped(text) => (*text).to_owned(),
            Self::Text(text) => text.to_string(),
            Self::List(texts) => Value::List(texts.clone()).to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Number(number) => Value::Number(*number).to_string(),
            Self::Boolean(truth) => truth.to_string(),
            Self::DateTime(micros) => format_date_time(*micros),
        };
        match text.chars().count() > MOST {
            true => format!("{:?}…", text.chars().take(MOST).collect::<String>()),
            false => format!("{text:?}"),
        }
    }
}

/// The value that a text is, if somebody says of which type it is.
fn value_of(text: &str, kind: AttributeType) -> Option<Value<'_>> {
    let trimmed = text.trim();
    match kind {
        AttributeType::Text | AttributeType::Stored => Some(Value::Text(Cow::Borrowed(text))),
        AttributeType::List => {
            let texts: Vec<String> = serde_json::from_str(trimmed).ok()?;
            Some(Value::List(texts.into_iter().map(Cow::Owned).collect()))
        }
        AttributeType::Integer => trimmed.parse().ok().map(Value::Integer),
        AttributeType::Number => {
            let number = trimmed.parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(Value::Number)
        }
        AttributeType::Boolean => truth(trimmed).map(Value::Boolean),
        AttributeType::DateTime => parse_date_time(trimmed).map(Value::DateTime),
    }
}

/// Whether a text is taken for a value of this type without being told so.
pub(super) fn looks_like(text: &str, kind: AttributeType) -> bool {
    let text = text.trim();
    match kind {
        AttributeType::Text | AttributeType::Stored => true,
        AttributeType::List => false,
        AttributeType::Boolean => {
            ["true", "false"].iter().any(|name| text.eq_ignore_ascii_case(name))
        }
        AttributeType::Integer => is_number(text) && text.parse::<i64>().is_ok(),
        // A whole number that no float64 holds would lose its last digits.
        AttributeType::Number => {
            is_number(text)
                && match text.contains(['.', 'e', 'E']) {
                    true => text.parse::<f64>().is_ok_and(f64::is_finite),
                    false => text.parse().is_ok_and(has_float),
                }
        }
        AttributeType::DateTime => parse_date_time(text).is_some(),
    }
}

/// Whether a text is a number as programs write it. One that begins with a further zero, as `007`,
/// is a name.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (text, None),
    };
    let (before, after) = number.split_once('.').unwrap_or((number, ""));
    let is_exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    let has_digits = !(before.is_empty() && after.is_empty());
    let has_zero = before.len() > 1 && before.starts_with('0');
    digits(before) && digits(after) && has_digits && !has_zero && is_exponent
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Whether a float64 has exactly this value.
pub(super) fn has_float(number: i64) -> bool {
    // As a whole number of 128 bits, since that of i64::MAX is one more than it.
    number as f64 as i128 == i128::from(number)
}

/// The whole number that a float64 is, if it is below 2⁵³, where each has its own float64.
fn whole(number: f64) -> Option<i64> {
    const BOUND: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    (number.fract() == 0.0 && number.abs() < BOUND).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use AttributeType::{Boolean, DateTime, Integer, List, Number, Text};

    use super::*;

    #[test]
    fn types_of_texts_are_plain_to_see() {
        for (kind, like, unlike) in [
            (Boolean, &["true", "False", " TRUE "][..], &["1", "yes", "t", ""][..]),
            (Integer, &["0", "-7", "9223372036854775807"], &["007", "+1", "1.0", "1e3", "-", ""]),
            (
                Number,
                &["0", "-7", "1.5", ".5", "5.", "1e-3", "0.0E+7", "9007199254740994"],
                &[
                    "007.5",
                    "+1.5",
                    "1,5",
                    "1e",
                    "1e999",
                    "nan",
                    ".",
                    "inf",
                    "9007199254740993",
                    "9223372036854775807",
                    "9223372036854775808",
                ],
            ),
            (DateTime, &["2026-05-01T12:00:00Z"], &["2026-05-01", "12:00", ""]),
            (Text, &["", "a", "1"], &[]),
            (List, &[], &["[\"a\"]"]),
        ] {
            for text in like {
                assert!(looks_like(text, kind), "{text:?} is {kind}");
            }
            for text in unlike {
                assert!(!looks_like(text, kind), "{text:?} is no {kind}");
            }
        }
    }

    #[test]
    fn fields_are_values_of_the_type_that_is_asked_for() {
        let text = |text: &'static str| Some(Value::Text(text.into()));
        for (field, kind, expected) in [
            (Field::Untyped(""), Text, None),
            (Field::Untyped(" "), Text, text(" ")),
            (Field::Untyped(" "), Number, None),
            (Field::Missing, List, None),
            (Field::Text("".into()), Text, text("")),
            (Field::Untyped("007"), Integer, Some(Value::Integer(7))),
            (Field::Untyped("007"), Text, text("007")),
            (Field::Untyped("1"), Boolean, Some(Value::Boolean(true))),
            (Field::Integer(0), Boolean, Some(Value::Boolean(false))),
            (Field::Integer(2), Number, Some(Value::Number(2.0))),
            (Field::Number(2.0), Integer, Some(Value::Integer(2))),
            (Field::Number(2.0), Text, text("2.0")),
            (Field::Boolean(true), Text, text("true")),
            (Field::Text("3".into()), Integer, Some(Value::Integer(3))),
            (
                Field::Untyped("[\"a\",\"b\"]"),
                List,
                Some(Value::List(vec!["a".into(), "b".into()])),
            ),
            (Field::Untyped("1970-01-01T00:00:01Z"), DateTime, Some(Value::DateTime(1_000_000))),
        ] {
            assert_eq!(field.value(kind), Ok(expected), "{field:?} as {kind}");
        }
        for (field, kind) in [
            (Field::Untyped("x"), Number),
            (Field::Untyped("nan"), Number),
            (Field::Untyped("a"), List),
            (Field::Text("[]".into()), List),
            (Field::Text("".into()), Integer),
            (Field::Number(2.5), Integer),
            (Field::Number(1e300), Integer),
            (Field::Integer(2), Boolean),
            (Field::Integer(0), DateTime),
            (Field::List(Vec::new()), Text),
            (Field::Boolean(true), Integer),
        ] {
            let error = field.value(kind).unwrap_err();
            assert!(error.starts_with(&format!("is not {}: ", kind.described())), "{error}");
        }
        let long = "é".repeat(50);
        let error = Field::Untyped(&long).value(Number).unwrap_err();
        assert!(error.ends_with(&format!("{:?}…", "é".repeat(40))), "{error}");
    }

    #[test]
    fn keys_are_words() {
        let keys = [
            (Field::Untyped("007"), Some("007")),
            (Field::Text("a b".into()), Some("a b")),
            (Field::Integer(-7), Some("-7")),
            (Field::Untyped(""), None),
            (Field::Number(1.0), None),
            (Field::Missing, None),
        ];
        for (field, key) in keys {
            assert_eq!(field.key().as_deref(), key);
        }
    }
}

//! Single values of attributes, for those who read or write them one by one.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use super::attribute_type::AttributeType;
use super::date_time::format_date_time;

/// A value that is there. In JSON a number, `true` or `false`, a text or an array of texts; a
/// date-time is a text as in RFC 3339.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// Texts, in their order.
    List(Vec<Cow<'a, str>>),
    /// A whole number.
    Integer(i64),
    /// A finite number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// Microseconds since 1970 (UTC).
    DateTime(i64),
}

impl Value<'_> {
    /// The same, for those who do not keep its texts.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Text(text) => Value::Text(owned(text)),
            Self::List(texts) => Value::List(texts.into_iter().map(owned).collect()),
            Self::Integer(number) => Value::Integer(number),
            Self::Number(number) => Value::Number(number),
            Self::Boolean(truth) => Value::Boolean(truth),
            Self::DateTime(micros) => Value::DateTime(micros),
        }
    }

    /// Bytes that it takes in a file, or a few more.
    pub fn bytes(&self) -> usize {
        // Quotes, line feeds, starts and codes of texts.
        const AROUND: usize = 16;
        match self {
            Self::Text(text) => text.len() + AROUND,
            Self::List(texts) => texts.iter().map(|text| text.len() + AROUND).sum(),
            Self::Integer(_) | Self::Number(_) | Self::Boolean(_) | Self::DateTime(_) => 8,
        }
    }

    /// Its type.
    pub fn kind(&self) -> AttributeType {
        match self {
            Self::Text(_) => AttributeType::Text,
            Self::List(_) => AttributeType::List,
            Self::Integer(_) => AttributeType::Integer,
            Self::Number(_) => AttributeType::Number,
            Self::Boolean(_) => AttributeType::Boolean,
            Self::DateTime(_) => AttributeType::DateTime,
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(texts) => texts.serialize(serializer),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Boolean(truth) => serializer.serialize_bool(*truth),
            Self::DateTime(micros) => serializer.serialize_str(&format_date_time(*micros)),
        }
    }
}

/// A text or date-time as it is, anything else as in JSON: as fields of CSV have them.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::DateTime(micros) => f.write_str(&format_date_time(*micros)),
            Self::Integer(number) => number.fmt(f),
            Self::Boolean(truth) => truth.fmt(f),
            Self::List(_) | Self::Number(_) => {
                f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_json_and_of_fields() {
        for (value, json, field) in [
            (Value::Text("a \"b\"".into()), r#""a \"b\"""#, "a \"b\""),
            (Value::List(vec!["x".into(), "é,".into()]), r#"["x","é,"]"#, r#"["x","é,"]"#),
            (Value::List(Vec::new()), "[]", "[]"),
            (Value::Integer(-3), "-3", "-3"),
            (Value::Number(2.0), "2.0", "2.0"),
            (Value::Number(0.1), "0.1", "0.1"),
            (Value::Boolean(true), "true", "true"),
            (Value::DateTime(0), "\"1970-01-01T00:00:00Z\"", "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
            assert_eq!(value.to_string(), field);
        }
    }
}

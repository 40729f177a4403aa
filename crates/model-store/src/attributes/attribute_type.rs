//! The types of attributes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The type of an attribute. Each of its values may also be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttributeType {
    /// A text.
    Text,
    /// A list of texts, which may be empty.
    List,
    /// A whole number of 64 bits, with a sign.
    Integer,
    /// A finite float64. Both zeros are one value.
    Number,
    /// True or false.
    Boolean,
    /// A moment, in microseconds since 1970 (UTC).
    DateTime,
    /// A text for display: kept compressed, and compared by no filter.
    Stored,
}

impl AttributeType {
    /// All types.
    pub const ALL: [Self; 7] = [
        Self::Text,
        Self::List,
        Self::Integer,
        Self::Number,
        Self::Boolean,
        Self::DateTime,
        Self::Stored,
    ];

    /// The type of its values alone: a text that is stored is a text.
    #[must_use]
    pub fn of_values(self) -> Self {
        match self {
            Self::Stored => Self::Text,
            other => other,
        }
    }

    /// Its name in files, on the command line and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::List => "list",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::DateTime => "date-time",
            Self::Stored => "stored",
        }
    }

    /// A value of it in a sentence.
    pub fn described(self) -> &'static str {
        match self {
            Self::Text | Self::Stored => "a text",
            Self::List => "a list of texts",
            Self::Integer => "a whole number of 64 bits",
            Self::Number => "a finite number",
            Self::Boolean => "true or false",
            Self::DateTime => "a date-time as in RFC 3339, such as 2026-05-01T12:00:00Z",
        }
    }
}

impl fmt::Display for AttributeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AttributeType {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|known| known.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown type `{name}`; it must be one of {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_are_those_of_json() {
        for kind in AttributeType::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        }
        assert!("float".parse::<AttributeType>().unwrap_err().contains("integer, number"));
    }
}

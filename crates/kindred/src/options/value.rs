//! Values of options, by their types: which are allowed, and how they are told.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Unknown, Values, WithAttributes};
use crate::method::Method;

/// A value that an option can have.
pub(super) trait OptionValue: Serialize {
    fn is_one_of(&self, _: &Values) -> bool {
        true
    }

    fn to_json(&self) -> Value {
        json!(self)
    }

    /// A value that is out of bounds, in words.
    fn in_words(&self) -> String {
        self.to_json().to_string()
    }
}

impl OptionValue for u64 {
    fn is_one_of(&self, values: &Values) -> bool {
        matches!(values, Values::Whole { from, to } if (from..=to).contains(&self))
    }
}

impl OptionValue for f64 {
    fn is_one_of(&self, _: &Values) -> bool {
        self.is_finite()
    }

    /// JSON has no number that is not finite.
    fn in_words(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for bool {}

impl OptionValue for String {}

impl OptionValue for Vec<String> {
    fn is_one_of(&self, values: &Values) -> bool {
        matches!(values, Values::Words { most } if self.len() <= *most)
    }

    fn in_words(&self) -> String {
        self.len().to_string()
    }
}

impl OptionValue for WithAttributes {
    fn is_one_of(&self, values: &Values) -> bool {
        match (self, values) {
            (Self::Named(names), Values::Names { most }) => names.len() <= *most,
            _ => true,
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::All(all) => all.to_string(),
            Self::Named(names) => format!("{} names", names.len()),
        }
    }
}

impl OptionValue for Unknown {}

impl OptionValue for Method {
    fn to_json(&self) -> Value {
        self.short_name().into()
    }
}

//! The type of a column, from all of its values.
//!
//! The file is read twice: a column is what all of its values are, also the last one.

use super::field::{Field, has_float, looks_like};
use crate::attributes::AttributeType;

/// The types of CSV's fields that look like one, in the order in which they are tried.
const UNTYPED: [AttributeType; 4] = [
    AttributeType::Boolean,
    AttributeType::Integer,
    AttributeType::Number,
    AttributeType::DateTime,
];

/// What the values of a column have in common so far.
#[derive(Debug, Clone)]
pub(super) struct Guess {
    /// Whether there was a value without a type.
    has_untyped: bool,
    /// Which of [`UNTYPED`] all of them look like.
    fits: [bool; 4],
    /// The type of the values of JSON, and the line of the first.
    typed: Option<(AttributeType, u64)>,
    /// Whether all texts of JSON look like date-times.
    are_date_times: bool,
    /// The line of a whole number of JSON that no float64 holds.
    without_float: Option<u64>,
}

impl Default for Guess {
    fn default() -> Self {
        Self {
            has_untyped: false,
            fits: [true; 4],
            typed: None,
            are_date_times: true,
            without_float: None,
        }
    }
}

impl Guess {
    /// Takes note of the field of a line. Fails if it has another type than those before.
    pub(super) fn see(&mut self, field: &Field<'_>, line: u64) -> Result<(), String> {
        let found = match field {
            Field::Missing => return Ok(()),
            Field::Untyped(text) => {
                if !text.trim().is_empty() {
                    self.has_untyped = true;
                    for (fits, kind) in self.fits.iter_mut().zip(UNTYPED) {
                        *fits = *fits && looks_like(text, kind);
                    }
                }
                return Ok(());
            }
            Field::Text(text) => {
                self.are_date_times =
                    self.are_date_times && looks_like(text, AttributeType::DateTime);
                AttributeType::Text
            }
            Field::List(_) => AttributeType::List,
            Field::Integer(number) => {
                if !has_float(*number) {
                    self.without_float = Some(line);
                }
                AttributeType::Integer
            }
            Field::Number(_) => AttributeType::Number,
            Field::Boolean(_) => AttributeType::Boolean,
            Field::DateTime(_) => AttributeType::DateTime,
        };
        use AttributeType::{Integer, Number};
        match (self.typed, found) {
            (None, _) => self.typed = Some((found, line)),
            (Some((before, _)), _) if before == found => {}
            (Some((Integer, first)), Number) => self.typed = Some((Number, first)),
            (Some((Number, _)), Integer) => {}
            (Some((before, first)), _) => {
                return Err(format!(
                    "is {}, but {} in line {first}",
                    found.described(),
                    before.described()
                ));
            }
        }
        match (self.typed, self.without_float) {
            (Some((Number, _)), Some(large)) => Err(format!(
                "has numbers with fractions, and in line {large} a whole number that would lose \
                 its last digits among them"
            )),
            _ => Ok(()),
        }
    }

    /// The type that fits all of them; text if there were none.
    pub(super) fn kind(&self) -> AttributeType {
        match self.typed {
            Some((AttributeType::Text, _)) if self.are_date_times => AttributeType::DateTime,
            Some((kind, _)) => kind,
            None => {
                let mut fitting = self.fits.iter().zip(UNTYPED).filter(|(fits, _)| **fits);
                let first = fitting.next().filter(|_| self.has_untyped);
                first.map_or(AttributeType::Text, |(_, kind)| kind)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use AttributeType::{Boolean, DateTime, Integer, List, Number, Text};

    use super::*;

    fn guessed(fields: &[Field<'_>]) -> Result<AttributeType, String> {
        let mut guess = Guess::default();
        for (field, line) in fields.iter().zip(1..) {
            guess.see(field, line)?;
        }
        Ok(guess.kind())
    }

    #[test]
    fn a_column_of_csv_is_what_all_of_its_fields_look_like() {
        for (texts, kind) in [
            (&["", " "][..], Text),
            (&["true", "", "FALSE"], Boolean),
            (&["true", "1"], Text),
            (&["1", "2", ""], Integer),
            (&["1", "2", "2.5"], Number),
            (&["1", "2", "x"], Text),
            (&["1", "007"], Text),
            (&["1.5", "9999999999999999999"], Text),
            (&["1", "9007199254740993"], Integer),
            (&["1.5", "9007199254740993"], Text),
            (&["1.5", "nan"], Text),
            (&["2026-05-01T12:00:00Z", "1969-05-01T12:00:00+01:00"], DateTime),
            (&["2026-05-01T12:00:00Z", "2026-05-01"], Text),
        ] {
            let fields: Vec<Field<'_>> = texts.iter().map(|text| Field::Untyped(text)).collect();
            assert_eq!(guessed(&fields), Ok(kind), "{texts:?}");
        }
    }

    #[test]
    fn a_column_of_json_has_the_type_of_its_values() {
        let text = |text: &'static str| Field::Text(text.into());
        for (fields, kind) in [
            (vec![Field::Missing], Text),
            (vec![Field::Integer(1), Field::Missing, Field::Integer(2)], Integer),
            (vec![Field::Integer(1), Field::Number(2.5), Field::Integer(2)], Number),
            (vec![Field::Number(2.5), Field::Integer(2)], Number),
            (vec![Field::Boolean(true)], Boolean),
            (vec![Field::List(Vec::new())], List),
            (vec![text("1"), text("true")], Text),
            (vec![text("1970-01-01T00:00:00Z")], DateTime),
            (vec![text("1970-01-01T00:00:00Z"), text("")], Text),
        ] {
            assert_eq!(guessed(&fields), Ok(kind), "{fields:?}");
        }
        let mixed = guessed(&[Field::Missing, Field::Integer(1), text("x")]).unwrap_err();
        assert_eq!(mixed, "is a text, but a whole number of 64 bits in line 2");
        assert!(guessed(&[Field::List(Vec::new()), text("x")]).is_err());
        let (large, fraction) = (Field::Integer((1 << 53) + 1), Field::Number(0.5));
        assert_eq!(guessed(&[large.clone(), Field::Integer(1)]), Ok(Integer));
        for fields in [[large.clone(), fraction.clone()], [fraction, large]] {
            let lossy = guessed(&fields).unwrap_err();
            assert!(lossy.contains("a whole number that would lose"), "{lossy}");
        }
    }
}

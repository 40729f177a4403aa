//! Parsers of values. Their errors say what a value must be, in the words of the HTTP API.

use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use kindred::attributes::AttributeType;
use kindred::evaluation::results::Case;
use kindred::method::Method;
use server::config::MAX_THREADS;

/// The requirement that a value does not meet, such as “a whole number from 1 to 1000”.
#[derive(Debug, thiserror::Error)]
#[error("it must be {0}")]
pub(crate) struct MustBe(pub(crate) String);

/// Parses a value with `read`, which returns `None` for one that is not what it must be.
pub(super) fn value<T: Clone + Send + Sync + 'static>(
    must_be: String,
    read: impl Fn(&str) -> Option<T> + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T> {
    StringValueParser::new()
        .try_map(move |text: String| read(&text).ok_or_else(|| MustBe(must_be.clone())))
}

/// Parses a whole number within these bounds, both included.
pub(super) fn whole<T>(from: u64, to: u64) -> impl TypedValueParser<Value = T>
where
    T: TryFrom<usize> + Clone + Send + Sync + 'static,
{
    let must_be = match (from, to) {
        (0, u64::MAX) => "a whole number".to_owned(),
        (from, u64::MAX) => format!("a whole number of at least {from}"),
        (from, to) => format!("a whole number from {from} to {to}"),
    };
    value(must_be, move |text| within(text, from, to))
}

/// The whole number that a text is, if it is within these bounds, both included.
pub(super) fn within<T: TryFrom<usize>>(text: &str, from: u64, to: u64) -> Option<T> {
    let number = text.parse::<u64>().ok().filter(|number| (from..=to).contains(number))?;
    T::try_from(usize::try_from(number).ok()?).ok()
}

/// Parses a finite number that is right, as an f32 or an f64.
pub(super) fn number<T>(
    must_be: &'static str,
    is_right: fn(T) -> bool,
) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Copy + Into<f64> + Send + Sync + 'static,
{
    value(must_be.to_owned(), move |text| {
        let number = text.parse::<T>().ok()?;
        let wide: f64 = number.into();
        (wide.is_finite() && is_right(number)).then_some(number)
    })
}

/// Parses one of these values by its name; `--help` lists the names.
pub(super) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(name)).map(move |found| {
        let is_found = |one: &T| name(*one) == found;
        all.into_iter().find(is_found).expect("one of the possible values")
    })
}

/// Parses the type of an attribute, `NAME=TYPE`.
pub(super) fn given_type(text: &str) -> Result<(String, AttributeType), String> {
    let (name, kind) = text.split_once('=').ok_or("it must be NAME=TYPE, as in price=number")?;
    Ok((name.to_owned(), kind.parse()?))
}

/// Parses a number of threads.
pub(super) fn thread_counts() -> impl TypedValueParser<Value = usize> {
    whole(0, MAX_THREADS as u64)
}

/// Parses an analogy method by its short name.
pub(super) fn methods() -> impl TypedValueParser<Value = Method> {
    let value = |method: Method| {
        PossibleValue::new(method.short_name()).help(match method {
            Method::ThreeCosAdd => "The word nearest to b - a + c",
            Method::ThreeCosMul => {
                "Similarity to b times similarity to c, divided by similarity to a"
            }
            Method::PairDirection => {
                "The word whose offset from c is most parallel to the offset from a to b"
            }
        })
    };
    PossibleValuesParser::new(Method::ALL.map(value)).try_map(|name| name.parse::<Method>())
}

/// Parses how the words of test sets are looked up.
pub(super) fn cases() -> impl TypedValueParser<Value = Case> {
    let value = |case: Case| {
        PossibleValue::new(case.name()).help(match case {
            Case::Lower => "As written, then in lower case",
            Case::Exact => "As written only",
        })
    };
    PossibleValuesParser::new(Case::ALL.map(value)).try_map(|name| name.parse::<Case>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_attributes_stand_behind_their_names() {
        assert_eq!(given_type("a.b=date-time"), Ok(("a.b".into(), AttributeType::DateTime)));
        assert!(given_type("price").unwrap_err().contains("NAME=TYPE"));
        assert!(given_type("price=float").unwrap_err().contains("integer, number"));
    }

    #[test]
    fn whole_numbers_are_those_within_the_bounds() {
        for (text, expected) in [
            ("1", Some(1)),
            ("1000", Some(1000)),
            ("+7", Some(7)),
            ("0", None),
            ("1001", None),
            ("-1", None),
            ("1.0", None),
            ("1e3", None),
            ("", None),
            (" 1", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(within::<usize>(text, 1, 1000), expected, "{text}");
        }
        assert_eq!(within::<u32>("4294967296", 1, u64::MAX), None, "it does not fit");
        assert_eq!(within::<u32>("4294967295", 1, u64::MAX), Some(u32::MAX));
    }
}

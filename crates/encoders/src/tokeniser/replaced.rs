//! The patterns of `Replace` and `Split`: texts, and runs of a character.
//!
//! Regular expressions would need a crate that takes longer to compile than all of this one. The
//! few that files of static models have are runs, such as ` {2,}`, and these are read.

use std::ops::Range;

use serde::Deserialize;

use super::fault::{Fault, WITHOUT_TEXTS};

/// The fields of `Replace`.
#[derive(Deserialize)]
pub(super) struct Fields {
    pub(super) pattern: Stored,
    pub(super) content: String,
}

/// A pattern in the file.
#[derive(Deserialize)]
pub(super) enum Stored {
    String(String),
    Regex(String),
}

/// A pattern that is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// This text.
    Text(String),
    /// At least so many of a character, as many as there are.
    Run { sign: char, least: usize },
}

impl Pattern {
    pub(super) fn of(stored: Stored) -> Result<Self, Fault> {
        let refused = |why: &str| {
            Fault::Unsupported(format!(
                "its pattern {why}, and only texts and runs of a character, such as \" {{2,}}\", \
                 are read; write it as a String if it is one, or {WITHOUT_TEXTS}"
            ))
        };
        match stored {
            Stored::String(text) if text.is_empty() => Err(refused("is empty")),
            Stored::String(text) => Ok(Self::Text(text)),
            Stored::Regex(regex) => Self::of_regex(&regex)
                .ok_or_else(|| refused(&format!("is the regular expression {regex:?}"))),
        }
    }

    fn of_regex(regex: &str) -> Option<Self> {
        // A signs with no meaning of their own in an expression.
        let is_plain = |sign: char| {
            sign == ' ' || sign.is_alphanumeric() || !sign.is_ascii() && !sign.is_whitespace()
        };
        let mut signs = regex.chars();
        let sign = match signs.next()? {
            '\\' => match signs.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                escaped if escaped.is_ascii_punctuation() => escaped,
                _ => return None,
            },
            sign if is_plain(sign) => sign,
            _ => return None,
        };
        let rest = signs.as_str();
        if rest == "+" {
            return Some(Self::Run { sign, least: 1 });
        }
        if let Some(least) = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix(",}")) {
            let least = least.bytes().all(|byte| byte.is_ascii_digit()).then_some(least)?;
            return Some(Self::Run { sign, least: least.parse().ok().filter(|least| *least > 0)? });
        }
        // A text without a sign that has a meaning.
        rest.chars().all(is_plain).then(|| Self::Text(format!("{sign}{rest}")))
    }
}

/// Where a text has at least so many of a character.
pub(super) fn runs(text: &str, sign: char, least: usize) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find(sign)?;
            let rest = text[start..].trim_start_matches(sign);
            at = text.len() - rest.len();
            if at - start >= least.saturating_mul(sign.len_utf8()) {
                return Some(start..at);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_runs_are_read_and_other_expressions_refused_by_name() {
        let run = |sign, least| Pattern::Run { sign, least };
        let regex = |regex: &str| Pattern::of(Stored::Regex(regex.to_owned()));
        for (text, pattern) in [
            (" {2,}", run(' ', 2)),
            (" +", run(' ', 1)),
            ("\\n+", run('\n', 1)),
            ("\\.{3,}", run('.', 3)),
            ("ab", Pattern::Text("ab".into())),
            ("\u{2581}", Pattern::Text("\u{2581}".into())),
            ("\\+", Pattern::Text("+".into())),
        ] {
            assert_eq!(regex(text).unwrap(), pattern, "{text}");
        }
        for text in ["", "a|b", "\\s+", "a*", "[ab]", "^a", "a{,2}", "a{2}", "a{0,}", "ab+", "."] {
            let Err(Fault::Unsupported(reason)) = regex(text) else { panic!("{text}") };
            assert!(reason.contains(&format!("{text:?}")) && reason.contains("String"), "{reason}");
        }
        assert!(Pattern::of(Stored::String(String::new())).is_err());
    }

    #[test]
    fn runs_are_as_long_as_they_are() {
        let of = |text: &'static str| runs(text, '\u{e9}', 2).collect::<Vec<_>>();
        assert_eq!(of("\u{e9}a\u{e9}\u{e9}\u{e9}b\u{e9}\u{e9}"), [3..9, 10..14]);
        assert_eq!(of(""), []);
    }
}

//! The sign between the fields of a line.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

/// The sign between a word and its components.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Separator {
    /// A single space. Words may have spaces, too.
    #[default]
    Space,
    /// A tab. Words have none.
    Tab,
    /// A comma. A word with commas is between quotes, as in CSV (RFC 4180).
    Comma,
}

contract::names! { Separator { Space: "space", Tab: "tab", Comma: "comma" } }

impl Separator {
    /// The sign itself.
    pub(super) fn byte(self) -> u8 {
        match self {
            Self::Space => b' ',
            Self::Tab => b'\t',
            Self::Comma => b',',
        }
    }

    /// The part of a description that follows the format.
    pub(super) fn described(self) -> &'static str {
        match self {
            Self::Space => "",
            Self::Tab => " separated by tabs",
            Self::Comma => " separated by commas",
        }
    }

    /// The number of fields after the first one.
    pub(super) fn numbers(self, line: &[u8]) -> usize {
        let word = self.quoted(line).unwrap_or(0);
        memchr_iter(self.byte(), &line[word..]).count()
    }

    /// The line without separators and spaces at its end, as some programs write them.
    pub(super) fn trim_end(self, line: &[u8]) -> &[u8] {
        let is_field = |&byte: &u8| byte != b' ' && byte != self.byte();
        &line[..line.iter().rposition(is_field).map_or(0, |last| last + 1)]
    }

    /// The length of the word that begins a line, with its quotes, if it has quotes.
    fn quoted(self, line: &[u8]) -> Option<usize> {
        if self != Self::Comma || line.first() != Some(&b'"') {
            return None;
        }
        let mut at = 1;
        loop {
            at += memchr(b'"', &line[at..])? + 1;
            match line.get(at) {
                Some(b'"') => at += 1,
                None | Some(b',') => return Some(at),
                Some(_) => return None,
            }
        }
    }

    /// The word of a field, without its quotes. `None` if it has a separator outside quotes.
    pub(super) fn word(self, field: &[u8]) -> Option<Cow<'_, [u8]>> {
        if self.quoted(field) == Some(field.len()) {
            let inner = &field[1..field.len() - 1];
            if memchr(b'"', inner).is_none() {
                return Some(Cow::Borrowed(inner));
            }
            // Two quotes stand for one.
            let mut word = Vec::with_capacity(inner.len());
            let mut rest = inner;
            while let Some(at) = memchr(b'"', rest) {
                word.extend_from_slice(&rest[..=at]);
                rest = &rest[at + 2..];
            }
            word.extend_from_slice(rest);
            return Some(Cow::Owned(word));
        }
        let is_whole = self == Self::Space || memchr(self.byte(), field).is_none();
        is_whole.then_some(Cow::Borrowed(field))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn word(separator: Separator, field: &str) -> Option<String> {
        let word = separator.word(field.as_bytes())?;
        Some(String::from_utf8(word.into_owned()).unwrap())
    }

    #[test]
    fn only_commas_have_quotes() {
        for (field, expected) in [
            ("cat", Some("cat")),
            ("new york", Some("new york")),
            ("\"new york\"", Some("new york")),
            ("\"a, b\"", Some("a, b")),
            ("\",\"", Some(",")),
            ("\"\"\"\"", Some("\"")),
            ("\"say \"\"a, b\"\"\"", Some("say \"a, b\"")),
            ("\"\"", Some("")),
            // None that closes: a character as any other.
            ("\"", Some("\"")),
            ("\"a\"b", Some("\"a\"b")),
            ("a,b", None),
            ("\"a\",b", None),
        ] {
            assert_eq!(word(Separator::Comma, field).as_deref(), expected, "{field}");
        }
        assert_eq!(word(Separator::Tab, "\"a, b\"").as_deref(), Some("\"a, b\""));
        assert_eq!(word(Separator::Tab, "a\tb"), None);
        assert_eq!(word(Separator::Space, "a b\"").as_deref(), Some("a b\""));
    }

    #[test]
    fn numbers_are_counted_after_the_word() {
        for (separator, line, expected) in [
            (Separator::Space, "cat 1 2", 2),
            (Separator::Tab, "new york\t1\t2", 2),
            (Separator::Comma, "cat,1,2", 2),
            (Separator::Comma, "\"a, b\",1,2", 2),
            (Separator::Comma, "\"a\"\", b\",1,2", 2),
            (Separator::Comma, "\",1,2", 2),
            (Separator::Comma, "cat", 0),
        ] {
            assert_eq!(separator.numbers(line.as_bytes()), expected, "{line}");
        }
        assert_eq!(Separator::Tab.trim_end(b"cat\t1\t \t"), b"cat\t1");
        assert_eq!(Separator::Space.trim_end(b"cat\t "), b"cat\t");
        assert_eq!(Separator::Comma.trim_end(b",, "), b"");
    }

    proptest! {
        #[test]
        fn any_word_comes_back_out_of_quotes(text in "[a\", \t]{0,12}", numbers in 0usize..4) {
            let quoted = format!("\"{}\"", text.replace('"', "\"\""));
            let found = word(Separator::Comma, &quoted);
            prop_assert_eq!(found.as_deref(), Some(&*text));
            let line = quoted + &",1".repeat(numbers);
            prop_assert_eq!(Separator::Comma.numbers(line.as_bytes()), numbers);
        }

        #[test]
        fn no_field_panics(field in prop::collection::vec(any::<u8>(), 0..20)) {
            for separator in Separator::ALL {
                let _ = (separator.word(&field), separator.numbers(&field));
                prop_assert!(field.starts_with(separator.trim_end(&field)));
            }
        }
    }
}

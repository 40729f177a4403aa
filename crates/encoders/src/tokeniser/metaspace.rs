//! `Metaspace`: spaces become a sign that can be seen, and pieces begin with it.

use memchr::memmem;
use serde::Deserialize;

use super::fault::Fault;
use super::normal::replace;
use super::pieces::Pieces;

/// The part of the file.
#[derive(Debug)]
pub(super) struct Metaspace {
    sign: char,
    scheme: Scheme,
    split: bool,
}

/// Before which pieces the sign is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scheme {
    First,
    Never,
    Always,
}

/// The fields of the file.
#[derive(Deserialize)]
pub(super) struct Fields {
    replacement: char,
    /// What older files have instead of a scheme.
    add_prefix_space: Option<bool>,
    prepend_scheme: Option<Scheme>,
    split: Option<bool>,
}

impl Metaspace {
    pub(super) fn new(fields: &Fields) -> Result<Self, Fault> {
        let mut scheme = fields.prepend_scheme.unwrap_or(Scheme::Always);
        if fields.add_prefix_space == Some(false) {
            if scheme != Scheme::Never {
                return Err(Fault::Faulty(
                    "its pre_tokenizer Metaspace has add_prefix_space false and a prepend_scheme \
                     that is not never"
                        .into(),
                ));
            }
            scheme = Scheme::Never;
        }
        Ok(Self { sign: fields.replacement, scheme, split: fields.split.unwrap_or(true) })
    }

    /// Whether it asks for the original's beginning.
    pub(super) fn asks_for_head(&self) -> bool {
        self.scheme == Scheme::First
    }

    pub(super) fn apply(&self, pieces: &mut Pieces) {
        let (mut bytes, sign) = ([0; 4], self.sign);
        let with = &*sign.encode_utf8(&mut bytes);
        pieces.write(|text, mut head, to| {
            let is_first = text.starts_with([' ', sign]);
            let prepends = match self.scheme {
                Scheme::Always => !is_first,
                Scheme::First => !is_first && head > 0,
                Scheme::Never => false,
            };
            if prepends {
                to.push_str(with);
            }
            let found = memmem::find_iter(text.as_bytes(), b" ").map(|at| at..at + 1);
            head = replace(text, Some(head), found, with, to).expect("asked for");
            if prepends && head > 0 { head + with.len() } else { head }
        });
        if self.split {
            pieces.cut(|text, piece| {
                let mut start = 0;
                for at in memmem::find_iter(text.as_bytes(), with.as_bytes()) {
                    piece(start..at);
                    start = at;
                }
                piece(start..text.len());
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(part: &Value) -> Result<Metaspace, Fault> {
        Metaspace::new(&Fields::deserialize(part).unwrap())
    }

    fn cut(part: &Value, text: &str, head: usize) -> Vec<String> {
        let mut pieces = Pieces::default();
        pieces.begin(text, head);
        of(part).unwrap().apply(&mut pieces);
        pieces.iter().map(str::to_owned).collect()
    }

    #[test]
    fn pieces_begin_with_the_sign_by_the_scheme() {
        let part = |scheme: &str| json!({"replacement": "_", "prepend_scheme": scheme});
        assert_eq!(cut(&part("always"), "a  b", 1), ["_a", "_", "_b"]);
        assert_eq!(cut(&part("always"), " a ", 0), ["_a", "_"]);
        assert_eq!(cut(&part("always"), "_a", 0), ["_a"]);
        assert_eq!(cut(&part("never"), "a b", 1), ["a", "_b"]);
        assert_eq!(cut(&part("first"), "a b", 1), ["_a", "_b"]);
        assert_eq!(cut(&part("first"), "a b", 0), ["a", "_b"]);
        let whole = json!({"replacement": "\u{2581}", "split": false});
        assert_eq!(cut(&whole, "a b", 1), ["\u{2581}a\u{2581}b"]);
    }

    #[test]
    fn older_files_have_a_flag_that_must_not_contradict_the_scheme() {
        let part = |scheme: Option<&str>, flag: bool| json!({"replacement": "_", "prepend_scheme": scheme, "add_prefix_space": flag});
        assert_eq!(cut(&part(Some("never"), false), "a", 1), ["a"]);
        assert_eq!(cut(&part(None, true), "a", 1), ["_a"]);
        assert!(matches!(of(&part(Some("first"), false)), Err(Fault::Faulty(_))));
    }
}

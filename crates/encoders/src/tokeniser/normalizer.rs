//! How a text is normalised before it is cut: the parts that `normalizer` of the file may have.

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use unicode_normalization_alignments::UnicodeNormalization;
use unicode_normalization_alignments::char::is_combining_mark;

use super::byte_chars::byte_char;
use super::fault::{Fault, fields, kind, not_read, steps};
use super::normal::{Normal, replace, rewrite};
use super::precompiled::{self, Precompiled};
use super::{bert, replaced};

/// A step; a sequence is a list of them.
#[derive(Debug)]
pub(super) enum Step {
    Bert(bert::Normalizer),
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Nmt,
    Lowercase,
    StripAccents,
    Strip { left: bool, right: bool },
    Replace(replaced::Pattern, String),
    Prepend(String),
    Precompiled(Precompiled),
    ByteLevel,
}

const READ: [&str; 14] = [
    "BertNormalizer",
    "ByteLevel",
    "Lowercase",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Nmt",
    "Precompiled",
    "Prepend",
    "Replace",
    "Sequence",
    "Strip",
    "StripAccents",
];

#[derive(Deserialize)]
struct Sequence {
    normalizers: Vec<Value>,
}

#[derive(Deserialize)]
struct Strip {
    strip_left: bool,
    strip_right: bool,
}

#[derive(Deserialize)]
struct Prepend {
    prepend: String,
}

const NAME: &str = "normalizer";

/// The steps of a part of the file; without one there are none.
pub(super) fn read(part: &Value) -> Result<Vec<Step>, Fault> {
    let parts = |part: &Value| Ok(fields::<Sequence>(NAME, part)?.normalizers);
    steps(part, parts, step)
}

fn step(part: &Value) -> Result<Step, Fault> {
    Ok(match kind(part) {
        "BertNormalizer" => Step::Bert(fields(NAME, part)?),
        "NFC" => Step::Nfc,
        "NFD" => Step::Nfd,
        "NFKC" => Step::Nfkc,
        "NFKD" => Step::Nfkd,
        "Nmt" => Step::Nmt,
        "Lowercase" => Step::Lowercase,
        "StripAccents" => Step::StripAccents,
        "ByteLevel" => Step::ByteLevel,
        "Strip" => {
            let Strip { strip_left: left, strip_right: right } = fields(NAME, part)?;
            Step::Strip { left, right }
        }
        "Replace" => {
            let fields: replaced::Fields = fields(NAME, part)?;
            Step::Replace(replaced::Pattern::of(fields.pattern)?, fields.content)
        }
        "Prepend" => Step::Prepend(fields::<Prepend>(NAME, part)?.prepend),
        "Precompiled" => {
            Step::Precompiled(Precompiled::new(&fields::<precompiled::Fields>(NAME, part)?)?)
        }
        other => return Err(not_read(NAME, other, &READ)),
    })
}

impl Step {
    /// Normalises a text.
    pub(super) fn apply(&self, normal: &mut Normal) {
        let is_ascii = normal.text.is_ascii();
        match self {
            Self::Nfc | Self::Nfd | Self::Nfkc | Self::Nfkd | Self::StripAccents if is_ascii => {}
            Self::Bert(bert) => normal.step(|text, _, normal| {
                bert.normalize(text, normal);
                None
            }),
            Self::Nfc => normal.step(|text, head, to| rewrite(text, head, 0, text.nfc(), to)),
            Self::Nfd => normal.step(|text, head, to| rewrite(text, head, 0, text.nfd(), to)),
            Self::Nfkc => normal.step(|text, head, to| rewrite(text, head, 0, text.nfkc(), to)),
            Self::Nfkd => normal.step(|text, head, to| rewrite(text, head, 0, text.nfkd(), to)),
            Self::Nmt => nmt(normal),
            Self::Lowercase if is_ascii => normal.text.make_ascii_lowercase(),
            Self::Lowercase => normal.step(|text, head, to| {
                let lower = text.chars().flat_map(|sign| more(sign.to_lowercase()));
                rewrite(text, head, 0, lower, to)
            }),
            Self::StripAccents => normal.keep(|sign| !is_combining_mark(sign)),
            Self::Strip { left, right } => normal.step(|text, head, to| {
                let rest = if *left { text.trim_start() } else { text };
                let removed = text[..text.len() - rest.len()].chars().count();
                let rest = if *right { rest.trim_end() } else { rest };
                rewrite(text, head, removed, rest.chars().map(|sign| (sign, 0)), to)
            }),
            Self::Replace(replaced::Pattern::Text(pattern), with) => {
                normal.step(|text, head, to| {
                    let found = memmem::find_iter(text.as_bytes(), pattern.as_bytes());
                    let found = found.map(|at| at..at + pattern.len());
                    replace(text, head, found, with, to)
                });
            }
            Self::Replace(replaced::Pattern::Run { sign, least }, with) => {
                normal.step(|text, head, to| {
                    replace(text, head, replaced::runs(text, *sign, *least), with, to)
                });
            }
            Self::Prepend(before) => normal.prepend(before),
            Self::Precompiled(table) => {
                normal.step(|text, head, to| table.normalize(text, head, to));
            }
            Self::ByteLevel => normal
                .step(|text, head, to| rewrite(text, head, 0, text.chars().flat_map(bytes_of), to)),
        }
    }
}

/// A character's bytes as characters, with their changes.
pub(super) fn bytes_of(sign: char) -> impl Iterator<Item = (char, isize)> {
    let (mut bytes, length) = ([0; 4], sign.len_utf8());
    sign.encode_utf8(&mut bytes);
    more(bytes.into_iter().take(length).map(byte_char))
}

/// Characters for one: the first is for it, the others are more.
fn more(signs: impl Iterator<Item = char>) -> impl Iterator<Item = (char, isize)> {
    signs.zip([0].into_iter().chain(std::iter::repeat(1)))
}

/// Some control characters go, and others are spaces, as SentencePiece's `nmt` has it.
fn nmt(normal: &mut Normal) {
    normal.keep(|sign| !matches!(u32::from(sign), 1..=8 | 0xb | 0xe..=0x1f | 0x7f | 0x8f | 0x9f));
    normal.step(|text, head, to| {
        let spaced = text.chars().map(|sign| match u32::from(sign) {
            9
            | 0xa
            | 0xc
            | 0xd
            | 0x1680
            | 0x200b..=0x200f
            | 0x2028
            | 0x2029
            | 0x2581
            | 0xfeff
            | 0xfffd => (' ', 0),
            _ => (sign, 0),
        });
        rewrite(text, head, 0, spaced, to)
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn normal(part: &Value, text: &str) -> String {
        let steps = read(part).unwrap();
        let [free, asked] = [false, true].map(|head| {
            let mut normal = Normal::default();
            normal.begin(text, head);
            steps.iter().for_each(|step| step.apply(&mut normal));
            normal.text
        });
        assert_eq!(free, asked);
        free
    }

    #[test]
    fn each_step_does_what_its_name_says() {
        let of = |kind: &str, text: &str| normal(&json!({ "type": kind }), text);
        assert_eq!(of("NFC", "e\u{301}\u{fb01}"), "\u{e9}\u{fb01}");
        assert_eq!(of("NFD", "\u{e9}\u{fb01}"), "e\u{301}\u{fb01}");
        assert_eq!(of("NFKC", "e\u{301}\u{fb01}"), "\u{e9}fi");
        assert_eq!(of("NFKD", "\u{e9}\u{fb01}"), "e\u{301}fi");
        assert_eq!(of("Nmt", "\u{1}a\u{7f}\tb\u{200b}\u{2581}\u{feff}c\u{2}"), "a b   c");
        assert_eq!(of("Lowercase", "A\u{130}\u{3a3}"), "ai\u{307}\u{3c3}");
        assert_eq!(of("Lowercase", "ABC"), "abc");
        assert_eq!(of("StripAccents", "e\u{301}\u{903}x"), "ex");
        assert_eq!(of("ByteLevel", "a \u{e9}"), "a\u{120}\u{c3}\u{a9}");
        assert_eq!(normal(&Value::Null, " A"), " A");
    }

    #[test]
    fn texts_are_stripped_replaced_and_put_before() {
        let strip = |left: bool, right: bool| {
            let part = json!({"type": "Strip", "strip_left": left, "strip_right": right});
            normal(&part, "\u{3000} \u{e9} \n")
        };
        assert_eq!(strip(true, true), "\u{e9}");
        assert_eq!(strip(true, false), "\u{e9} \n");
        assert_eq!(strip(false, true), "\u{3000} \u{e9}");
        let of = |pattern: Value, text: &str| {
            normal(&json!({"type": "Replace", "pattern": pattern, "content": "_"}), text)
        };
        assert_eq!(of(json!({"String": "aa"}), "aaaab"), "__b");
        assert_eq!(of(json!({"Regex": " {2,}"}), "a  b c   "), "a_b c_");
        let part = json!({"type": "Prepend", "prepend": "_"});
        assert_eq!((normal(&part, "a"), normal(&part, "")), ("_a".into(), String::new()));
        let lower = json!({"type": "Lowercase"});
        let part = json!({"type": "Sequence", "normalizers": [lower, part]});
        assert_eq!(normal(&part, "A"), "_a");
    }

    #[test]
    fn other_steps_are_refused_by_name_with_those_that_are_read() {
        let mut deep = json!({"type": "NFC"});
        for _ in 0..30 {
            deep = json!({"type": "Sequence", "normalizers": [deep]});
        }
        for (part, said) in [
            (
                json!({"type": "Mine"}),
                "normalizer is Mine, and only these are read: BertNormalizer",
            ),
            (json!({}), "normalizer is without a type"),
            (deep, "Sequence"),
        ] {
            let Err(Fault::Unsupported(reason)) = read(&part) else { panic!("{part}") };
            assert!(reason.contains(said) && reason.contains("can be prepared"), "{reason}");
        }
        let Err(Fault::Faulty(reason)) = read(&json!({"type": "Strip"})) else { panic!() };
        assert!(reason.contains("normalizer: missing field `strip_left`"), "{reason}");
    }
}

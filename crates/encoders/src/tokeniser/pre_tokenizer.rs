//! How a normalised text is cut into pieces: what `pre_tokenizer` of the file may have.

use std::ops::Range;

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use super::bert;
use super::byte_level::ByteLevel;
use super::characters::is_word;
use super::fault::{Fault, fields, kind, not_read, steps};
use super::metaspace::{self, Metaspace};
use super::pieces::{Behavior, Pieces, cut_at, signs};
use super::replaced::{Pattern, Stored, runs};

/// A step; a sequence is a list of them.
#[derive(Debug)]
pub(super) enum Step {
    Bert,
    ByteLevel(ByteLevel),
    Metaspace(Metaspace),
    Whitespace,
    WhitespaceSplit,
    Punctuation(Behavior),
    Digits { apart: bool },
    Split { pattern: Pattern, inverted: bool, behavior: Behavior },
}

const READ: [&str; 9] = [
    "BertPreTokenizer",
    "ByteLevel",
    "Digits",
    "Metaspace",
    "Punctuation",
    "Sequence",
    "Split",
    "Whitespace",
    "WhitespaceSplit",
];

#[derive(Deserialize)]
struct Sequence {
    pretokenizers: Vec<Value>,
}

#[derive(Deserialize)]
struct Punctuation {
    #[serde(default = "isolated")]
    behavior: Behavior,
}

fn isolated() -> Behavior {
    Behavior::Isolated
}

#[derive(Deserialize)]
struct Digits {
    individual_digits: bool,
}

#[derive(Deserialize)]
struct Split {
    pattern: Stored,
    behavior: Behavior,
    invert: bool,
}

const NAME: &str = "pre_tokenizer";

/// The steps of a part of the file; without one there are none.
pub(super) fn read(part: &Value) -> Result<Vec<Step>, Fault> {
    let parts = |part: &Value| Ok(fields::<Sequence>(NAME, part)?.pretokenizers);
    steps(part, parts, step)
}

fn step(part: &Value) -> Result<Step, Fault> {
    Ok(match kind(part) {
        "BertPreTokenizer" => Step::Bert,
        "ByteLevel" => Step::ByteLevel(fields(NAME, part)?),
        "Metaspace" => Step::Metaspace(Metaspace::new(&fields::<metaspace::Fields>(NAME, part)?)?),
        "Whitespace" => Step::Whitespace,
        "WhitespaceSplit" => Step::WhitespaceSplit,
        "Punctuation" => Step::Punctuation(fields::<Punctuation>(NAME, part)?.behavior),
        "Digits" => Step::Digits { apart: fields::<Digits>(NAME, part)?.individual_digits },
        "Split" => {
            let Split { pattern, behavior, invert: inverted } = fields(NAME, part)?;
            let pattern = Pattern::of(pattern)?;
            Step::Split { pattern, inverted, behavior }
        }
        other => return Err(not_read(NAME, other, &READ)),
    })
}

impl Step {
    /// Whether it asks for the original's beginning.
    pub(super) fn asks_for_head(&self) -> bool {
        matches!(self, Self::Metaspace(metaspace) if metaspace.asks_for_head())
    }

    /// Cuts each piece.
    pub(super) fn apply(&self, pieces: &mut Pieces) {
        match self {
            Self::Bert => pieces.cut(|text, piece| bert::for_each_word(text, piece)),
            Self::ByteLevel(bytes) => bytes.apply(pieces),
            Self::Metaspace(metaspace) => metaspace.apply(pieces),
            Self::Whitespace => pieces.cut(for_each_run),
            Self::WhitespaceSplit => pieces.cut(|text, piece| {
                cut_at(text, signs(text, char::is_whitespace), false, Behavior::Removed, piece);
            }),
            Self::Punctuation(behavior) => pieces.cut(|text, piece| {
                cut_at(text, signs(text, bert::is_punctuation), false, *behavior, piece);
            }),
            Self::Digits { apart } => pieces.cut(|text, piece| {
                let behavior = if *apart { Behavior::Isolated } else { Behavior::Contiguous };
                cut_at(text, signs(text, char::is_numeric), false, behavior, piece);
            }),
            Self::Split { pattern, inverted, behavior } => {
                pieces.cut(|text, piece| match pattern {
                    Pattern::Text(part) => {
                        let found = memmem::find_iter(text.as_bytes(), part.as_bytes());
                        let found = found.map(|at| at..at + part.len());
                        cut_at(text, found, *inverted, *behavior, piece);
                    }
                    Pattern::Run { sign, least } => {
                        cut_at(text, runs(text, *sign, *least), *inverted, *behavior, piece);
                    }
                });
            }
        }
    }
}

/// Calls for each run of characters of words, and for each of others, between white space.
fn for_each_run(text: &str, piece: &mut dyn FnMut(Range<usize>)) {
    let (mut start, mut last) = (0, None);
    for (at, sign) in text.char_indices() {
        let kind = (!sign.is_whitespace()).then(|| is_word(sign));
        if kind != last {
            if last.is_some() {
                piece(start..at);
            }
            (start, last) = (at, kind);
        }
    }
    if last.is_some() {
        piece(start..text.len());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cut(part: &Value, text: &str) -> Vec<String> {
        let mut pieces = Pieces::default();
        pieces.begin(text, 1);
        read(part).unwrap().iter().for_each(|step| step.apply(&mut pieces));
        pieces.iter().map(str::to_owned).collect()
    }

    #[test]
    fn each_step_cuts_as_its_name_says() {
        let of = |kind: &str, text: &str| cut(&json!({ "type": kind }), text);
        assert_eq!(
            of("Whitespace", " a_1!?  \u{e9}\u{301}\u{20dd}-"),
            ["a_1", "!?", "\u{e9}\u{301}\u{20dd}", "-",]
        );
        assert_eq!(of("WhitespaceSplit", "\u{3000}a! b\n"), ["a!", "b"]);
        assert_eq!(of("BertPreTokenizer", "a!! b"), ["a", "!", "!", "b"]);
        assert_eq!(of("Punctuation", "a! b"), ["a", "!", " b"]);
        assert_eq!(of("Whitespace", ""), [""; 0]);
        assert_eq!(cut(&Value::Null, "a b"), ["a b"]);
        let part = json!({"type": "Punctuation", "behavior": "MergedWithPrevious"});
        assert_eq!(cut(&part, "a!b"), ["a!", "b"]);
        let digits = |apart| json!({"type": "Digits", "individual_digits": apart});
        assert_eq!(cut(&digits(true), "a12\u{b2}"), ["a", "1", "2", "\u{b2}"]);
        assert_eq!(cut(&digits(false), "a12\u{b2}b"), ["a", "12\u{b2}", "b"]);
    }

    #[test]
    fn texts_split_a_text_and_what_is_between_them_if_inverted() {
        let part = |pattern: Value, invert: bool| json!({"type": "Split", "pattern": pattern, "behavior": "Removed", "invert": invert});
        assert_eq!(cut(&part(json!({"String": "ab"}), false), "xabyab"), ["x", "y"]);
        assert_eq!(cut(&part(json!({"String": "ab"}), true), "xababyab"), ["ab", "ab", "ab"]);
        assert_eq!(cut(&part(json!({"Regex": " +"}), false), "x  y z"), ["x", "y", "z"]);
    }

    #[test]
    fn a_sequence_cuts_the_pieces_of_the_step_before() {
        let meta = json!({"type": "Metaspace", "replacement": "_"});
        let steps = [json!({"type": "WhitespaceSplit"}), meta, json!({"type": "Punctuation"})];
        let part = json!({"type": "Sequence", "pretokenizers": steps});
        assert_eq!(cut(&part, "a! b"), ["_", "a", "!", "_", "b"]);
    }

    #[test]
    fn other_steps_are_refused_by_name_with_the_cure() {
        let split = json!({"type": "Split", "pattern": {"Regex": "\\p{L}"}, "behavior": "Isolated",
                           "invert": false});
        for (part, said) in [
            (json!({"type": "UnicodeScripts"}), "pre_tokenizer is UnicodeScripts"),
            (split, "regular expression \"\\\\p{L}\""),
        ] {
            let Err(Fault::Unsupported(reason)) = read(&part) else { panic!("{part}") };
            assert!(reason.contains(said) && reason.contains("can be prepared"), "{reason}");
        }
        assert!(matches!(read(&json!({"type": "Digits"})), Err(Fault::Faulty(_))));
    }
}

//! `ByteLevel`: words as GPT-2 cuts them, written in characters that stand for their bytes.
//!
//! The words are those of the expression
//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.

use std::ops::Range;

use serde::Deserialize;

use super::byte_chars::byte_char;
use super::characters::{is_letter, is_number};
use super::pieces::Pieces;

/// The part of the file.
#[derive(Debug, Deserialize)]
pub(super) struct ByteLevel {
    add_prefix_space: bool,
    #[serde(default = "yes")]
    use_regex: bool,
}

fn yes() -> bool {
    true
}

impl ByteLevel {
    pub(super) fn apply(&self, pieces: &mut Pieces) {
        if self.add_prefix_space {
            pieces.write(|text, head, to| {
                let space = if text.starts_with(' ') { "" } else { " " };
                to.push_str(space);
                to.push_str(text);
                if head > 0 { head + space.len() } else { 0 }
            });
        }
        if self.use_regex {
            pieces.cut(for_each_word);
        }
        pieces.write(|text, head, to| {
            let start = to.len();
            to.extend(text[..head].bytes().map(byte_char));
            let new_head = to.len() - start;
            to.extend(text[head..].bytes().map(byte_char));
            new_head
        });
    }
}

/// The kinds of characters of which words are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Number,
    Space,
    Other,
}

impl Kind {
    fn of(sign: char) -> Self {
        match sign {
            _ if is_letter(sign) => Self::Letter,
            _ if is_number(sign) => Self::Number,
            _ if sign.is_whitespace() => Self::Space,
            _ => Self::Other,
        }
    }
}

/// Calls for each word of a text.
fn for_each_word(text: &str, word: &mut dyn FnMut(Range<usize>)) {
    let mut at = 0;
    while at < text.len() {
        let end = at + word_length(&text[at..]);
        word(at..end);
        at = end;
    }
}

/// The length of the word that a text, which is not empty, begins with.
fn word_length(text: &str) -> usize {
    if text.starts_with('\'') {
        let short = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];
        if let Some(short) = short.into_iter().find(|short| text.starts_with(short)) {
            return short.len();
        }
    }
    // A space belongs to the word behind it.
    let rest = text.strip_prefix(' ').unwrap_or(text);
    let first = rest.chars().next().map(Kind::of);
    if let Some(kind) = first.filter(|kind| *kind != Kind::Space) {
        return text.len() - rest.len() + run(rest, kind);
    }
    // White space leaves its last character for the word behind it, if it has another.
    let length = run(text, Kind::Space);
    let last = text[..length].chars().next_back().map_or(0, char::len_utf8);
    if length < text.len() && last < length { length - last } else { length }
}

/// The length of the characters of a kind that a text begins with.
fn run(text: &str, kind: Kind) -> usize {
    text.find(|sign| Kind::of(sign) != kind).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        for_each_word(text, &mut |word| words.push(&text[word]));
        words
    }

    #[test]
    fn words_are_those_of_the_expression() {
        assert_eq!(words("I'll don't 're"), ["I", "'ll", " don", "'t", " '", "re"]);
        assert_eq!(words("a12 3\u{b2}x!?'s"), ["a", "12", " 3\u{b2}", "x", "!?'", "s"]);
        assert_eq!(words("a  b"), ["a", " ", " b"]);
        assert_eq!(words("a \n\u{3000}b"), ["a", " \n", "\u{3000}", "b"]);
        assert_eq!(words("a\nb  "), ["a", "\n", "b", "  "]);
        assert_eq!(words("  \u{e9}\u{301}\u{4e00}"), [" ", " \u{e9}", "\u{301}", "\u{4e00}"]);
        assert_eq!(words(""), [""; 0]);
    }

    #[test]
    fn bytes_are_characters_and_a_space_is_put_before() {
        let cut = |add_prefix_space: bool, use_regex: bool, text: &str, head: usize| {
            let mut pieces = Pieces::default();
            pieces.begin(text, head);
            ByteLevel { add_prefix_space, use_regex }.apply(&mut pieces);
            pieces.iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(cut(true, true, "a \u{e9}", 1), ["\u{120}a", "\u{120}\u{c3}\u{a9}"]);
        assert_eq!(cut(true, true, " a", 0), ["\u{120}a"]);
        assert_eq!(cut(false, false, "\u{e9} a", 2), ["\u{c3}\u{a9}\u{120}a"]);
    }
}

//! Tokens that are cut out of a text before its words are, such as `[UNK]` where a text has it.
//!
//! They are found either in the text as it is, or once it has been normalised.

use std::ops::Range;

use super::characters::is_word;
use super::trie::Trie;

/// A token, and what is around it in a text.
#[derive(Debug)]
pub(super) struct Added {
    pub(super) text: String,
    pub(super) id: u32,
    /// Whether it is none within a word.
    pub(super) single_word: bool,
    /// Whether white space before it is part of it.
    pub(super) lstrip: bool,
    /// Whether white space behind it is part of it.
    pub(super) rstrip: bool,
}

/// The tokens by their texts.
#[derive(Debug)]
pub(super) struct AddedTokens {
    tokens: Vec<Added>,
    /// Their places in the list.
    places: Trie,
    /// The bytes with which they begin.
    begin: [bool; 256],
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The id of a token.
    Token(u32),
    /// Where a text without tokens is.
    Text(Range<usize>),
}

impl AddedTokens {
    /// Of tokens whose texts differ and are not empty.
    pub(super) fn new(tokens: Vec<Added>) -> Self {
        let places = Trie::new(tokens.iter().map(|token| token.text.as_bytes()).zip(0..));
        let mut begin = [false; 256];
        for token in &tokens {
            begin[usize::from(token.text.as_bytes()[0])] = true;
        }
        Self { tokens, places, begin }
    }

    /// Calls for each part of a text: of tokens that begin at the same place the longest is found.
    pub(super) fn for_each(&self, text: &str, mut each: impl FnMut(Part)) {
        let (mut at, mut behind) = (0, 0);
        while let Some(from) = self.next_begin(text, at) {
            let Some((length, place)) = self.places.longest(&text.as_bytes()[from..]) else {
                at = from + 1;
                continue;
            };
            at = from + length;
            let token = &self.tokens[place as usize];
            let (before, after) = (&text[..from], &text[at..]);
            if token.single_word && (before.ends_with(is_word) || after.starts_with(is_word)) {
                continue;
            }
            let (mut start, mut end) = (from, at);
            if token.lstrip {
                start = before.trim_end().len().max(behind);
            }
            if token.rstrip {
                end += after.len() - after.trim_start().len();
            }
            if behind < start {
                each(Part::Text(behind..start));
            }
            each(Part::Token(token.id));
            behind = end;
        }
        if behind < text.len() {
            each(Part::Text(behind..text.len()));
        }
    }

    /// Where a token may begin, from there on.
    fn next_begin(&self, text: &str, at: usize) -> Option<usize> {
        if self.tokens.is_empty() {
            return None;
        }
        let found = text.as_bytes()[at..].iter().position(|byte| self.begin[usize::from(*byte)]);
        found.map(|found| at + found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str, id: u32) -> Added {
        Added { text: text.into(), id, single_word: false, lstrip: false, rstrip: false }
    }

    /// The ids of tokens, and the texts.
    fn parts(tokens: Vec<Added>, text: &str) -> Vec<String> {
        let mut parts = Vec::new();
        AddedTokens::new(tokens).for_each(text, |part| {
            parts.push(match part {
                Part::Token(id) => id.to_string(),
                Part::Text(range) => text[range].to_owned(),
            });
        });
        parts
    }

    #[test]
    fn tokens_are_cut_out_and_of_several_there_the_longest() {
        let added = || vec![token("[A]", 1), token("[A]x", 2), token("x", 3), token("\u{e9}", 4)];
        assert_eq!(parts(added(), "-[A]xx"), ["-", "2", "3"]);
        assert_eq!(parts(added(), "[A]"), ["1"]);
        assert_eq!(parts(added(), "yx[A]"), ["y", "3", "1"]);
        // It begins with a byte of another character.
        assert_eq!(parts(added(), "\u{e8}\u{e9}"), ["\u{e8}", "4"]);
        assert_eq!(parts(added(), "[a]"), ["[a]"]);
        assert_eq!(parts(added(), ""), [""; 0]);
    }

    #[test]
    fn without_tokens_nothing_is_cut_out() {
        assert_eq!(parts(Vec::new(), "[A]"), ["[A]"]);
    }

    #[test]
    fn white_space_beside_a_token_is_part_of_it_if_it_says_so() {
        let (left, right) =
            (Added { lstrip: true, ..token("<l>", 1) }, Added { rstrip: true, ..token("<r>", 2) });
        let text = "a  <l> b <r>\n\u{3000}<l> ";
        assert_eq!(parts(vec![left, right], text), ["a", "1", " b ", "2", "1", " "]);
    }

    #[test]
    fn a_single_word_is_none_within_another() {
        let added = || vec![Added { single_word: true, ..token("ab", 1) }];
        assert_eq!(parts(added(), "ab-ab xab ab_"), ["1", "-", "1", " xab ab_"]);
    }
}

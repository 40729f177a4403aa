//! WordPiece: a word's longest beginning that is a token, then the longest of the rest, and so on.

use hashbrown::HashMap;

/// The vocabulary of a WordPiece tokeniser.
#[derive(Debug)]
pub(super) struct WordPiece {
    /// Tokens that may begin a word.
    starts: HashMap<Box<str>, u32>,
    /// Tokens that may go on in one, without their prefix.
    continues: HashMap<Box<str>, u32>,
    /// The length of the longest token, in bytes.
    longest: usize,
    unknown: u32,
    /// Words of more characters are unknown.
    max_chars: usize,
}

impl WordPiece {
    /// Of the tokens by their ids, and the prefix of those that go on in a word.
    pub(super) fn new(tokens: &[String], prefix: &str, unknown: u32, max_chars: usize) -> Self {
        let starts = tokens.iter().zip(0..).map(|(token, id)| (token.as_str().into(), id));
        let continues = tokens
            .iter()
            .zip(0..)
            .filter_map(|(token, id)| token.strip_prefix(prefix).map(|token| (token.into(), id)));
        Self {
            starts: starts.collect(),
            continues: continues.collect(),
            longest: tokens.iter().map(String::len).max().unwrap_or_default(),
            unknown,
            max_chars,
        }
    }

    pub(super) fn unknown(&self) -> u32 {
        self.unknown
    }

    /// Appends the ids of a word's tokens, or the unknown token's.
    pub(super) fn encode(&self, word: &str, ids: &mut Vec<u32>) {
        let before = ids.len();
        if self.is_cut(word, ids).is_none() {
            ids.truncate(before);
            ids.push(self.unknown);
        }
    }

    /// Appends the ids of a word's tokens; `None` where no token fits.
    fn is_cut(&self, word: &str, ids: &mut Vec<u32>) -> Option<()> {
        // A character has a byte at least, so most words need not be counted.
        if word.len() > self.max_chars && word.chars().count() > self.max_chars {
            return None;
        }
        let (mut rest, mut tokens) = (word, &self.starts);
        while !rest.is_empty() {
            let (id, length) = self.longest_token(tokens, rest)?;
            ids.push(id);
            (rest, tokens) = (&rest[length..], &self.continues);
        }
        Some(())
    }

    /// The longest token that a text begins with: its id and length.
    fn longest_token(&self, tokens: &HashMap<Box<str>, u32>, text: &str) -> Option<(u32, usize)> {
        let mut length = text.floor_char_boundary(self.longest);
        while length > 0 {
            if let Some(id) = tokens.get(&text[..length]) {
                return Some((*id, length));
            }
            length = text.floor_char_boundary(length - 1);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(word: &str) -> Vec<u32> {
        let tokens = ["?", "un", "##aff", "##able", "u", "##n", "\u{e9}", "##\u{e9}\u{e9}", "##"];
        let model = WordPiece::new(&tokens.map(str::to_owned), "##", 0, 8);
        let mut ids = vec![9];
        model.encode(word, &mut ids);
        ids.split_off(1)
    }

    #[test]
    fn the_longest_beginning_is_taken_each_time() {
        assert_eq!(ids("unable"), [1, 3]);
        assert_eq!(ids("unn"), [1, 5]);
        assert_eq!(ids("u\u{e9}\u{e9}n"), [4, 7, 5]);
        assert_eq!(ids("##"), [8]);
    }

    #[test]
    fn a_word_of_which_a_part_is_no_token_is_unknown_as_a_whole() {
        assert_eq!(ids("unx"), [0]);
        assert_eq!(ids("able"), [0]);
        assert_eq!(ids("u\u{e9}"), [0]);
    }

    #[test]
    fn words_of_too_many_characters_are_unknown() {
        assert_eq!(ids("unaffabl"), [0]);
        assert_eq!(ids("unnnnnnn"), [1, 5, 5, 5, 5, 5, 5]);
        assert_eq!(ids("unnnnnnnn"), [0]);
        assert_eq!(ids("\u{e9}\u{e9}\u{e9}nn"), [6, 7, 5, 5]);
        assert_eq!(ids("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}nnn"), [6, 7, 7, 5, 5, 5]);
    }
}

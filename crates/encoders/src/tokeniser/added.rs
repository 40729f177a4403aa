//! Tokens that are cut out of a text before anything else, such as `[UNK]` where a text has it.

/// The tokens with their ids, by the lengths of their texts, longest first.
#[derive(Debug)]
pub(super) struct AddedTokens {
    tokens: Vec<(String, u32)>,
    /// The bytes with which they begin.
    begin: [bool; 256],
}

impl AddedTokens {
    /// Of texts that are not empty, each with its id.
    pub(super) fn new(mut tokens: Vec<(String, u32)>) -> Self {
        tokens.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let mut begin = [false; 256];
        for (text, _) in &tokens {
            begin[usize::from(text.as_bytes()[0])] = true;
        }
        Self { tokens, begin }
    }

    /// The first of them in a text, of those that begin there the longest: what is before it, its
    /// id, and what is behind it.
    pub(super) fn split<'a>(&self, text: &'a str) -> Option<(&'a str, u32, &'a str)> {
        for (at, byte) in text.bytes().enumerate() {
            if !self.begin[usize::from(byte)] {
                continue;
            }
            let here = &text.as_bytes()[at..];
            let found = self.tokens.iter().find(|(token, _)| here.starts_with(token.as_bytes()));
            if let Some((token, id)) = found {
                return Some((&text[..at], *id, &text[at + token.len()..]));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(tokens: &[(&str, u32)]) -> AddedTokens {
        AddedTokens::new(tokens.iter().map(|(text, id)| ((*text).to_owned(), *id)).collect())
    }

    #[test]
    fn the_first_token_is_cut_out_and_of_several_there_the_longest() {
        let added = added(&[("[A]", 1), ("[A]x", 2), ("x", 3), ("\u{e9}", 4)]);
        assert_eq!(added.split("-[A]xx"), Some(("-", 2, "x")));
        assert_eq!(added.split("[A]"), Some(("", 1, "")));
        assert_eq!(added.split("yx[A]"), Some(("y", 3, "[A]")));
        // It begins with a byte of another character.
        assert_eq!(added.split("\u{e8}\u{e9}"), Some(("\u{e8}", 4, "")));
        assert_eq!(added.split("[a]"), None);
    }

    #[test]
    fn without_tokens_nothing_is_cut_out() {
        assert_eq!(added(&[]).split("[A]"), None);
    }
}

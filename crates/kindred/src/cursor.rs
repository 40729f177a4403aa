//! A place in a text that is read character by character, for messages that name it.

/// A place in a text, and what follows it.
pub(crate) struct Cursor<'a> {
    pub(crate) rest: &'a str,
    /// The next character of the text, from 1.
    pub(crate) column: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, column: 1 }
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Advances by this many bytes, which end at a character.
    pub(crate) fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.column += passed.chars().count();
        self.rest = rest;
    }
}

//! A place in a text that is read character by character, for messages that name it.

/// A place in a text, and what follows it.
pub struct Cursor<'a> {
    /// The text from here on.
    pub rest: &'a str,
    /// The next character of the text, from 1.
    pub column: usize,
}

impl<'a> Cursor<'a> {
    /// The beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Self { rest: text, column: 1 }
    }

    /// The next character.
    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Advances by this many bytes, which end at a character.
    pub fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.column += passed.chars().count();
        self.rest = rest;
    }

    /// Reads a text that begins with this quote, and advances past the closing one. In the text, a
    /// backslash stands before one of the `escaped` characters, each a byte.
    ///
    /// # Errors
    /// If it is no such text; the cursor is at the fault then.
    pub fn quoted(&mut self, quote: char, escaped: &[char]) -> Result<String, QuoteFault> {
        self.advance(quote.len_utf8());
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.advance(c.len_utf8());
            match (c, self.peek()) {
                (c, _) if c == quote => return Ok(text),
                ('\\', Some(next)) if escaped.contains(&next) => {
                    text.push(next);
                    self.advance(1);
                }
                ('\\', _) => return Err(QuoteFault::Backslash),
                (c, _) => text.push(c),
            }
        }
        Err(QuoteFault::Open)
    }
}

/// Why a text in quotes can't be read.
pub enum QuoteFault {
    /// A backslash stands before another character.
    Backslash,
    /// It has no closing quote.
    Open,
}

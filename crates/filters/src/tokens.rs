//! A filter as a row of tokens.

use super::ast::{Operator, is_bare, keyword};
use super::error::FilterError;
use crate::cursor::{Cursor, QuoteFault};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    /// Character of the filter at which it begins, from 1.
    pub(super) column: usize,
    pub(super) kind: TokenKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    /// A word without quotes that is no keyword.
    Word(String),
    Quoted(String),
    /// In capitals.
    Keyword(&'static str),
    Compare(Operator),
    NotEqual,
    Open,
    Close,
    OpenList,
    CloseList,
    Comma,
}

/// The tokens of a filter.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, FilterError> {
    let mut cursor = Cursor::new(text);
    let mut tokens = Vec::new();
    while let Some(c) = cursor.peek() {
        if c.is_whitespace() {
            cursor.advance(c.len_utf8());
            continue;
        }
        let column = cursor.column;
        let kind = match c {
            '(' => sign(&mut cursor, TokenKind::Open),
            ')' => sign(&mut cursor, TokenKind::Close),
            '[' => sign(&mut cursor, TokenKind::OpenList),
            ']' => sign(&mut cursor, TokenKind::CloseList),
            ',' => sign(&mut cursor, TokenKind::Comma),
            '"' | '\'' => TokenKind::Quoted(quoted(&mut cursor, c)?),
            '=' | '<' | '>' | '!' => operator(&mut cursor, c)?,
            c if is_bare(c) => word(&mut cursor)?,
            _ => {
                return Err(FilterError::expected(column, "no control character")
                    .hinting("a value with such a character needs quotes"));
            }
        };
        tokens.push(Token { column, kind });
    }
    Ok(tokens)
}

/// Goes past a sign of one byte, which is this token.
fn sign(cursor: &mut Cursor<'_>, kind: TokenKind) -> TokenKind {
    cursor.advance(1);
    kind
}

fn operator(cursor: &mut Cursor<'_>, first: char) -> Result<TokenKind, FilterError> {
    cursor.advance(1);
    let column = cursor.column;
    let second = cursor.peek();
    let is_equal = second == Some('=');
    if is_equal && first != '=' {
        cursor.advance(1);
    }
    match (first, second) {
        ('=', Some('=')) => Err(FilterError::expected(column, "a value").hinting("write `=`")),
        ('=', Some('<' | '>')) => {
            Err(FilterError::expected(column, "a value").hinting("write `<=` or `>=`"))
        }
        ('<', Some('>')) => Err(FilterError::expected(column, "a value").hinting("write `!=`")),
        ('=', _) => Ok(TokenKind::Compare(Operator::Equal)),
        ('<', Some('=')) => Ok(TokenKind::Compare(Operator::LessOrEqual)),
        ('<', _) => Ok(TokenKind::Compare(Operator::Less)),
        ('>', Some('=')) => Ok(TokenKind::Compare(Operator::GreaterOrEqual)),
        ('>', _) => Ok(TokenKind::Compare(Operator::Greater)),
        (_, Some('=')) => Ok(TokenKind::NotEqual),
        _ => Err(FilterError::expected(column, "`=` after `!`")
            .hinting("a negation is written NOT, as in NOT brand = acme")),
    }
}

/// A word without quotes, or a keyword.
fn word(cursor: &mut Cursor<'_>) -> Result<TokenKind, FilterError> {
    let end = cursor.rest.find(|c| !is_bare(c)).unwrap_or(cursor.rest.len());
    let word = &cursor.rest[..end];
    cursor.advance(end);
    if let Some('"' | '\'') = cursor.peek() {
        return Err(FilterError::expected(cursor.column, "no quote inside a word")
            .hinting("put the whole value in quotes and a backslash before a quote inside it"));
    }
    Ok(match keyword(word) {
        Some(keyword) => TokenKind::Keyword(keyword),
        None => TokenKind::Word(word.to_owned()),
    })
}

/// A text in quotes of either kind, in which a backslash stands before a quote or a backslash.
fn quoted(cursor: &mut Cursor<'_>, quote: char) -> Result<String, FilterError> {
    let text = cursor.quoted(quote, &['"', '\'', '\\']);
    let fault = |expected| FilterError::expected(cursor.column, expected);
    match (text, cursor.peek()) {
        (Err(QuoteFault::Backslash), _) => Err(fault("a quote or a backslash after a backslash")
            .hinting("a backslash in quotes is written \\\\")),
        (Err(QuoteFault::Open), _) => {
            Err(fault("a closing quote").hinting("an opening quote has no closing one"))
        }
        (Ok(_), Some(next)) if is_bare(next) || next == '"' || next == '\'' => {
            Err(fault("a space after the closing quote")
                .hinting("put a backslash before a quote inside a text"))
        }
        (Ok(text), _) => Ok(text),
    }
}

//! An expression as a row of pieces.

use filters::{Cursor, QuoteFault};

use super::ExpressionError;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    /// Character of the expression at which it begins, from 1.
    pub(super) column: usize,
    pub(super) kind: PieceKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum PieceKind {
    /// 1 or −1.
    Sign(f64),
    Open,
    Close,
    /// A number and its `*`.
    Weight(f64),
    Word(String),
}

/// More than any valid expression has: 256 terms, each with a sign, a weight and 64 pairs of
/// parentheses. With more than this an expression can't be valid, and the rest is not kept.
const MAX_PIECES: usize = 1 << 16;

/// Splits at white space and at unquoted parentheses, then takes signs and weights off the pieces.
pub(super) fn split(text: &str) -> Result<Vec<Piece>, ExpressionError> {
    let mut cursor = Cursor::new(text);
    let mut pieces = Vec::new();
    while let Some(c) = cursor.peek()
        && pieces.len() < MAX_PIECES
    {
        let column = cursor.column;
        match c {
            '(' | ')' => {
                let kind = if c == '(' { PieceKind::Open } else { PieceKind::Close };
                cursor.advance(1);
                pieces.push(Piece { column, kind });
            }
            c if c.is_whitespace() => cursor.advance(c.len_utf8()),
            _ => bare_piece(&mut cursor, &mut pieces)?,
        }
    }
    Ok(pieces)
}

/// One piece between white space and parentheses: `[sign] [NUMBER*] [word]`, not all of them
/// absent.
fn bare_piece(cursor: &mut Cursor<'_>, pieces: &mut Vec<Piece>) -> Result<(), ExpressionError> {
    let column = cursor.column;
    let sign = match cursor.peek() {
        Some('+') => Some(1.0),
        Some('-') => Some(-1.0),
        _ => None,
    };
    if let Some(sign) = sign {
        cursor.advance(1);
        pieces.push(Piece { column, kind: PieceKind::Sign(sign) });
    }
    let column = cursor.column;
    if let Some(length) = weight_length(cursor.rest) {
        // The text is a decimal number, so it has a value; too large a one is infinite.
        let number: f64 = cursor.rest[..length].parse().unwrap_or(f64::INFINITY);
        if !number.is_finite() {
            return Err(ExpressionError::new(column, "a finite number as the weight"));
        }
        cursor.advance(length + 1);
        pieces.push(Piece { column, kind: PieceKind::Weight(number) });
    }
    let column = cursor.column;
    if cursor.peek() == Some('"') {
        let word = quoted_word(cursor)?;
        pieces.push(Piece { column, kind: PieceKind::Word(word) });
        return match cursor.peek() {
            None | Some('(' | ')') => Ok(()),
            Some(c) if c.is_whitespace() => Ok(()),
            Some(_) => Err(ExpressionError::new(
                cursor.column,
                "white space, a parenthesis or the end after the closing quote",
            )),
        };
    }
    let end = |c: char| c.is_whitespace() || c == '(' || c == ')';
    let word = &cursor.rest[..cursor.rest.find(end).unwrap_or(cursor.rest.len())];
    if let Some(at) = word.find('"') {
        cursor.advance(at);
        return Err(ExpressionError::new(cursor.column, "no quote inside a word")
            .hinting("put the whole word in double quotes and write \\\" for a quote inside it"));
    }
    if !word.is_empty() {
        pieces.push(Piece { column, kind: PieceKind::Word(word.to_owned()) });
        cursor.advance(word.len());
    }
    Ok(())
}

/// A word in double quotes, in which `\"` is a quote and `\\` a backslash.
fn quoted_word(cursor: &mut Cursor<'_>) -> Result<String, ExpressionError> {
    let opening = cursor.column;
    match cursor.quoted('"', &['"', '\\']) {
        Ok(word) if word.is_empty() => {
            Err(ExpressionError::new(opening, "a word between the quotes"))
        }
        Ok(word) => Ok(word),
        Err(QuoteFault::Backslash) => {
            Err(ExpressionError::new(cursor.column, "`\"` or `\\` after a backslash"))
        }
        Err(QuoteFault::Open) => Err(ExpressionError::new(cursor.column, "a closing quote")
            .hinting("an opening double quote has no closing one")),
    }
}

/// Length of the decimal number at the start, if `*` follows it: digits with or without a point
/// among them, with or without an exponent.
pub(super) fn weight_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(0);
    let mut length = whole;
    let mut fraction = 0;
    if bytes.get(length) == Some(&b'.') {
        fraction = digits(length + 1);
        length += 1 + fraction;
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits((length + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    (bytes.get(length) == Some(&b'*')).then_some(length)
}

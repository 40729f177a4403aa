//! Word arithmetic as people write it: `king - man + woman`, `0.5*(paris + "new york")`.
//!
//! An expression is split at white space and at unquoted parentheses. A piece that is exactly `+`
//! or `-`, or one leading sign of a piece, is an operator. A piece that begins with NUMBER`*` has
//! that weight, which may also stand before a parenthesis. Everything else is a word, so
//! `well-known`, `covid-19` and `c++` are words, and a number alone is a word.
//!
//! ```text
//! expression = [sign] term { sign term }
//! term       = [NUMBER "*"] ( word | "(" expression ")" )
//! ```

mod pieces;
mod typing;
mod unspaced;

use model_store::plus_in_url;

use pieces::{Piece, PieceKind, split};
pub use typing::{as_term, open_piece};
pub(crate) use unspaced::spaced;

/// Terms that one expression may have.
pub const MAX_TERMS: usize = 256;

/// Parentheses that may be open at once.
pub const MAX_NESTING: usize = 64;

/// A word of an expression and its weight: the product of all signs and numbers that apply to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The word, without quotes.
    pub word: String,
    /// Finite.
    pub weight: f64,
}

/// Where an expression can't be read, and what would have been right there.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the expression can't be read at column {column}: expected {expected}{}", hint.map(|hint| format!(" ({hint})")).unwrap_or_default())]
pub struct ExpressionError {
    /// Character of the expression, from 1.
    pub column: usize,
    /// What should stand there.
    pub expected: &'static str,
    /// What the writer may have meant.
    pub hint: Option<&'static str>,
}

impl ExpressionError {
    fn new(column: usize, expected: &'static str) -> Self {
        Self { column, expected, hint: None }
    }

    fn hinting(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }
}

/// The terms of an expression, in the order in which they are written.
///
/// ```
/// use kindred::expression::parse;
///
/// let terms = parse("king - 0.5*(man + well-known)")?;
/// let terms: Vec<(&str, f64)> = terms.iter().map(|term| (&term.word[..], term.weight)).collect();
/// assert_eq!(terms, [("king", 1.0), ("man", -0.5), ("well-known", -0.5)]);
///
/// let error = parse("king man").unwrap_err();
/// assert_eq!((error.column, error.expected), (6, "`+`, `-` or the end"));
/// # Ok::<(), kindred::expression::ExpressionError>(())
/// ```
///
/// # Errors
/// The first column where it can't be read.
pub fn parse(text: &str) -> Result<Vec<Term>, ExpressionError> {
    let pieces = split(text)?;
    let end = text.chars().count() + 1;
    let mut parser = Parser { pieces: pieces.into_iter().peekable(), end, terms: Vec::new() };
    parser.expression(1.0, 0)?;
    match parser.pieces.next() {
        None => Ok(parser.terms),
        // An expression ends before a piece that is no operator.
        Some(piece) => Err(after_term(&piece)),
    }
}

struct Parser {
    pieces: std::iter::Peekable<std::vec::IntoIter<Piece>>,
    /// The column behind the last character.
    end: usize,
    terms: Vec<Term>,
}

const OPERATOR: &str = "`+`, `-` or the end";

/// What is wrong with a piece that follows a complete term.
fn after_term(piece: &Piece) -> ExpressionError {
    let error = ExpressionError::new(piece.column, OPERATOR);
    match &piece.kind {
        PieceKind::Word(word) if word.starts_with(|c: char| unspaced::sign(c).is_some()) => {
            error.hinting("such a dash or sign is read as a letter; write - or + as on a keyboard")
        }
        PieceKind::Word(word) if word.starts_with(['*', '×', '·']) => {
            error.hinting("a weight is written directly before its word, as in 2*king")
        }
        PieceKind::Word(word) if word.starts_with(['/', '÷']) => {
            error.hinting("there is no division; write a weight before the word, as in 0.5*king")
        }
        PieceKind::Word(_) => error.hinting(concat!(
            "two words need an operator between them; ",
            plus_in_url!(),
            "; a word with a space in it needs double quotes"
        )),
        PieceKind::Open | PieceKind::Close => error.hinting(
            "a word with parentheses in it needs double quotes, as in \"mercury_(planet)\"",
        ),
        _ => error,
    }
}

impl Parser {
    fn expression(&mut self, weight: f64, nesting: usize) -> Result<(), ExpressionError> {
        let sign = self.sign().unwrap_or(1.0);
        self.term(sign * weight, nesting)?;
        while let Some(sign) = self.sign() {
            self.term(sign * weight, nesting)?;
        }
        Ok(())
    }

    fn sign(&mut self) -> Option<f64> {
        let PieceKind::Sign(sign) = self.pieces.peek()?.kind else { return None };
        self.pieces.next();
        Some(sign)
    }

    fn term(&mut self, mut weight: f64, nesting: usize) -> Result<(), ExpressionError> {
        let mut expected = "a word, a weight like `0.5*` or `(`";
        if let Some(Piece { column, kind: PieceKind::Weight(number) }) =
            self.pieces.next_if(|piece| matches!(piece.kind, PieceKind::Weight(_)))
        {
            weight *= number;
            if !weight.is_finite() {
                return Err(ExpressionError::new(column, "a finite number as the weight"));
            }
            expected = "a word or `(` directly after the weight";
        }
        match self.pieces.next() {
            Some(Piece { column, kind: PieceKind::Word(word) }) => {
                if self.terms.len() == MAX_TERMS {
                    return Err(ExpressionError::new(
                        column,
                        "the end, because 256 terms are the maximum",
                    ));
                }
                self.terms.push(Term { word, weight });
                Ok(())
            }
            Some(Piece { column, kind: PieceKind::Open }) => {
                if nesting == MAX_NESTING {
                    return Err(ExpressionError::new(
                        column,
                        "a word, because 64 open parentheses are the maximum",
                    ));
                }
                self.expression(weight, nesting + 1)?;
                match self.pieces.next() {
                    Some(Piece { kind: PieceKind::Close, .. }) => Ok(()),
                    None => Err(ExpressionError::new(self.end, "`+`, `-` or `)`")),
                    Some(piece) => {
                        Err(ExpressionError { expected: "`+`, `-` or `)`", ..after_term(&piece) })
                    }
                }
            }
            Some(piece) => Err(ExpressionError::new(piece.column, expected)),
            None => Err(ExpressionError::new(self.end, expected)),
        }
    }
}

#[cfg(test)]
mod tests;

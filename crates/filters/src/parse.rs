//! From tokens to an expression.

use super::ast::{Condition, Expression, Operator, Place, Test, Written};
use super::error::FilterError;
use super::tokens::{Token, TokenKind, tokens};

/// Bytes that a filter may have.
pub const MAX_LENGTH: usize = 1 << 16;

/// Parentheses that may be open at once.
pub const MAX_NESTING: usize = 64;

/// Tests that a filter may have: each looks at one attribute of every row.
pub const MAX_TESTS: usize = 256;

/// Values that a filter may have.
pub const MAX_VALUES: usize = 10_000;

const OPERATOR: &str =
    "`=`, `!=`, `<`, `<=`, `>`, `>=`, `TO`, `IN`, `EXISTS`, `IS NULL` or `STARTS WITH`";

/// Reads a filter.
///
/// ```
/// use filters::parse;
///
/// let filter = parse("category = shoes AND (price < 80 OR NOT brand IN [acme, \"big foot\"])")?;
/// assert_eq!(filter.tests(), 3);
///
/// let error = parse("price 10 < 20").unwrap_err();
/// assert_eq!(error.column, 10);
/// # Ok::<(), filters::FilterError>(())
/// ```
///
/// # Errors
/// The first column where it can't be read, or has more of something than it may.
pub fn parse(text: &str) -> Result<Expression, FilterError> {
    if text.len() > MAX_LENGTH {
        let within = text.char_indices().take_while(|(at, _)| *at < MAX_LENGTH).count();
        return Err(FilterError::too_many(within + 1, "bytes", MAX_LENGTH));
    }
    let tokens = tokens(text)?.into_iter().peekable();
    let end = text.chars().count() + 1;
    let mut parser = Parser { tokens, end, tests: 0, values: 0 };
    let expression = parser.any(0)?;
    match parser.tokens.next() {
        None => Ok(expression),
        // An expression ends before a token that is no `AND` or `OR`.
        Some(token) => Err(after_test(&token, "`AND`, `OR` or the end")),
    }
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    /// The column behind the last character.
    end: usize,
    tests: usize,
    values: usize,
}

/// What is wrong with a token that follows a complete test.
fn after_test(token: &Token, expected: &'static str) -> FilterError {
    let error = FilterError::expected(token.column, expected);
    match &token.kind {
        TokenKind::Word(word) if word.starts_with('&') => error.hinting("write AND"),
        TokenKind::Word(word) if word.starts_with('|') => error.hinting("write OR"),
        TokenKind::Word(_) | TokenKind::Quoted(_) => {
            error.hinting("a value with a space in it needs quotes")
        }
        TokenKind::Compare(_) | TokenKind::NotEqual => {
            error.hinting("two tests need AND between them; a range is written price 10 TO 20")
        }
        TokenKind::Keyword("TO") => error.hinting("a range has no sign: price 10 TO 20"),
        TokenKind::Comma => error.hinting("several values are written IN [a, b]"),
        _ => error,
    }
}

impl Parser {
    fn any(&mut self, nesting: usize) -> Result<Expression, FilterError> {
        let mut parts = vec![self.all(nesting)?];
        while self.takes("OR") {
            parts.push(self.all(nesting)?);
        }
        Ok(Expression::any(parts))
    }

    fn all(&mut self, nesting: usize) -> Result<Expression, FilterError> {
        let mut parts = vec![self.part(nesting)?];
        while self.takes("AND") {
            parts.push(self.part(nesting)?);
        }
        Ok(Expression::all(parts))
    }

    fn part(&mut self, nesting: usize) -> Result<Expression, FilterError> {
        let mut is_negated = false;
        while self.takes("NOT") {
            is_negated = !is_negated;
        }
        let is_open = |token: &Token| token.kind == TokenKind::Open;
        let expression = match self.tokens.next_if(is_open) {
            None => self.test()?,
            Some(open) if nesting == MAX_NESTING => {
                return Err(FilterError::too_many(open.column, "open parentheses", MAX_NESTING));
            }
            Some(_) => {
                let inner = self.any(nesting + 1)?;
                match self.tokens.next() {
                    Some(Token { kind: TokenKind::Close, .. }) => inner,
                    Some(token) => return Err(after_test(&token, "`AND`, `OR` or `)`")),
                    None => return Err(FilterError::expected(self.end, "`AND`, `OR` or `)`")),
                }
            }
        };
        Ok(if is_negated { expression.negated() } else { expression })
    }

    /// One test, which may be negated by its operator.
    fn test(&mut self) -> Result<Expression, FilterError> {
        let name = self.name()?;
        self.tests += 1;
        if self.tests > MAX_TESTS {
            return Err(FilterError::too_many(name.place.0, "tests", MAX_TESTS));
        }
        let Some(token) = self.tokens.next() else {
            return Err(without_operator(&name, self.end));
        };
        let place = Place(token.column);
        let (condition, is_met) = match token.kind {
            TokenKind::Compare(operator) => (Condition::Compare(operator, self.value()?), true),
            TokenKind::NotEqual => (Condition::Compare(Operator::Equal, self.value()?), false),
            TokenKind::Keyword("IN") => (self.list()?, true),
            TokenKind::Keyword("EXISTS") => (Condition::Exists, true),
            TokenKind::Keyword("STARTS") => (self.prefix()?, true),
            TokenKind::Keyword("NOT") => {
                let expected = "`IN`, `EXISTS` or `STARTS WITH`";
                let condition = match self.tokens.next() {
                    Some(Token { kind: TokenKind::Keyword("IN"), .. }) => self.list()?,
                    Some(Token { kind: TokenKind::Keyword("EXISTS"), .. }) => Condition::Exists,
                    Some(Token { kind: TokenKind::Keyword("STARTS"), .. }) => self.prefix()?,
                    Some(other) => return Err(FilterError::expected(other.column, expected)),
                    None => return Err(FilterError::expected(self.end, expected)),
                };
                (condition, false)
            }
            TokenKind::Keyword("IS") => {
                let is_met = self.takes("NOT");
                self.expect("NULL", "`NULL` or `NOT NULL`")?;
                (Condition::Exists, is_met)
            }
            TokenKind::Word(from) | TokenKind::Quoted(from) if self.takes("TO") => {
                self.count_value(place)?;
                let from = Written { text: from, place };
                (Condition::Range(from, self.value()?), true)
            }
            TokenKind::Word(_) | TokenKind::Quoted(_) => {
                // A range without `TO`, or no operator at all.
                let column = self.tokens.peek().map_or(self.end, |next| next.column);
                return Err(match self.tokens.peek().map(|next| &next.kind) {
                    Some(TokenKind::Compare(_) | TokenKind::NotEqual) => {
                        FilterError::expected(column, "`TO`")
                            .hinting("a range is written price 10 TO 20")
                    }
                    _ => FilterError::expected(place.0, OPERATOR)
                        .hinting("a value follows an operator, as in brand = acme"),
                });
            }
            _ => return Err(without_operator(&name, token.column)),
        };
        let test = Expression::Test(Test { name, condition, place });
        Ok(if is_met { test } else { test.negated() })
    }

    fn name(&mut self) -> Result<Written, FilterError> {
        let error =
            |column| FilterError::expected(column, "the name of an attribute, `NOT` or `(`");
        match self.tokens.next() {
            Some(Token { column, kind: TokenKind::Word(text) }) => {
                Ok(Written { text, place: Place(column) })
            }
            Some(Token { column, kind: TokenKind::Quoted(_) }) => {
                Err(error(column).hinting("names have no quotes, as in brand = \"big foot\""))
            }
            Some(Token { column, .. }) => Err(error(column)),
            None => Err(error(self.end)),
        }
    }

    fn value(&mut self) -> Result<Written, FilterError> {
        let error = |column| FilterError::expected(column, "a value");
        match self.tokens.next() {
            Some(Token { column, kind: TokenKind::Word(text) | TokenKind::Quoted(text) }) => {
                self.count_value(Place(column))?;
                Ok(Written { text, place: Place(column) })
            }
            Some(Token { column, kind: TokenKind::Keyword("NULL") }) => {
                Err(error(column).hinting("rows without a value are those that IS NULL"))
            }
            Some(Token { column, kind: TokenKind::Keyword(_) }) => {
                Err(error(column).hinting("a word that is a keyword needs quotes"))
            }
            Some(Token { column, kind: TokenKind::OpenList }) => {
                Err(error(column).hinting("a list follows IN"))
            }
            Some(Token { column, .. }) => Err(error(column)),
            None => Err(error(self.end)),
        }
    }

    fn count_value(&mut self, place: Place) -> Result<(), FilterError> {
        self.values += 1;
        match self.values > MAX_VALUES {
            true => Err(FilterError::too_many(place.0, "values", MAX_VALUES)),
            false => Ok(()),
        }
    }

    /// A list after `IN`.
    fn list(&mut self) -> Result<Condition, FilterError> {
        match self.tokens.next() {
            Some(Token { kind: TokenKind::OpenList, .. }) => {}
            token => {
                let column = token.map_or(self.end, |token| token.column);
                return Err(FilterError::expected(column, "`[`")
                    .hinting("values in brackets, as in IN [acme, \"big foot\"]"));
            }
        }
        let mut values = Vec::new();
        if self.tokens.next_if(|token| token.kind == TokenKind::CloseList).is_some() {
            return Ok(Condition::one_of(values));
        }
        loop {
            values.push(self.value()?);
            match self.tokens.next() {
                Some(Token { kind: TokenKind::Comma, .. }) => {}
                Some(Token { kind: TokenKind::CloseList, .. }) => {
                    return Ok(Condition::one_of(values));
                }
                token => {
                    let column = token.map_or(self.end, |token| token.column);
                    return Err(FilterError::expected(column, "`,` or `]`"));
                }
            }
        }
    }

    /// A prefix after `STARTS`.
    fn prefix(&mut self) -> Result<Condition, FilterError> {
        self.expect("WITH", "`WITH`")?;
        Ok(Condition::StartsWith(self.value()?))
    }

    /// Takes a keyword if it is the next token.
    fn takes(&mut self, keyword: &str) -> bool {
        let is_next = |token: &Token| matches!(token.kind, TokenKind::Keyword(k) if k == keyword);
        self.tokens.next_if(is_next).is_some()
    }

    fn expect(&mut self, keyword: &str, expected: &'static str) -> Result<(), FilterError> {
        let column = self.tokens.peek().map_or(self.end, |token| token.column);
        match self.takes(keyword) {
            true => Ok(()),
            false => Err(FilterError::expected(column, expected)),
        }
    }
}

/// The error of a name that no operator follows.
fn without_operator(name: &Written, column: usize) -> FilterError {
    let error = FilterError::expected(column, OPERATOR);
    match name.text.contains(':') {
        true => error.hinting("a value follows `=`, as in brand = acme"),
        false => error,
    }
}

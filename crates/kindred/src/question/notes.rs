//! What answers say of the words that were asked for.

use std::collections::HashSet;

use contract::Row;
use encoders::TextTokens;

use crate::added::SubwordsOf;

/// What an answer says of the words that were asked for.
#[derive(Debug, Default)]
pub struct Notes {
    /// The words of a text that the model has.
    pub used: Option<Vec<Row>>,
    /// The words that were left out, if words may be.
    pub skipped: Option<Vec<String>>,
    /// The words that have the vectors of their subwords, if there are any.
    pub subwords: Option<Vec<SubwordsOf>>,
    /// The tokens of a text that an encoder has made a vector of. In a box, because every answer's
    /// future has these notes, and few have tokens.
    pub tokens: Option<Box<TextTokens>>,
}

impl Notes {
    /// Bytes of the words that have the vectors of their subwords.
    pub fn bytes(&self) -> usize {
        self.subwords.iter().flatten().map(SubwordsOf::bytes).sum()
    }
}

/// Rows without repetitions, by their first appearance.
pub(super) fn each_row_once(rows: &[Row]) -> Vec<Row> {
    let mut seen = HashSet::new();
    rows.iter().copied().filter(|&row| seen.insert(row)).collect()
}

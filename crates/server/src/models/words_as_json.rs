//! The words of a model as they are written in answers.

use std::collections::HashMap;

use kindred::contract::Row;
use kindred::{ModelStore, Words};

/// The words of a model as they are written in answers, in quotes. Nearly all are written as their
/// own bytes. The few that need escapes are escaped once, when the model is loaded.
#[derive(Debug)]
pub struct WordsAsJson {
    /// A bit for each row: whether its word is in `escaped`.
    needs_escapes: Vec<u64>,
    /// The words that need escapes, escaped and with their quotes.
    escaped: HashMap<Row, Box<[u8]>>,
}

impl WordsAsJson {
    /// Finds the words that need escapes, and escapes them.
    pub fn new(words: &Words) -> Self {
        let mut needs_escapes = vec![0u64; words.len().div_ceil(64)];
        let mut escaped = HashMap::new();
        for row in words.rows_with_byte(|b| b < b' ' || b == b'"' || b == b'\\') {
            needs_escapes[row.index() / 64] |= 1 << (row.index() % 64);
            let json = serde_json::to_vec(words.word(row)).expect("a text becomes JSON");
            escaped.insert(row, json.into_boxed_slice());
        }
        Self { needs_escapes, escaped }
    }

    /// Appends the word of a row of this model.
    #[inline]
    pub fn write(&self, body: &mut Vec<u8>, model: &ModelStore, row: Row) {
        if self.needs_escapes[row.index() / 64] >> (row.index() % 64) & 1 == 1
            && let Some(word) = self.escaped.get(&row)
        {
            return body.extend_from_slice(word);
        }
        body.push(b'"');
        body.extend_from_slice(model.words().bytes(row));
        body.push(b'"');
    }
}

//! Word → row by a hash table: several times as fast as the map of the folder, and made from it in
//! memory.

use std::fmt;
use std::hash::BuildHasher;

use contract::Row;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::Words;

/// The rows of all words by their hashes. The words themselves stay in their file.
pub(super) struct WordTable {
    hasher: DefaultHashBuilder,
    rows: HashTable<u32>,
}

impl fmt::Debug for WordTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table of {} words", self.rows.len())
    }
}

impl WordTable {
    pub(super) fn new(words: &Words) -> Self {
        let hasher = DefaultHashBuilder::default();
        let hash = |row: u32| hasher.hash_one(words.bytes(Row(row)));
        let mut rows = HashTable::with_capacity(words.len());
        for row in 0..words.len() as u32 {
            rows.insert_unique(hash(row), row, |&row| hash(row));
        }
        Self { hasher, rows }
    }

    pub(super) fn row(&self, words: &Words, word: &str) -> Option<Row> {
        let is_it = |&row: &u32| words.bytes(Row(row)) == word.as_bytes();
        self.rows.find(self.hasher.hash_one(word.as_bytes()), is_it).map(|&row| Row(row))
    }
}

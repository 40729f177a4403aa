//! Key → row, at any position that somebody still looks at.
//!
//! A key of the base has its row there. For each key that was upserted, a map has its last row, and
//! each row the one that it replaced. A snapshot follows them back to the last row that it has, and
//! its own set of dead rows says whether that one lives.

use std::sync::Arc;

use contract::Row;
use hashbrown::HashMap;

/// The rows of all keys that were upserted.
#[derive(Debug)]
pub(super) struct Keys {
    first: Row,
    last: HashMap<Arc<str>, Row>,
    /// For each row behind the base, the row that had its key before.
    before: Vec<Option<Row>>,
}

impl Keys {
    /// No keys yet; the first row will be this one.
    pub(super) fn new(first: Row) -> Self {
        Self { first, last: HashMap::new(), before: Vec::new() }
    }

    /// The last row of a key, dead or alive, if it is behind the base.
    pub(super) fn last(&self, key: &str) -> Option<Row> {
        self.last.get(key).copied()
    }

    /// The next row has this key, which was that of the row `before`.
    pub(super) fn push(&mut self, key: Arc<str>, before: Option<Row>) {
        let row = Row(self.first.0 + self.before.len() as u32);
        self.before.push(before);
        self.last.insert(key, row);
    }

    /// The last row of a key among those before `end`.
    pub(super) fn before(&self, key: &str, end: Row) -> KeyRow {
        let mut row = match self.last(key) {
            Some(row) => row,
            None => return KeyRow::OfBase,
        };
        while row >= end {
            let place = (row.0 - self.first.0) as usize;
            match self.before[place] {
                Some(before) => row = before,
                None => return KeyRow::None,
            }
        }
        KeyRow::Row(row)
    }
}

/// The row of a key at a position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum KeyRow {
    /// Only the base may have one.
    OfBase,
    /// This one, dead or alive.
    Row(Row),
    /// There was none yet.
    None,
}

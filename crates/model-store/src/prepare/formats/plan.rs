//! What it takes to read a particular file.

use std::sync::Arc;

use super::column::FirstColumn;
use super::index::IndexColumn;
use super::{Framing, Parsed, Parser};

/// How to read a file, from its first bytes and the user's options.
pub(in crate::prepare) struct Plan {
    /// For the model's provenance, such as `glove text`.
    pub(in crate::prepare) description: String,
    pub(in crate::prepare) dim: usize,
    /// Bytes before the first record.
    pub(in crate::prepare) skip: u64,
    pub(in crate::prepare) records: Unit,
    pub(in crate::prepare) framing: Box<dyn Framing>,
    pub(in crate::prepare) parser: Arc<dyn Parser>,
    /// The number of records, if it is known and the framing does not check it.
    pub(in crate::prepare) expected: Option<Expected>,
    /// The watch on a first column that may be something else.
    pub(in crate::prepare) first_column: Option<Watch>,
}

/// Watches the first column while rows are read; only their end shows its kind.
#[derive(Debug, Clone)]
pub(in crate::prepare) enum Watch {
    /// Of lines that begin with their word.
    Words(FirstColumn),
    /// Of lines of numbers only.
    Index(IndexColumn),
}

impl Watch {
    /// Looks at more rows.
    pub(in crate::prepare) fn see(&mut self, parsed: &Parsed) {
        match self {
            Self::Words(column) => column.see(parsed),
            Self::Index(column) => column.see(parsed),
        }
    }

    /// Why the column is something else, if so; `repeated` words were there before.
    pub(in crate::prepare) fn reason(&self, repeated: u64) -> Option<String> {
        match self {
            Self::Words(column) => column.is_a_matrix(repeated),
            Self::Index(column) => column.reason(),
        }
    }
}

/// A number of records that is known.
#[derive(Debug, Clone)]
pub(in crate::prepare) struct Expected {
    pub(in crate::prepare) rows: u64,
    /// Where it is from, for a file that has another number.
    pub(in crate::prepare) said: String,
    pub(in crate::prepare) cure: &'static str,
}

/// What messages call a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::prepare) enum Unit {
    /// A line; the first record has this line number, from 1.
    Line { first: u64 },
    /// A row at a byte.
    Row,
}

impl Unit {
    /// Its name in messages.
    pub(in crate::prepare) fn name(self) -> &'static str {
        match self {
            Self::Line { .. } => "line",
            Self::Row => "row",
        }
    }
}

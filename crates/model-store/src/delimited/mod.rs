//! Rows of CSV and TSV, by the same rules wherever they are read: attributes, and texts for
//! training, evaluation and bulk work.
//!
//! - A row ends with `\n`, `\r` or both. In CSV, quotes are those of RFC 4180; in TSV, a quote is a
//!   character as any other.
//! - Columns are found by name in any case ([`find`]).
//! - A row with more or fewer columns than the first one is bad: a cut text would pass for the
//!   whole one.

mod names;
mod reader;
mod whole;

pub use names::{NotFound, find, same_in_any_case};
pub use reader::{Bytes, Problem, Reader, Row, count_lines};
pub use whole::Whole;

/// A row with more bytes is bad, so that a quote that is never closed does not take all memory.
pub const MOST_ROW_BYTES: usize = 16 << 20;

/// The error of a quote that is opened and not closed.
pub const OPEN_QUOTE: &str = "it has a quote that is opened and not closed";

/// The error of a field that goes on after its quote.
pub const TEXT_AFTER_QUOTE: &str = "a field goes on after the quote that closes it; close each \
    quote before the next separator, and double the quotes within a field";

/// Sign between columns, and quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Commas, and quotes as in RFC 4180.
    Csv,
    /// The same with semicolons, as where commas begin the fractions of numbers.
    Semicolons,
    /// Tabs; quotes are plain characters.
    Tsv,
}

impl Dialect {
    /// The sign between columns.
    pub fn separator(self) -> u8 {
        match self {
            Self::Csv => b',',
            Self::Semicolons => b';',
            Self::Tsv => b'\t',
        }
    }

    /// Whether a column may be between quotes.
    pub fn has_quotes(self) -> bool {
        self != Self::Tsv
    }

    /// The error of a row that has not as many columns as the first one.
    pub fn other_width(self, found: usize, expected: usize) -> String {
        let cure = match (self, found > expected) {
            (Self::Csv, true) => "; put a text with commas between quotes",
            (Self::Semicolons, true) => "; put a text with semicolons between quotes",
            (Self::Tsv, true) => "; a text can't have tabs, nor be between quotes",
            _ => "",
        };
        let found = match (self, found) {
            (Self::Tsv, 1) => "no tab".to_owned(),
            (_, 1) => "1 column".to_owned(),
            _ => format!("{found} columns"),
        };
        format!("it has {found}; the first line has {expected}{cure}")
    }
}

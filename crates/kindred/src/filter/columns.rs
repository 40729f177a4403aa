//! The attributes of a model's rows, as filters see them.

use std::ops::Range;

use contract::Row;

/// Attributes beside the rows of a table.
pub trait Columns {
    /// The number of rows.
    fn rows(&self) -> usize;

    /// The attribute of this name.
    fn column(&self, name: &str) -> Option<Column<'_>>;

    /// The names of all attributes.
    fn names(&self) -> Vec<String>;

    /// The row with this word.
    fn row(&self, key: &str) -> Option<Row>;

    /// A date-time of RFC 3339, in microseconds since 1970 (UTC), as attributes have it.
    fn date_time(&self, text: &str) -> Option<i64>;
}

/// The values of an attribute.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    /// The values, by their type.
    pub values: Values<'a>,
    /// A bit for each row that has no value, `[rows / 64]`, rounded up; `None` if none lacks one.
    pub missing: Option<&'a [u64]>,
}

/// The values of an attribute, by their type. Where one is missing, it may be anything.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// `[rows]`.
    Integers(&'a [i64]),
    /// `[rows]`.
    Numbers(&'a [f64]),
    /// `[rows]`, 1 for true.
    Booleans(&'a [u8]),
    /// `[rows]`, microseconds since 1970 (UTC).
    DateTimes(&'a [i64]),
    /// Texts.
    Texts {
        /// `[rows]`, of the dictionary.
        codes: &'a [u32],
        /// The texts.
        dictionary: &'a dyn Dictionary,
    },
    /// Lists of texts.
    Lists {
        /// `[rows + 1]`: the codes of row `i` are `codes[starts[i]..starts[i + 1]]`.
        starts: &'a [u64],
        /// Of the dictionary.
        codes: &'a [u32],
        /// The texts.
        dictionary: &'a dyn Dictionary,
    },
}

/// The distinct texts of an attribute. Codes are in the order of the texts' bytes.
pub trait Dictionary {
    /// The code of a text.
    fn code(&self, text: &str) -> Option<u32>;

    /// The codes of the texts that begin with this.
    fn starting_with(&self, prefix: &str) -> Range<u32>;
}

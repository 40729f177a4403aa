//! Filters: which rows may be neighbours, by their attributes and words.
//!
//! ```text
//! category = shoes AND price < 80 AND NOT brand IN [acme, "big foot"]
//!
//! filter = all { OR all }
//! all    = part { AND part }
//! part   = { NOT } ( test | "(" filter ")" )
//! test   = NAME ( = | != | < | <= | > | >= ) value
//!        | NAME value TO value
//!        | NAME [ NOT ] IN "[" [ value { "," value } ] "]"
//!        | NAME [ NOT ] STARTS WITH value
//!        | NAME [ NOT ] EXISTS
//!        | NAME IS [ NOT ] NULL
//! value  = WORD | "TEXT" | 'TEXT'
//! ```
//!
//! Keywords are read in any case. A value needs quotes only if it has a space, one of the signs
//! above or a quote in it, or is a keyword; in quotes, `\"`, `\'` and `\\` are a quote and a
//! backslash. The name `key` stands for a row's word.
//!
//! - Texts are equal if all their characters are. A list is equal to each of its texts.
//! - Integers and date-times are compared exactly, however a number is written; `TO` has both ends.
//!   An attribute of numbers is float64, and so is a number with a point or an exponent that it is
//!   compared with; digits alone are compared exactly.
//! - A row without a value meets no test. So it meets `!=`, `NOT IN` and `NOT`, as do all rows that
//!   do not meet the test.
//!
//! [`parse`] reads a filter, [`check`] looks it up in the attributes of a model, and
//! the [`Plan`] makes the set of rows that meet it. [`FilterSets`] does all of this for a text, and
//! keeps the sets for other queries that name them; [`terms_of`] does it for an expander's terms.

mod ast;
mod check;
mod cursor;
mod error;
mod number;
mod parse;
mod plan;
mod sets;
mod tail;
mod terms;
mod tokens;
mod wanted;

pub use ast::{Condition, Expression, Operator, Place, Test, Written};
pub use check::alike;
pub use check::check;
pub use cursor::{Cursor, QuoteFault};
pub use error::{FilterError, FilterFault, SetError};
pub use model_store::attributes::KEY;
pub use parse::{MAX_LENGTH, MAX_NESTING, MAX_TESTS, MAX_VALUES, parse};
pub use plan::Plan;
pub use sets::{FilterCounts, FilterSets, SetsWhile};
pub use tail::TailFilters;
pub use terms::terms_of;

#[cfg(test)]
mod tests;

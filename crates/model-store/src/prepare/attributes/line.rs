//! A line of a file of attributes, as every format has it.

use indexmap::IndexSet;

use super::field::Field;

/// A line of CSV or of JSON lines: a record, which between quotes may have line feeds.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Its number in the file, from 1.
    pub(super) number: u64,
    /// The names of all fields so far, in the order in which they came.
    pub(super) names: &'a IndexSet<String>,
    /// Its fields, each with the index of its name; each name is there once at most.
    pub(super) fields: &'a [(usize, Field<'a>)],
}

/// Takes a line, or says what is wrong with it.
pub(super) type Take<'a> = &'a mut dyn FnMut(&Line<'_>) -> Result<(), String>;

/// The content of a file.
#[derive(Debug)]
pub(super) struct Read {
    /// The names of all fields.
    pub(super) names: IndexSet<String>,
    /// A warning if the end of the file was left out.
    pub(super) warning: Option<String>,
}

//! A line of a file of attributes, as every format has it.

use indexmap::IndexSet;

use super::field::Field;

/// A line of CSV or of JSON lines: a record, which between quotes may have line feeds.
#[derive(Debug)]
pub(in crate::prepare) struct Line<'a> {
    /// Its number in the file, from 1.
    pub(in crate::prepare) number: u64,
    /// The names of all fields so far, in the order in which they came.
    pub(in crate::prepare) names: &'a IndexSet<String>,
    /// Its fields, each with the index of its name; each name is there once at most.
    pub(in crate::prepare) fields: &'a [(usize, Field<'a>)],
}

/// Takes a line, or says what is wrong with it.
pub(in crate::prepare) type Take<'a> = &'a mut dyn FnMut(&Line<'_>) -> Result<(), String>;

/// Whether a field of this name is wanted.
pub(in crate::prepare) type Wanted<'a> = &'a dyn Fn(&str) -> bool;

/// Takes a line, with the bytes of the file that were read so far, if these are known.
pub(in crate::prepare) type TakeAt<'a> =
    &'a mut dyn FnMut(&Line<'_>, Option<u64>) -> Result<(), String>;

/// The content of a file.
#[derive(Debug)]
pub(in crate::prepare) struct Read {
    /// The names of all fields.
    pub(in crate::prepare) names: IndexSet<String>,
    /// A warning if the end of the file was left out.
    pub(in crate::prepare) warning: Option<String>,
}

//! Attributes in files whose format has a schema, and which another crate reads.

use std::fmt::Debug;
use std::fs::File;
use std::path::Path;

use indexmap::{IndexMap, IndexSet};

use super::bad;
use super::field::Field;
use super::line::{Line, Read, Take};
use crate::ModelError;
use crate::attributes::AttributeType;

/// Reads Apache Parquet. Its decoders are many crates, so they are not this one's.
///
/// An error is a reason, without the name of the file.
pub trait TableReader: Debug + Sync {
    /// The names and types of the file's columns, in their order.
    fn columns(&self, file: File) -> Result<Vec<(String, AttributeType)>, String>;

    /// Passes the fields of each row to `take`, one for each column, and adds the number of the row
    /// to the reasons that it returns. Returns a warning about the file.
    fn read(&self, file: File, take: TakeRow<'_>) -> Result<Option<String>, String>;
}

/// Takes the fields of a row, or says what is wrong with one.
pub type TakeRow<'a> = &'a mut dyn FnMut(&[Field<'_>]) -> Result<(), String>;

/// The names and types of a file's columns.
pub(super) fn columns(
    path: &Path,
    reader: &dyn TableReader,
) -> Result<IndexMap<String, AttributeType>, ModelError> {
    let mut columns = IndexMap::new();
    for (name, kind) in reader.columns(open(path)?).map_err(|reason| bad(path, reason))? {
        if columns.contains_key(&name) {
            return Err(bad(path, format!("two columns have the name {name:?}; rename one")));
        }
        columns.insert(name, kind);
    }
    Ok(columns)
}

/// Reads a file, row by row.
pub(super) fn read(
    path: &Path,
    reader: &dyn TableReader,
    take: Take<'_>,
) -> Result<Read, ModelError> {
    let names: IndexSet<String> = columns(path, reader)?.into_keys().collect();
    let mut number = 0;
    let warning = reader.read(open(path)?, &mut |fields| {
        if fields.len() != names.len() {
            return Err("has other columns: the file was changed while it was read".to_owned());
        }
        number += 1;
        let fields: Vec<_> = fields.iter().cloned().enumerate().collect();
        take(&Line { number, names: &names, fields: &fields })
    });
    let warning = warning.map_err(|reason| bad(path, reason))?;
    Ok(Read { names, warning })
}

fn open(path: &Path) -> Result<File, ModelError> {
    File::open(path).map_err(ModelError::io("open", path))
}

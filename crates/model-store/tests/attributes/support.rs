//! Models with attributes, and what their rows have.

use std::fs;

use contract::Row;
use model_store::ModelStore;
use model_store::attributes::{AttributeType, ColumnBuilder, Value};
use model_store::prepare::{AttributesFile, PrepareOptions};

use crate::formats::support::Scratch;

/// The name of the file of attributes.
pub(super) const FILE: &str = "words.any";

/// The options for vectors with this file of attributes, which is written.
pub(super) fn with(scratch: &Scratch, content: impl AsRef<[u8]>) -> PrepareOptions {
    fs::write(scratch.path(FILE), content).unwrap();
    let file = AttributesFile { path: scratch.path(FILE), ..AttributesFile::default() };
    PrepareOptions { attributes: Some(file), ..PrepareOptions::default() }
}

/// The same, joined by this field.
pub(super) fn joined(scratch: &Scratch, key: &str, content: impl AsRef<[u8]>) -> PrepareOptions {
    let mut options = with(scratch, content);
    options.attributes.as_mut().unwrap().key = Some(key.to_owned());
    options
}

/// The same with a type that is given.
pub(super) fn typed(
    mut options: PrepareOptions,
    name: &str,
    kind: AttributeType,
) -> PrepareOptions {
    options.attributes.as_mut().unwrap().types.push((name.to_owned(), kind));
    options
}

/// The values of an attribute as JSON, row by row, after its type.
pub(super) fn values(model: &ModelStore, name: &str) -> (AttributeType, Vec<String>) {
    let attributes = model.attributes().unwrap();
    assert_eq!(attributes.rows(), model.rows());
    let column = attributes.column(name).unwrap();
    let value = |row| serde_json::to_string(&column.get(Row(row))).unwrap();
    (column.kind(), (0..model.rows() as u32).map(value).collect())
}

/// A column of these values.
pub(super) fn column<'a>(
    name: &str,
    kind: AttributeType,
    values: impl IntoIterator<Item = Option<Value<'a>>>,
) -> ColumnBuilder {
    let mut column = ColumnBuilder::new(name, kind);
    values.into_iter().for_each(|value| column.push(value));
    column
}

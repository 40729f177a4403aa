//! The option `distinct`: of the rows with the same value of an attribute, the best alone is a
//! neighbour.

use std::sync::Arc;

use contract::Row;
use contract::full_pass::Groups;
use model_store::ModelStore;
use model_store::attributes::{AttributeType, Attributes, Column, Values};

use crate::Error;
use crate::filter::alike;
use crate::text::cut;

/// Names of attributes that an error lists at most.
const MAX_NAMES: usize = 10;

/// Rows with the same value of a column, whose values are no lists.
#[derive(Debug)]
struct SameValue(Column);

impl Groups for SameValue {
    /// The bits of the value, or its code: two rows have the same if they have the same value.
    fn group(&self, row: Row) -> Option<u64> {
        let (Self(column), index) = (self, row.index());
        if index >= column.rows() || column.is_missing(row) {
            return None;
        }
        match column.values() {
            Values::Integers(values) | Values::DateTimes(values) => {
                Some(values[index].cast_unsigned())
            }
            // None is −0.
            Values::Numbers(values) => Some(values[index].to_bits()),
            Values::Booleans(values) => Some(values[index].into()),
            Values::Texts { codes, .. } => Some(codes[index].into()),
            Values::Lists { .. } => None,
        }
    }
}

/// The rows with the same value of the attribute of this name.
///
/// # Errors
/// [`Error::InvalidValue`] if the model has no such attribute, or its values are lists.
pub(super) fn same_value(model: &ModelStore, name: String) -> Result<Arc<dyn Groups>, Error> {
    let all = model.attributes().map(Attributes::columns).unwrap_or_default();
    let column = all.iter().find(|column| column.name() == name);
    if let Some(column) = column.filter(|column| column.kind() != AttributeType::List) {
        return Ok(Arc::new(SameValue(column.clone())));
    }
    let without_lists = || all.iter().filter(|column| column.kind() != AttributeType::List);
    let mut names: Vec<&str> = without_lists().map(Column::name).collect();
    names.sort_unstable();
    let found = match (column, alike(&name, names.iter().copied())) {
        (Some(_), _) => format!("`{name}`, whose values are lists of texts"),
        (None, Some(alike)) => format!("`{}`; did you mean `{alike}`?", cut(name)),
        (None, None) => format!("`{}`", cut(name)),
    };
    let listed: Vec<String> =
        names.iter().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
    let known = match names.len() {
        0 => "the model has none".to_owned(),
        all if all > MAX_NAMES => format!("{} and {} more", listed.join(", "), all - MAX_NAMES),
        _ => listed.join(", "),
    };
    let expected = format!("an attribute whose values are no lists ({known})");
    Err(Error::InvalidValue {
        field: "distinct".into(),
        expected: expected.into(),
        found: Some(found.into()),
    })
}

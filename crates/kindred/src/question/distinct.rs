//! The option `distinct`: of the rows with the same value of an attribute, the best alone is a
//! neighbour.

use std::collections::HashMap;
use std::sync::Arc;

use contract::Row;
use contract::full_pass::Groups;
use filters::alike;
use model_store::attributes::{AttributeType, Column, Value, Values};
use model_store::cut;

use crate::Error;
use crate::rows::Rows;

/// Names of attributes that an error lists at most.
const MAX_NAMES: usize = 10;

/// Rows with the same value of a column, whose values are no lists.
#[derive(Debug)]
struct SameValue {
    column: Column,
    /// The groups of the rows behind those of the column.
    tail: Vec<Option<u64>>,
}

impl SameValue {
    /// The groups of the rows of a model's column of this number.
    fn new(model: &dyn Rows, number: usize) -> Self {
        let column = model.columns()[number].clone();
        let (mut tail, mut new_texts) = (Vec::new(), HashMap::new());
        let dictionary = match column.values() {
            Values::Texts { dictionary, .. } => Some(dictionary),
            _ => None,
        };
        let parts = model.snapshot().into_iter().flat_map(|snapshot| snapshot.tail());
        for row in parts.flat_map(|part| (0..part.len()).map(|place| part.row(place))) {
            let group = match row.attributes[number].as_ref() {
                None | Some(Value::List(_)) => None,
                Some(Value::Integer(value) | Value::DateTime(value)) => Some(value.cast_unsigned()),
                Some(Value::Number(value)) => Some(value.to_bits()),
                Some(Value::Boolean(value)) => Some((*value).into()),
                Some(Value::Text(text)) => {
                    let known = dictionary.and_then(|all| all.code(text)).map(u64::from);
                    Some(known.unwrap_or_else(|| {
                        // Codes of the dictionary have 32 bits.
                        let next = (1 << 32) + new_texts.len() as u64;
                        *new_texts.entry(text.to_string()).or_insert(next)
                    }))
                }
            };
            tail.push(group);
        }
        Self { column, tail }
    }
}

impl Groups for SameValue {
    /// The bits of the value, or its code: two rows have the same if they have the same value.
    fn group(&self, row: Row) -> Option<u64> {
        let (Self { column, tail }, index) = (self, row.index());
        if let Some(place) = index.checked_sub(column.rows()) {
            return tail.get(place).copied().flatten();
        }
        if column.is_missing(row) {
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
            Values::Lists { .. } | Values::Stored(_) => None,
        }
    }
}

/// Whether rows of a column can have the same value.
fn has_groups(column: &Column) -> bool {
    !matches!(column.kind(), AttributeType::List | AttributeType::Stored)
}

/// The rows with the same value of the attribute of this name.
///
/// # Errors
/// [`Error::InvalidValue`] if the model has no such attribute, or its values are lists or stored
/// texts.
pub(super) fn same_value(model: &dyn Rows, name: String) -> Result<Arc<dyn Groups>, Error> {
    let all = model.columns();
    let column = all.iter().position(|column| column.name() == name);
    if let Some(number) = column
        && has_groups(&all[number])
    {
        return Ok(Arc::new(SameValue::new(model, number)));
    }
    let mut names: Vec<&str> =
        all.iter().filter(|column| has_groups(column)).map(Column::name).collect();
    names.sort_unstable();
    let found = match (column, alike(&name, names.iter().copied())) {
        (Some(number), _) => match all[number].kind() {
            AttributeType::Stored => format!("`{name}`, whose texts are stored for display"),
            _ => format!("`{name}`, whose values are lists of texts"),
        },
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
    let expected = format!("an attribute that is no list and not stored ({known})");
    Err(Error::InvalidValue {
        field: "distinct".into(),
        expected: expected.into(),
        found: Some(found.into()),
    })
}

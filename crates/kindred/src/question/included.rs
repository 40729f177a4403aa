//! The parts of each neighbour that an answer has beside its word, score and row.

use std::sync::Arc;

use model_store::attributes::{AttributeType, Column};
use model_store::cut;

use crate::Error;
use crate::options::{WithAttributes, must_be};
use crate::rows::Rows;

/// Parts of each neighbour in an answer.
#[derive(Debug, Clone, Default)]
pub struct Included {
    /// Whether its vector is one.
    pub vectors: bool,
    /// The column of its text, if that is one. Two bytes: this is part of every request's future,
    /// and a model has at most 1,000 attributes.
    pub text: Option<u16>,
    /// The columns of its attributes, ascending.
    pub attributes: Option<Arc<[usize]>>,
}

impl Included {
    /// Those that are wanted of this model's rows.
    ///
    /// # Errors
    /// If the model keeps no texts, or has no such attribute.
    pub(super) fn new(
        model: &dyn Rows,
        with_vectors: Option<bool>,
        with_text: Option<bool>,
        with_attributes: Option<WithAttributes>,
    ) -> Result<Self, Error> {
        let text = match with_text {
            Some(true) => Some(column_of_text(model).ok_or_else(|| no_texts(model))?),
            _ => None,
        };
        let attributes = match with_attributes {
            Some(wanted) => columns(model, wanted)?,
            None => None,
        };
        Ok(Self { vectors: with_vectors.unwrap_or(false), text, attributes })
    }

    /// The columns that are read for each neighbour.
    pub fn columns<'a>(&'a self, model: &'a dyn Rows) -> impl Iterator<Item = &'a Column> {
        let all = model.columns();
        let attributes = self.attributes.iter().flat_map(|columns| columns.iter());
        let text = self.text.map(usize::from).into_iter();
        text.chain(attributes.copied()).filter_map(move |column| all.get(column))
    }
}

/// The column of the rows' texts: the first of the type `stored`.
fn column_of_text(model: &dyn Rows) -> Option<u16> {
    let column = model.columns().iter().position(|column| column.kind() == AttributeType::Stored);
    column.and_then(|column| column.try_into().ok())
}

fn no_texts(model: &dyn Rows) -> Error {
    let texts = model.columns().iter().filter(|column| column.kind() == AttributeType::Text);
    let reason = match texts.map(Column::name).next() {
        None => {
            "`with_text` needs the texts of the rows, and the model keeps none: prepare documents \
                 with --keep-text"
                .to_owned()
        }
        Some(name) => format!(
            "`with_text` needs the texts of the rows, and the model has no attribute of the type \
             `stored`: prepare documents with --keep-text, or name a text with `with_attributes`, \
             such as `{}`",
            cut(name.to_owned())
        ),
    };
    Error::InvalidRequest { reason }
}

/// The columns of the attributes that are wanted, ascending; `None` for none at all.
fn columns(model: &dyn Rows, wanted: WithAttributes) -> Result<Option<Arc<[usize]>>, Error> {
    let all = model.columns();
    let names = match wanted {
        WithAttributes::All(false) => return Ok(None),
        WithAttributes::All(true) => return Ok(Some((0..all.len()).collect())),
        WithAttributes::Named(names) => names,
    };
    let column = |name: String| {
        all.iter().position(|column| column.name() == name).ok_or_else(|| Error::InvalidValue {
            field: "with_attributes".into(),
            expected: must_be("with_attributes").unwrap_or_default().into(),
            found: Some(format!("`{}`", cut(name)).into()),
        })
    };
    let mut columns = names.into_iter().map(column).collect::<Result<Vec<_>, _>>()?;
    columns.sort_unstable();
    columns.dedup();
    Ok(Some(columns.into()))
}

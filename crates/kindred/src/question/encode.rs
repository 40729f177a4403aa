//! The vector of a text: the one that a search for the text has.

use contract::TableRows as _;

use super::formula::Formula;
use super::prepare::{Notes, Resolved, resolve};
use super::target::Target;
use crate::options::Unknown;
use crate::rows::Rows;
use crate::{Error, Method};

/// A text as a vector.
#[derive(Debug)]
pub struct EncodedText {
    /// The sum of the unit vectors of its words, divided by its norm, `[dim]`; under the metric `dot`
    /// the sum of their vectors. The same bits in every batch and on every engine.
    pub vector: Vec<f32>,
    /// Which words were used, left out, or have the vectors of their subwords.
    pub notes: Notes,
}

/// The vector of a text. Without `unknown`, words that the model does not have are left out, or have
/// the vectors of their subwords if the model has these.
///
/// # Errors
/// [`Error::InvalidValue`] unless the text has 1 to 256 words; [`Error::UnknownWord`] if the model
/// has none of them; [`Error::ZeroQuery`] if a word or the sum is a zero vector.
pub fn encode(
    model: &dyn Rows,
    text: String,
    unknown: Option<Unknown>,
) -> Result<EncodedText, Error> {
    let target = Target::Text(text);
    let Resolved { formula, notes, .. } =
        resolve(model, target, Method::ThreeCosAdd, unknown, false)?;
    let Formula::Vector { vector, .. } = formula else { return Err(Error::Internal) };
    let table = model.table();
    debug_assert_eq!(vector.components_in(&table).len(), table.dim(), "components of a vector");
    Ok(EncodedText { vector: vector.components_in(&table).to_vec(), notes })
}

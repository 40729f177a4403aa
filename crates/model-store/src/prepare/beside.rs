//! The files beside those of the vectors, which are read before any row.

use super::PrepareOptions;
use super::attributes::AttributeTable;
use super::biases::Biases;
use super::text_weights::TextWeighting;
use crate::ModelError;
use contract::Metric;

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub(super) biases: Option<Biases>,
    pub(super) attributes: Option<AttributeTable>,
    pub(super) weighting: Option<TextWeighting>,
}

impl Beside {
    /// Reads the files that the options name.
    pub(super) fn read(options: &PrepareOptions) -> Result<Self, ModelError> {
        check_biases(options)?;
        let PrepareOptions { biases, attributes, text_weights, encoding, .. } = options;
        let biases = biases.as_deref().map(|path| Biases::read(path, *encoding)).transpose()?;
        let attributes = attributes.as_ref().map(|file| AttributeTable::read(file, *encoding));
        let weighting = text_weights.as_ref().map(|from| TextWeighting::read(from, *encoding));
        Ok(Self { biases, attributes: attributes.transpose()?, weighting: weighting.transpose()? })
    }

    /// Warnings about their ends.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let of_biases = self.biases.as_ref().and_then(Biases::warning);
        let of_attributes = self.attributes.as_ref().and_then(AttributeTable::warning);
        let of_weights = self.weighting.as_ref().and_then(TextWeighting::warning);
        of_biases.into_iter().chain(of_attributes).chain(of_weights)
    }
}

/// Refuses biases that no metric would add.
fn check_biases(options: &PrepareOptions) -> Result<(), ModelError> {
    match (options.metric, &options.biases) {
        (Metric::Cosine, Some(path)) => {
            let reason = "biases are added to dot products; add --metric dot, or omit --bias";
            Err(ModelError::BadInput { path: path.clone(), reason: reason.into() })
        }
        _ => Ok(()),
    }
}

//! The rows of a model with the words that a question adds.

use model_store::ModelStore;

use crate::added::{AddedWords, Model, SubwordsOf};
use crate::rows::{AtPosition, Rows};

/// The model that words are added to.
pub(super) fn extended(model: &dyn Rows) -> Model<'_> {
    Model { rows: model.count(), ngrams: model.base().ngrams() }
}

/// The vector of a word that the model has no row for, `[dim]`, and its n-grams that have one;
/// `None` if the model has no vectors of subwords, or the word is too long for them.
pub fn vector_of_unknown(model: &dyn Rows, word: &str) -> Option<(Vec<f32>, SubwordsOf)> {
    let mut added = AddedWords::default();
    added.row_of(extended(model), word.to_owned()).ok()?;
    let told = added.told(extended(model), true)?.pop()?;
    Some((added.into_vector()?, told))
}

/// The rows of a model, and those that a question adds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WithAdded<'a> {
    pub(crate) rows: &'a dyn Rows,
    pub(crate) added: &'a AddedWords,
}

impl Rows for WithAdded<'_> {
    fn base(&self) -> &ModelStore {
        self.rows.base()
    }

    fn at(&self) -> Option<&AtPosition> {
        self.rows.at()
    }

    fn added(&self) -> Option<&AddedWords> {
        Some(self.added)
    }
}

//! Scores of words with each other, without a search.

use super::Kindred;
use crate::Error;
use crate::question::{Side, odd_one_out, similarity};

impl Kindred {
    /// How alike two words or sets of words are: [`Model::similarity`](crate::Model::similarity),
    /// of the rows as they are now.
    ///
    /// # Errors
    /// As [`Model::similarity`](crate::Model::similarity).
    pub fn similarity(&self, a: impl Into<Side>, b: impl Into<Side>) -> Result<f64, Error> {
        let held = self.held();
        let similarity = similarity(held.rows(), [a.into(), b.into()], None);
        similarity.map(|found| found.score).map_err(|error| error.with_suggestions(held.rows()))
    }

    /// Some words with their cosine to the mean of all of them, highest first:
    /// [`Model::odd_one_out`](crate::Model::odd_one_out), of the rows as they are now.
    ///
    /// # Errors
    /// As [`Model::odd_one_out`](crate::Model::odd_one_out).
    pub fn odd_one_out<W: Into<String>>(
        &self,
        words: impl IntoIterator<Item = W>,
    ) -> Result<Vec<(String, f64)>, Error> {
        let held = self.held();
        let words = words.into_iter().map(Into::into).collect();
        let odd = odd_one_out(held.rows(), words, None)
            .map_err(|error| error.with_suggestions(held.rows()))?;
        let named = |hit: &contract::Hit| (odd.word(held.rows(), hit.row).to_owned(), hit.score);
        Ok(odd.ranked.iter().map(named).collect())
    }
}

//! An expander's answers: terms with weights, which of them are wanted, and in which form.

mod forms;

use contract::{Expansion, QueryError, Row, RowSet, Table, Term, TokenVectors};
use model_store::head::Expander;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::Tokenised;

pub use forms::{Form, Formed};

/// Which terms of a text are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// At most this number.
    pub top: usize,
    /// Only those of at least this weight.
    pub min_weight: f64,
    /// Only those of at least this part of the largest weight.
    pub max_ratio: f64,
    /// Only those that meet this filter of the model that has the terms.
    pub filter: Option<String>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { top: Self::TOP, min_weight: 0.0, max_ratio: 0.0, filter: None }
    }
}

/// A token, as it is in the text. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Its position among the tokens that the expander knows, from 0.
    pub position: u32,
    /// The token; absent if the request gave its vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its first byte in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<usize>,
    /// The byte after its last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<usize>,
}

impl Wanted {
    /// Terms of a text, unless another number is asked for.
    pub const TOP: usize = 100;

    /// The most terms of a text.
    pub const MOST: usize = 1000;

    /// The expansion of a text for these terms. `terms` are those that meet the filter.
    ///
    /// # Errors
    /// If a vector is not finite, or has another number of components than the expander takes.
    pub fn of(
        &self,
        expander: &Arc<Expander>,
        model: &Table<'_>,
        vectors: TokenVectors,
        terms: RowSet,
    ) -> Result<Expansion, QueryError> {
        let least = expander.least_value(self.min_weight);
        let expansion = Expansion::new(expander.clone(), model, vectors, self.top, least)?;
        Ok(expansion.within(terms))
    }

    /// The weights of those of these terms, best first, that are wanted.
    pub fn weights(&self, expander: &Expander, terms: &[Term]) -> Vec<f64> {
        let weights = terms.iter().map(|term| expander.weight(term.value));
        let least = |largest: f64| self.min_weight.max(self.max_ratio * largest);
        let mut limit = None;
        weights
            .take_while(|&weight| weight >= *limit.get_or_insert_with(|| least(weight)))
            .collect()
    }
}

/// The tokens of a text as rows of the expander's model.
pub fn token_rows(text: &Tokenised) -> TokenVectors {
    TokenVectors::Rows(text.tokens.iter().map(|token| Row(token.0)).collect())
}

/// Which token a term is from. `text` and `tokenised` are those of the text, if there is one.
pub fn cause(term: &Term, text: Option<(&str, &Tokenised)>) -> Cause {
    let bytes = text.and_then(|(text, tokenised)| {
        let bytes = tokenised.bytes.get(term.position as usize)?.clone();
        Some((text.get(bytes.clone())?.to_owned(), bytes))
    });
    let (text, bytes) = bytes.unzip();
    Cause {
        position: term.position,
        text,
        start: bytes.as_ref().map(|bytes| bytes.start),
        end: bytes.map(|bytes| bytes.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cut, Tokeniser, Tokens, Vocabulary};
    use model_store::ModelStore;

    #[test]
    fn wanted_terms_are_the_first_of_all() {
        let rows: [(&str, &[f32]); 3] = [("a", &[8.0]), ("b", &[4.0]), ("c", &[0.5])];
        let model = Arc::new(ModelStore::from_rows_under_dot("m", 1, rows, None).unwrap());
        let tokens =
            Tokens { tokeniser: Tokeniser::Words, lower_case: false, limit: 9, cut: Cut::End };
        let expander = Arc::new(Expander::of_model(&model, tokens.clone()).unwrap());
        let text = Vocabulary::of_model(&model, &tokens).tokenise("b a");
        let weights = |wanted: Wanted| {
            let vectors = token_rows(&text);
            let expansion = wanted.of(&expander, &model.table(), vectors, RowSet::all()).unwrap();
            wanted.weights(&expander, &expansion.terms(&model.table()))
        };
        let all = [64.0, 32.0, 4.0].map(|value| expander.weight(value));
        assert_eq!(weights(Wanted::default()), all);
        assert_eq!(weights(Wanted { top: 2, ..Wanted::default() }), all[..2]);
        assert_eq!(weights(Wanted { min_weight: all[1], ..Wanted::default() }), all[..2]);
        assert_eq!(weights(Wanted { max_ratio: 0.5, ..Wanted::default() }), all[..2]);
        assert_eq!(weights(Wanted { max_ratio: 1.0, ..Wanted::default() }), all[..1]);
        assert!(weights(Wanted { min_weight: 1e9, ..Wanted::default() }).is_empty());

        let term = Term { row: Row(0), value: 64.0, position: 1 };
        let known = cause(&term, Some(("b a", &text)));
        assert_eq!((known.text.as_deref(), known.start, known.end), (Some("a"), Some(2), Some(3)));
        assert_eq!(cause(&term, None).text, None);
    }
}

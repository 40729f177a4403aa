//! Looks several words up: those that the model does not have are an error, or are left out.

use std::collections::HashSet;

use contract::Row;
use model_store::cut;

use super::with_added::extended;
use crate::added::AddedWords;
use crate::error::{Error, UnknownWord};
use crate::options::Unknown;
use crate::rows::Rows;

/// What `unknown` must be where words have no subwords.
pub(super) const NO_SUBWORDS: &str = "`error` or `skip`: the model has no vectors of subwords, because \
                                      it was not prepared from a fastText .bin file";

/// The treatment of unknown words: the one that was asked for or, if none was, subwords where the
/// model has them, and else the other.
///
/// # Errors
/// [`Error::InvalidValue`] if it asks for subwords that the model does not have.
pub(super) fn rule(
    model: &dyn Rows,
    asked: Option<Unknown>,
    otherwise: Unknown,
) -> Result<Unknown, Error> {
    match (asked, model.base().ngrams()) {
        (None, Some(_)) => Ok(Unknown::Subwords),
        (None, None) => Ok(otherwise),
        (Some(Unknown::Subwords), None) => Err(Error::invalid("unknown", NO_SUBWORDS)),
        (Some(asked), _) => Ok(asked),
    }
}

/// A word's row, or the word if the model does not have it.
pub(super) fn row_of(model: &dyn Rows, word: String) -> Result<Row, String> {
    model.row_of(&word).ok_or(word)
}

/// The same; by `unknown`, a word that the model does not have may be added.
pub(super) fn row_or_added(
    model: &dyn Rows,
    word: String,
    unknown: Unknown,
    added: &mut AddedWords,
) -> Result<Row, String> {
    or_added(model, row_of(model, word), unknown, added)
}

/// The row that was found, or by `unknown` that of a word that is added.
pub(super) fn or_added(
    model: &dyn Rows,
    found: Result<Row, String>,
    unknown: Unknown,
    added: &mut AddedWords,
) -> Result<Row, String> {
    match unknown {
        Unknown::Subwords => found.or_else(|word| added.row_of(extended(model), word)),
        Unknown::Error | Unknown::Skip => found,
    }
}

/// What was found, in order, and the words that are left out, each once, in the order in which they
/// were written. It is an error as well if all would be left out.
pub(super) fn look_up<T>(
    found: impl IntoIterator<Item = Result<T, String>>,
    unknown: Unknown,
) -> Result<(Vec<T>, Vec<String>), Error> {
    let (mut known, mut missing) = (Vec::new(), Vec::new());
    for one in found {
        match one {
            Ok(one) => known.push(one),
            Err(word) => missing.push(word),
        }
    }
    if !missing.is_empty() && (unknown != Unknown::Skip || known.is_empty()) {
        return Err(unknown_words(missing));
    }
    Ok((known, each_once(missing)))
}

/// The error for words that the model does not have. Suggestions come later.
pub fn unknown_words(words: impl IntoIterator<Item = String>) -> Error {
    Error::UnknownWord { unknown: each_once(words).into_iter().map(UnknownWord::new).collect() }
}

/// Words without repetitions, by their first appearance, each cut to a length that answers may
/// have.
pub(super) fn each_once(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    words.into_iter().filter(|word| seen.insert(word.clone())).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use model_store::ModelStore;

    use super::*;

    fn known_of(asked: &[&str], unknown: Unknown) -> Result<(Vec<u32>, Vec<String>), Vec<String>> {
        let model =
            ModelStore::from_rows("m", 1, ["a", "b"].map(|word| (word, &[1.0][..]))).unwrap();
        let found = asked.iter().map(|&word| row_of(&model, word.to_owned()));
        match look_up(found, unknown) {
            Ok((known, skipped)) => Ok((known.iter().map(|row| row.0).collect(), skipped)),
            Err(Error::UnknownWord { unknown }) => {
                Err(unknown.into_iter().map(|unknown| unknown.word).collect())
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn unknown_words_fail_all_or_are_left_out_and_named_once() {
        let texts = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let mixed = ["b", "y", "a", "x", "y", "b"];
        assert_eq!(known_of(&mixed, Unknown::Error), Err(texts(&["y", "x"])));
        assert_eq!(known_of(&mixed, Unknown::Skip), Ok((vec![1, 0, 1], texts(&["y", "x"]))));
        assert_eq!(known_of(&["x", "x"], Unknown::Skip), Err(texts(&["x"])));
        for unknown in [Unknown::Error, Unknown::Skip] {
            assert_eq!(known_of(&["a"], unknown), Ok((vec![0], texts(&[]))));
            assert_eq!(known_of(&[], unknown), Ok((vec![], texts(&[]))), "not a word is unknown");
        }
    }
}

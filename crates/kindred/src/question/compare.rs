//! How similar words or sets of words are, and which of some words is the odd one. No search is
//! needed: the scores are the contract's, of rows or of the sums that an analogy would look for.

use std::borrow::Cow;

use contract::{Hit, Metric, Row, TableRows, score};

use super::formula::sum;
use super::look_up::{each_once, look_up, row_or_added, rule, unknown_words};
use super::notes::{Notes, each_row_once};
use super::with_added::{WithAdded, extended};
use crate::added::{AddedWords, SubwordsOf};
use crate::error::{Error, zero_row};
use crate::options::Unknown;
use crate::rows::Rows;

/// Most words in one set.
pub const MAX_SET_WORDS: usize = 256;
/// Fewest words of which one can be odd: two are equally far from their mean.
pub const MIN_COMPARED_WORDS: usize = 3;
/// Most words among which the odd one is looked for.
pub const MAX_COMPARED_WORDS: usize = 256;

/// What is compared with another: a word, or a set of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// A word, by its exact bytes.
    Word(String),
    /// A set of 1 to [`MAX_SET_WORDS`] words: the sum of their unit vectors.
    Set(Vec<String>),
}

impl From<&str> for Side {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

impl<const N: usize> From<[&str; N]> for Side {
    fn from(words: [&str; N]) -> Self {
        Self::Set(words.map(str::to_owned).into())
    }
}

/// How similar two words or sets are.
#[derive(Debug, Clone, PartialEq)]
pub struct Similarity {
    /// The cosine similarity, from −1 to 1; under the metric `dot` the dot product, without a bias.
    pub score: f64,
    /// The words that were left out, if words may be.
    pub skipped: Option<Vec<String>>,
    /// The words that have the vectors of their subwords, if there are any.
    pub subwords: Option<Vec<SubwordsOf>>,
}

/// How similar two words or sets of words are. Without `unknown`, words that the model does not have
/// are an error, or have the vectors of their subwords if the model has these.
///
/// # Errors
/// [`Error::UnknownWord`] for words that the model does not have; with [`Unknown::Skip`] only if a
/// side has no other. [`Error::ZeroQuery`] if a word or a sum is a zero vector.
/// [`Error::InvalidValue`] if a set is empty or too large.
pub fn similarity(
    model: &dyn Rows,
    sides: [Side; 2],
    unknown: Option<Unknown>,
) -> Result<Similarity, Error> {
    let unknown = rule(model, unknown, Unknown::Error)?;
    let has_words = |side: &Side| match side {
        Side::Word(_) => true,
        Side::Set(words) => (1..=MAX_SET_WORDS).contains(&words.len()),
    };
    if !sides.iter().all(has_words) {
        return Err(Error::invalid("sides", "two words or lists of 1 to 256 words"));
    }
    let (mut missing, mut added) = (Vec::new(), AddedWords::default());
    let sides = sides.map(|side| {
        let (words, is_set) = match side {
            Side::Word(word) => (vec![word], false),
            Side::Set(words) => (words, true),
        };
        let found = words.into_iter();
        let found = found.map(|word| row_or_added(model, word, unknown, &mut added));
        let known: Vec<Row> =
            found.filter_map(|row| row.map_err(|word| missing.push(word)).ok()).collect();
        (known, is_set)
    });
    // A side without known words can't be compared.
    let nothing_left = sides.iter().any(|(rows, _)| rows.is_empty());
    if nothing_left || (unknown != Unknown::Skip && !missing.is_empty()) {
        return Err(unknown_words(missing));
    }
    let model = &WithAdded { rows: model, added: &added };
    // The vector of a word, or the sum of a set, and its norm.
    let table = model.table();
    let vector = |(rows, is_set): (Vec<Row>, bool)| match rows[..] {
        [row] if !is_set && table.metric() == Metric::Cosine && table.norm(row) == 0.0 => {
            Err(zero_row(model, row))
        }
        [row] if !is_set => Ok((Cow::Borrowed(table.row(row)), table.norm(row))),
        _ => {
            let components = sum(model, &rows)?;
            let norm = score::norm(&components);
            Ok((Cow::Owned(components), norm))
        }
    };
    let [a, b] = sides.map(vector);
    let ((a, a_norm), (b, b_norm)) = (a?, b?);
    let score = match table.metric() {
        Metric::Cosine => score::cosine(score::dot(&a, &b), a_norm, b_norm),
        Metric::Dot => score::dot(&a, &b),
    };
    let skipped = (unknown == Unknown::Skip).then(|| each_once(missing));
    Ok(Similarity { score, skipped, subwords: added.told(extended(model), false) })
}

/// Which of some words is least like all of them together.
#[derive(Debug)]
pub struct OddOneOut {
    /// The words by their cosine to the mean of all unit vectors, highest first: the odd one is the
    /// last. Not empty.
    pub ranked: Vec<Hit>,
    /// The words that were left out, and those that have the vectors of their subwords.
    pub notes: Notes,
    /// The latter.
    added: AddedWords,
}

impl OddOneOut {
    /// The word of a row of `ranked`.
    pub fn word<'a>(&'a self, model: &'a dyn Rows, row: Row) -> &'a str {
        self.added.word(row).unwrap_or_else(|| model.word(row))
    }

    /// Whether the word of a row of `ranked` is no row of the model.
    pub fn is_added(&self, row: Row) -> bool {
        self.added.has(row)
    }
}

/// Finds the word that is least like all of them together. `unknown` is as for [`similarity`].
///
/// # Errors
/// [`Error::InvalidValue`] unless there are 3 to 256 words; [`Error::UnknownWord`] for words that
/// the model does not have, with [`Unknown::Skip`] only if fewer than 3 are left;
/// [`Error::ZeroQuery`] if a word or their sum is zero; [`Error::InvalidRequest`] under the metric
/// `dot`.
pub fn odd_one_out(
    model: &dyn Rows,
    words: Vec<String>,
    unknown: Option<Unknown>,
) -> Result<OddOneOut, Error> {
    let unknown = rule(model, unknown, Unknown::Error)?;
    if model.metric() == Metric::Dot {
        let reason = "the odd one is found by cosine similarities, but this model's metric is `dot`; prepare the vectors with \
                      `--metric cosine`";
        return Err(Error::InvalidRequest { reason: reason.to_owned() });
    }
    if !(MIN_COMPARED_WORDS..=MAX_COMPARED_WORDS).contains(&words.len()) {
        return Err(Error::invalid("words", "a list of 3 to 256 words"));
    }
    let mut added = AddedWords::default();
    let found = words.into_iter().map(|word| row_or_added(model, word, unknown, &mut added));
    let (rows, skipped) = look_up(found, unknown)?;
    if rows.len() < MIN_COMPARED_WORDS {
        return Err(unknown_words(skipped));
    }
    let with = &WithAdded { rows: model, added: &added };
    // The mean has the direction of the sum.
    let mean = sum(with, &rows)?;
    let (table, norm) = (with.table(), score::norm(&mean));
    let scored = each_row_once(&rows).into_iter().filter_map(|row| {
        let score = table.score(&mean, norm, row)?;
        Some(Hit { row, score })
    });
    let mut ranked: Vec<Hit> = scored.collect();
    ranked.sort_unstable();
    let skipped = (unknown == Unknown::Skip).then_some(skipped);
    let notes =
        Notes { used: None, skipped, subwords: added.told(extended(model), false), tokens: None };
    Ok(OddOneOut { ranked, notes, added })
}

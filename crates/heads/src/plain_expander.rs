//! An expander that nothing was learnt for: the words near those of a text.
//!
//! The value of a term `w` for a token `x` is `x · w − |w|² / 2 − reach`, which is
//! `(|x|² − |x − w|²) / 2 − reach`: it grows as the distance of the two vectors falls. Without
//! `|w|²`, long vectors would be terms of everything.
//!
//! Stop words are neither tokens nor terms: their biases are so low that no word of the model
//! brings them above zero.

use std::sync::Arc;

use contract::{Query, QueryVector, Row, SearchEngine};
use cpu_core::FullScanEngine;
use model_store::ModelStore;
use model_store::head::{Expander, ExpanderDescription, ExpanderWeights, HeadError, Tokens};

/// Words that the reach is chosen by, evenly spaced among the most frequent ones.
const SAMPLE: usize = 64;
const MOST_FREQUENT: usize = 20_000;

/// English stop words: those of Lucene's `EnglishAnalyzer`.
pub const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

/// More than the roundings of a dot product and of a bias, as a fraction of the norms' product.
const ROUNDINGS: f64 = 1e-6;

/// The description and the weights of a plain expander. `stop_words`, in lower case, are left out
/// of texts, and are no terms of the model's words. Vectors of huge numbers give weights that are
/// not finite, which no expander may have.
pub fn plain_expander(
    model: &ModelStore,
    tokens: Tokens,
    reach: f64,
    stop_words: &[&str],
) -> (ExpanderDescription, ExpanderWeights) {
    let description = ExpanderDescription {
        stop_words: stop_words.iter().map(|&word| word.to_owned()).collect(),
        training: serde_json::Map::from_iter([("reach".to_owned(), reach.into())]),
        ..ExpanderDescription::of_model(model, tokens)
    };
    let table = model.table();
    let norms = table.norms();
    let bias = |&norm: &f64| (-norm * norm / 2.0 - reach) as f32;
    let mut biases: Vec<f32> = norms.iter().map(bias).collect();
    let longest = norms.iter().copied().fold(0.0, f64::max);
    for row in description.stop_rows(model) {
        // No dot product with this row is larger.
        let largest = longest * norms[row.index()] * (1.0 + ROUNDINGS);
        let bias = &mut biases[row.index()];
        *bias = bias.min(-largest as f32);
    }
    let weights = ExpanderWeights { biases: Some(biases), ..ExpanderWeights::default() };
    (description, weights)
}

/// The reach with which half of the frequent words have `terms` terms or more, without
/// `stop_words`.
///
/// # Errors
/// If the weights are not finite, or the system refuses to start the threads.
pub fn reach_of(
    model: &Arc<ModelStore>,
    tokens: Tokens,
    terms: usize,
    stop_words: &[&str],
    threads: usize,
) -> Result<f64, ReachError> {
    let (description, weights) = plain_expander(model, tokens, 0.0, stop_words);
    let expander = Expander::from_memory(description, weights, model)?;
    let frequent = model.rows().min(MOST_FREQUENT);
    let step = frequent.div_ceil(SAMPLE);
    let owner = contract::TermExpander::terms(&expander).clone();
    let table = owner.table();
    let query = |row: usize| {
        Query::new(&table, QueryVector::Row(Row(row as u32)), terms, contract::Filter::default())
    };
    let queries: Vec<Query> =
        (0..frequent).step_by(step).filter_map(|row| query(row).ok()).collect();
    let mut engine = FullScanEngine::new(owner.clone(), threads)?;
    let batch: Vec<&Query> = queries.iter().collect();
    let found = engine.search(&batch).map_err(ReachError::Engine)?;
    let mut last: Vec<f64> =
        found.iter().filter_map(|hits| hits.last()).map(|hit| hit.score).collect();
    last.sort_unstable_by(f64::total_cmp);
    Ok(last[last.len() / 2])
}

/// Why there is no reach.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// The expander can't be made.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The threads can't be started.
    #[error(transparent)]
    Threads(#[from] cpu_core::StartError),
    /// The engine failed.
    #[error("the words near a sample can't be searched: {0}")]
    Engine(contract::EngineError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::TermExpander as _;
    use model_store::head::{Cut, Tokeniser};

    /// Vectors of different lengths, some alike, and one of zeros.
    fn model() -> Arc<ModelStore> {
        let rows: [(&str, &[f32]); 7] = [
            ("the", &[3.0, 0.5]),
            ("The", &[2.5, 0.5]),
            ("sea", &[3.0, 0.75]),
            ("of", &[0.0, 0.0]),
            ("ocean", &[2.75, 0.625]),
            ("rock", &[-7.0, 1.0]),
            ("a", &[-6.5, 1.25]),
        ];
        Arc::new(ModelStore::from_rows("m", 2, rows).unwrap())
    }

    fn tokens() -> Tokens {
        Tokens { tokeniser: Tokeniser::Words, lower_case: false, limit: 9, cut: Cut::End }
    }

    fn expander(stop_words: &[&str], reach: f64) -> Expander {
        let (description, weights) = plain_expander(&model(), tokens(), reach, stop_words);
        Expander::from_memory(description, weights, &model()).unwrap()
    }

    #[test]
    fn the_stop_words_are_in_order_and_in_lower_case() {
        assert!(STOP_WORDS.is_sorted_by(|one, next| one < next));
        assert!(STOP_WORDS.iter().all(|word| word.bytes().all(|b| b.is_ascii_lowercase())));
    }

    /// Whatever the reach: a wide one makes every other word a term of everything.
    #[test]
    fn no_word_of_the_model_makes_a_stop_word_a_term() {
        let model = model();
        for reach in [-1e6, -0.5, 0.0, 3.0] {
            let (with, without) = (expander(&[], reach), expander(&STOP_WORDS, reach));
            assert_eq!(without.stop_rows(), [0, 1, 3, 6].map(Row));
            let (with, without) = (with.terms().table(), without.terms().table());
            for token in 0..model.rows() as u32 {
                let x = model.table().row(Row(token));
                for term in (0..model.rows() as u32).map(Row) {
                    let w = without.row(term);
                    let dot = contract::score::dot(x, w);
                    if [0, 1, 3, 6].map(Row).contains(&term) {
                        let value = dot + f64::from(without.bias(term));
                        assert!(value <= 0.0, "{reach}: {token} makes {term:?} {value}");
                    } else {
                        // The others are as they were, to the bit.
                        let biases = [with, without].map(|table| table.bias(term).to_bits());
                        assert_eq!(biases[0], biases[1]);
                    }
                }
            }
        }
    }

    #[test]
    fn the_reach_counts_terms_without_stop_words() {
        let reach = |stop_words: &[&str]| reach_of(&model(), tokens(), 2, stop_words, 1).unwrap();
        // Without `the` and `The`, the second term of a word is farther away.
        assert!(reach(&STOP_WORDS) < reach(&[]), "{} {}", reach(&STOP_WORDS), reach(&[]));
    }
}

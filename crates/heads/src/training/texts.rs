//! Texts as training takes them: tokens and classes.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;

use contract::Row;
use cpu_core::heads::train;
use model_store::ModelStore;
use model_store::head::{Probabilities, Token};

use super::TrainError;
use crate::{Texts, Vocabulary};

/// The longest word, in bytes, that gets a vector of its own.
const LONGEST_ADDED: usize = 256;

/// One text of this many decides when to stop, if no others are given.
const SPLIT: usize = 10;

/// A text as tokens, with its classes.
pub(super) struct Encoded {
    pub(super) tokens: Vec<Token>,
    pub(super) classes: Vec<u32>,
}

/// The words that the model does not have and at least this number of texts has, in lower case; in
/// the order of the texts.
pub(super) fn unknown_words(
    texts: &Texts,
    vocabulary: &Vocabulary<'_>,
    least: NonZeroUsize,
) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut order = Vec::new();
    for one in &texts.texts {
        let unknown = vocabulary.tokenise(&one.text).unknown;
        let of_text: BTreeSet<String> = unknown.iter().map(|word| word.to_lowercase()).collect();
        for word in of_text.into_iter().filter(|word| word.len() <= LONGEST_ADDED) {
            let count = counts.entry(word.clone()).or_default();
            *count += 1;
            if *count == least.get() {
                order.push(word);
            }
        }
    }
    order
}

/// The root of the mean square of the components of these words that the model has; 1 if there are
/// none.
pub(super) fn typical_component(model: &ModelStore, words: &[Token]) -> f32 {
    let (table, dim) = (model.table(), model.dim());
    let rows = words.iter().filter(|token| (token.0 as usize) < model.rows());
    let squares: Vec<f64> = rows.map(|token| table.norm(Row(token.0)).powi(2)).collect();
    match squares.len() {
        0 => 1.0,
        count => (squares.iter().sum::<f64>() / (count * dim) as f64).sqrt() as f32,
    }
}

/// Texts as tokens. Those without a known word are left out.
pub(super) fn encode(
    texts: &Texts,
    labels: &[&str],
    words: &Vocabulary<'_>,
) -> Result<Vec<Encoded>, TrainError> {
    let mut encoded = Vec::new();
    for one in &texts.texts {
        let class = |label: &String| {
            let class = labels.binary_search(&label.as_str()).map(|class| class as u32);
            class.map_err(|_| {
                TrainError::Data(format!(
                    "the label {label:?} is only in the texts that decide; those to learn from have {}",
                    labels.join(", ")
                ))
            })
        };
        let mut classes = one.labels.iter().map(class).collect::<Result<Vec<_>, _>>()?;
        classes.sort_unstable();
        classes.dedup();
        let tokens = words.tokenise(&one.text).tokens;
        if !tokens.is_empty() {
            encoded.push(Encoded { tokens, classes });
        }
    }
    Ok(encoded)
}

/// Takes one text of ten away, for deciding when to stop: always the same ones for the same seed.
pub(super) fn split(texts: &mut Vec<Encoded>, seed: u64) -> Vec<Encoded> {
    let order = train::shuffled(texts.len(), seed);
    let chosen: BTreeSet<usize> = order.into_iter().take(texts.len() / SPLIT).collect();
    let mut indices = 0..;
    let decides = |_: &mut Encoded| indices.next().is_some_and(|index| chosen.contains(&index));
    texts.extract_if(.., decides).collect()
}

/// The weight of each class, so that all count alike; with sigmoids, so that those texts that have
/// it count for as much as the others.
pub(super) fn balanced(
    texts: &[Encoded],
    classes: usize,
    probabilities: Probabilities,
) -> Vec<f32> {
    let mut counts = vec![0usize; classes];
    let all = texts.iter().flat_map(|one| &one.classes);
    all.for_each(|&class| counts[class as usize] += 1);
    let weight = |count: usize| {
        let count = count.max(1);
        match probabilities {
            Probabilities::Softmax => texts.len() as f32 / classes as f32 / count as f32,
            // A class that all texts have counts a little, too.
            Probabilities::Sigmoid => (texts.len() - count).max(1) as f32 / count as f32,
        }
    };
    counts.into_iter().map(weight).collect()
}

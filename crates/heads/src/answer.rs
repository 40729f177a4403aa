//! A classifier's answers: class scores to labels with probabilities, and which n-grams decided.

use std::borrow::Cow;

use contract::TokenClassifier;
use contract::classifier::{Attribution, Window, sigmoid, softmax};
use model_store::ModelStore;
use model_store::head::{Head, Probabilities};
use serde::{Deserialize, Serialize};

use super::Tokenised;

/// N-grams that an explanation names over HTTP and in the console, at most.
pub const REASONS: usize = 10;

/// Longer n-grams are cut.
pub const MAX_NGRAM_BYTES: usize = 512;

/// A label and how probable it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// Its position among the head's labels.
    pub class: usize,
    /// Its probability.
    pub probability: f64,
    /// The class score that the probability was computed from.
    pub score: f64,
}

/// The position of the largest number; the first of several.
///
/// # Panics
/// If there is none.
pub fn best(numbers: &[f64]) -> usize {
    let larger =
        |best: usize, index: usize| if numbers[index] > numbers[best] { index } else { best };
    (0..numbers.len()).reduce(larger).expect("a number")
}

/// Class scores that are no numbers, or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the class scores of this text are not finite, because the head's weights are too large; \
     train it again with a lower \
     --learning-rate, or scale the weights down and import them again"
)]
pub struct ScoresNotFinite;

/// All labels, the most probable first; of equally probable ones, the head's first.
///
/// # Errors
/// If a score is not finite.
pub fn labels(head: &Head, scores: &[f64]) -> Result<Vec<Label>, ScoresNotFinite> {
    if !scores.iter().all(|score| score.is_finite()) {
        return Err(ScoresNotFinite);
    }
    let description = head.description();
    let temperature = description.temperature;
    let probabilities: Vec<f64> = match description.probabilities {
        Probabilities::Softmax => softmax(scores, temperature),
        Probabilities::Sigmoid => scores.iter().map(|&score| sigmoid(score, temperature)).collect(),
    };
    let label = |(class, (&score, probability))| Label { class, probability, score };
    let mut labels: Vec<Label> = scores.iter().zip(probabilities).enumerate().map(label).collect();
    labels.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    Ok(labels)
}

/// Why a text has its most probable label, or what speaks for and against another one. JSON has
/// these names, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation<'a> {
    /// The label.
    pub label: Cow<'a, str>,
    /// The class score by the formula in float64.
    pub score: f64,
    /// The part of it that no n-gram gives: biases.
    pub base: f64,
    /// The n-grams with the largest shares, largest first.
    pub ngrams: Vec<NGram<'a>>,
    /// The sum of the shares of all others.
    pub others: f64,
    /// Whether base and shares add up to the score; otherwise a share is the gradient of the score
    /// times the feature.
    pub exact: bool,
}

/// An n-gram's part in a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NGram<'a> {
    /// As it is in the text, but for the end of one of more than [`MAX_NGRAM_BYTES`], of which `…`
    /// takes the place.
    pub text: Cow<'a, str>,
    /// Its first byte in the text.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// Its share of the class score: above zero if it speaks for the label.
    pub share: f64,
}

/// Explains the class score of a text by the `most` n-grams with the largest shares.
pub fn explain<'a>(
    model: &ModelStore,
    head: &'a Head,
    text: &'a str,
    tokenised: &Tokenised,
    class: usize,
    most: usize,
) -> Explanation<'a> {
    let table = model.table();
    let tokens = &tokenised.tokens;
    let vectors: Vec<_> = tokens.iter().map(|&token| head.vector(&table, token)).collect();
    let vectors: Vec<&[f32]> = vectors.iter().map(|vector| &vector[..]).collect();
    let forward = head.classifier().forward(&vectors);
    let Attribution { base, windows, is_exact } =
        head.classifier().attribution(&forward, class, tokens.len());
    let others = windows.iter().skip(most).map(|window| window.share).sum();
    let ngram = |window: &Window| {
        let own = &tokenised.bytes[window.start..window.end];
        let start = own.first().map_or(0, |first| first.start);
        let end = own.last().map_or(start, |last| last.end);
        NGram { text: shown(&text[start..end]), start, end, share: window.share }
    };
    Explanation {
        label: head.description().labels[class].as_str().into(),
        score: forward.scores[class],
        base,
        ngrams: windows.iter().take(most).map(ngram).collect(),
        others,
        exact: is_exact,
    }
}

/// The text of an n-gram. Unknown words between its tokens may be as long as a request.
fn shown(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_NGRAM_BYTES {
        return text.into();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_NGRAM_BYTES)]).into()
}

/// Float64 multiply-adds that explaining a text takes: the formula is computed in plain loops.
pub fn explanation_cost(head: &Head, tokens: usize) -> usize {
    let classifier = head.classifier();
    let filters: usize = classifier.convolutions().iter().map(|one| one.weights.len()).sum();
    let layers: usize = classifier.layers().iter().map(|layer| layer.weights.len()).sum();
    filters.saturating_mul(tokens + 4).saturating_add(layers)
}

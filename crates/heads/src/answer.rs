//! A classifier's answers: class scores to labels with probabilities, and which n-grams decided.

use std::borrow::Cow;
use std::ops::Range;

use contract::TokenClassifier;
use contract::classifier::{Attribution, Window, sigmoid, softmax};
use model_store::ModelStore;
use model_store::head::{Head, Probabilities};
use serde::{Deserialize, Serialize};

use super::Tokenised;
use super::label::{Label, ScoresNotFinite};
use super::text_classifier::TextClassifier;
use crate::fasttext::FastTextHead;

/// N-grams that an explanation names over HTTP and in the console, at most.
pub const REASONS: usize = 10;

/// Longer n-grams are cut.
pub const MAX_NGRAM_BYTES: usize = 512;

/// The position of the largest number; the first of several.
///
/// # Panics
/// If there is none.
pub fn best(numbers: &[f64]) -> usize {
    let larger =
        |best: usize, index: usize| if numbers[index] > numbers[best] { index } else { best };
    (0..numbers.len()).reduce(larger).expect("a number")
}

/// All labels of a text with these class scores, the most probable first; of equally probable ones,
/// the head's first.
///
/// # Errors
/// If a score is not finite.
pub fn labels(head: &TextClassifier, scores: &[f64]) -> Result<Vec<Label>, ScoresNotFinite> {
    match head {
        TextClassifier::OverRows(head) => labels_over_rows(head, scores),
        TextClassifier::FastText(head) => head.labels(scores),
    }
}

fn labels_over_rows(head: &Head, scores: &[f64]) -> Result<Vec<Label>, ScoresNotFinite> {
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

/// Explains the class score of a text by the `most` n-grams with the largest shares. `tokenised` is
/// the text as the head reads it.
pub fn explain<'a>(
    model: &ModelStore,
    head: &'a TextClassifier,
    text: &'a str,
    tokenised: &Tokenised,
    class: usize,
    most: usize,
) -> Explanation<'a> {
    match head {
        TextClassifier::OverRows(head) => {
            explain_over_rows(model, head, text, tokenised, class, most)
        }
        TextClassifier::FastText(head) => {
            explain_fasttext(head, text, &tokenised.bytes, class, most)
        }
    }
}

fn explain_fasttext<'a>(
    head: &'a FastTextHead,
    text: &'a str,
    words: &[Range<usize>],
    class: usize,
    most: usize,
) -> Explanation<'a> {
    let shares = head.shares(text, words, class);
    let ngram = |&(first, last, share): &(usize, usize, f64)| {
        let (start, end) = (words[first].start, words[last].end);
        NGram { text: shown(&text[start..end]), start, end, share }
    };
    Explanation {
        label: head.description().labels[class].as_str().into(),
        score: shares.score,
        base: shares.base,
        ngrams: shares.spans.iter().take(most).map(ngram).collect(),
        // The sum of none is -0.0.
        others: shares.spans.iter().skip(most).map(|span| span.2).sum::<f64>() + 0.0,
        exact: shares.is_exact,
    }
}

fn explain_over_rows<'a>(
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
    let others = windows.iter().skip(most).map(|window| window.share).sum::<f64>() + 0.0;
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

/// Nanoseconds that explaining a text takes, about: the formula is computed in plain loops.
pub fn explanation_cost(head: &TextClassifier, tokenised: &Tokenised) -> usize {
    let (classifier, tokens) = match head {
        TextClassifier::OverRows(head) => (head.classifier(), tokenised.tokens.len()),
        // The text is read twice, in float64 the second time, and the label's score is made again.
        TextClassifier::FastText(head) => {
            return (4 * head.cost(&tokenised.bytes) + head.cost_of_labels()) as usize;
        }
    };
    let filters: usize = classifier.convolutions().iter().map(|one| one.weights.len()).sum();
    let layers: usize = classifier.layers().iter().map(|layer| layer.weights.len()).sum();
    filters.saturating_mul(tokens + 4).saturating_add(layers)
}

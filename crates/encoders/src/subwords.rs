//! Vectors of words that a prepared fastText model has no rows for, from those of their n-grams.

use model_store::Ngrams;

use crate::fasttext::{MAX_SUBWORD_BYTES, divide, for_each_bucket};

/// Writes the vector of a word that is no row, as fastText computes it: the mean of its n-grams'
/// rows, in their order. Returns how many these are: without any, the vector is zero. A component
/// may be infinite or no number if those of the file are.
///
/// `None` for a word longer than [`MAX_SUBWORD_BYTES`].
///
/// # Panics
/// If `vector` does not have [`Ngrams::dim`] components.
pub fn vector_of_subwords(ngrams: &Ngrams, word: &str, vector: &mut [f32]) -> Option<usize> {
    assert_eq!(vector.len(), ngrams.dim(), "components of a vector");
    vector.fill(0.0);
    let mut rows = 0;
    for_each_ngram(ngrams, word, |_, bucket| {
        for (component, stored) in vector.iter_mut().zip(ngrams.vector(bucket)) {
            *component += stored;
        }
        rows += 1;
    })?;
    divide(vector, rows);
    Some(rows)
}

/// The n-grams of a word, in the order in which their rows are summed, with the word's brackets; for
/// each, whether its row is another than zero. Training changes a row when it first occurs; which
/// n-grams share one is not known.
pub fn subwords(ngrams: &Ngrams, word: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for_each_ngram(ngrams, word, |text, bucket| {
        let text = String::from_utf8_lossy(text).into_owned();
        found.push((text, ngrams.vector(bucket).iter().any(|component| *component != 0.0)));
    });
    found
}

fn for_each_ngram(ngrams: &Ngrams, word: &str, each: impl FnMut(&[u8], u32)) -> Option<()> {
    if word.len() > MAX_SUBWORD_BYTES {
        return None;
    }
    for_each_bucket(word.as_bytes(), &ngrams.lengths(), each);
    Some(())
}

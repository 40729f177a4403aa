//! The terms that an expander's texts touch, and gradients: plain loops, which everything faster is
//! tested against. Other packages' tests use this file, too, and parts of it.
//!
//! A text has tokens with vectors `x[l]`, and a term has a vector `w[v]` and a bias `b[v]`: the
//! rows and biases of a table under [`Metric::Dot`]. A position's score is
//! `s(l, v) = dot(x[l], w[v]) + b[v]`, by the contract's dot product in float64. Then
//! `f[v] = max(0, max over l of s(l, v))`, and `l*` is the lowest position at which the maximum is
//! taken. A text *touches* the terms with `f[v] > 0` ([`touched`]).
//!
//! With `g[b, v]`, the derivative of a loss by `f[v]` of text `b`, these are the [`gradients`]:
//!
//! - `dW[v]   = Σ over texts b of g[b, v] · x[b, l*]`;
//! - `db[v]   = Σ over texts b of g[b, v]`;
//! - `dX[b, l] = Σ over terms v with l* = l of g[b, v] · w[v]`.
//!
//! All three sums are over touched terms only. That is the ReLU's gate. Some texts on this head
//! write `db` without it, as the sum of `g[b, v]` over all texts; autograd has it, and so do we.
//!
//! **Order of summation.** `dW` and `db` sum their texts in ascending order, `dX` its terms in
//! ascending order; each from +0.0 in float64. The product of two float32 is exact in float64, and
//! a sum is rounded to float32 once, at its end.

#![allow(dead_code)]

use contract::{Metric, Row, Table, score};

/// The vectors of the tokens of some texts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextVectors<'a> {
    vectors: &'a [f32],
    dim: usize,
    ends: &'a [usize],
    left_out: Option<&'a [bool]>,
}

impl<'a> TextVectors<'a> {
    /// Texts, one after the other: their tokens' `vectors` `[tokens, dim]`, and where each text
    /// `ends` `[texts]`, in tokens.
    ///
    /// # Panics
    /// If `dim` is 0, or the ends do not ascend to the number of tokens, or there are 2³² texts or
    /// tokens, or more.
    pub(crate) fn new(vectors: &'a [f32], dim: usize, ends: &'a [usize]) -> Self {
        assert!(dim > 0 && vectors.len().is_multiple_of(dim), "vectors of {dim} components");
        let tokens = ends.last().copied().unwrap_or_default();
        assert!(ends.is_sorted() && tokens * dim == vectors.len(), "the texts' ends in tokens");
        let fits = |count: usize| u32::try_from(count).is_ok();
        assert!(fits(tokens) && fits(ends.len()), "texts and tokens are counted in 32 bits");
        Self { vectors, dim, ends, left_out: None }
    }

    /// The same without some positions: `left_out` is `[tokens]`.
    ///
    /// # Panics
    /// If there is not one entry for each token.
    pub(crate) fn without(self, left_out: &'a [bool]) -> Self {
        assert_eq!(left_out.len(), self.tokens(), "one entry for each token");
        Self { left_out: Some(left_out), ..self }
    }

    /// The number of texts.
    pub(crate) fn texts(&self) -> usize {
        self.ends.len()
    }

    /// The number of tokens of all texts.
    pub(crate) fn tokens(&self) -> usize {
        self.vectors.len() / self.dim
    }

    /// The tokens of a text.
    pub(crate) fn range(&self, text: usize) -> std::ops::Range<usize> {
        let start = text.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[text]
    }

    /// The vector of a token.
    fn row(&self, token: usize) -> &'a [f32] {
        &self.vectors[token * self.dim..][..self.dim]
    }
}

/// A term that a text touches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Touched {
    /// The text.
    pub(crate) text: u32,
    /// The term: a row of the table.
    pub(crate) term: u32,
    /// The position of the maximum in the text, from 0: the lowest of several.
    pub(crate) position: u32,
    /// The maximum, which is above 0.
    pub(crate) value: f64,
}

impl Touched {
    /// The same with the derivative of a loss by the value.
    pub(crate) fn with(self, gradient: f32) -> Entry {
        let Self { text, term, position, value: _ } = self;
        Entry { text, term, position, gradient }
    }
}

/// A term that a text touches, with the derivative of a loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Entry {
    /// The text.
    pub(crate) text: u32,
    /// The term: a row of the table.
    pub(crate) term: u32,
    /// The position of the maximum in the text, from 0.
    pub(crate) position: u32,
    /// The derivative of the loss by the maximum.
    pub(crate) gradient: f32,
}

/// The terms that each text touches, ordered by text, and those of a text by term.
///
/// # Panics
/// If the table is not under [`Metric::Dot`], or has other dimensions than the texts.
pub(crate) fn touched(texts: TextVectors<'_>, table: &Table<'_>) -> Vec<Touched> {
    check_table(texts, table);
    let mut found = Vec::new();
    for text in 0..texts.texts() {
        for term in 0..table.rows() as u32 {
            let row = Row(term);
            let mut best: Option<(f64, u32)> = None;
            for (position, token) in (0..).zip(texts.range(text)) {
                if texts.left_out.is_some_and(|left_out| left_out[token]) {
                    continue;
                }
                let dot = score::dot(texts.row(token), table.row(row));
                let score = dot + f64::from(table.bias(row));
                // The first of equal scores stays.
                if best.is_none_or(|(best, _)| score > best) {
                    best = Some((score, position));
                }
            }
            if let Some((value, position)) = best.filter(|(value, _)| *value > 0.0) {
                found.push(Touched { text: text as u32, term, position, value });
            }
        }
    }
    found
}

/// All gradients.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gradients {
    /// Of the terms' vectors, `[terms, dim]`.
    pub(crate) vectors: Vec<f32>,
    /// Of the terms' biases, `[terms]`.
    pub(crate) biases: Vec<f32>,
    /// Of the tokens' vectors, `[tokens, dim]`. Zero at positions where no maximum was taken.
    pub(crate) tokens: Vec<f32>,
}

/// The gradients of the terms' vectors and biases and of the tokens' vectors. `entries` are ordered
/// by text, and those of a text by term.
///
/// # Panics
/// If the table is not under [`Metric::Dot`] or has other dimensions than the texts; if the entries
/// are not in order, or name a text, a term or a position that does not exist.
pub(crate) fn gradients(texts: TextVectors<'_>, table: &Table<'_>, entries: &[Entry]) -> Gradients {
    check_table(texts, table);
    check_entries(texts, table.rows(), entries);
    let dim = texts.dim;
    let mut vectors = vec![0.0f64; table.rows() * dim];
    let mut biases = vec![0.0f64; table.rows()];
    let mut tokens = vec![0.0f64; texts.vectors.len()];
    for &Entry { text, term, position, gradient } in entries {
        let token = texts.range(text as usize).start + position as usize;
        let (at, gradient) = (term as usize * dim, f64::from(gradient));
        for (i, (x, w)) in texts.row(token).iter().zip(table.row(Row(term))).enumerate() {
            vectors[at + i] += gradient * f64::from(*x);
            tokens[token * dim + i] += gradient * f64::from(*w);
        }
        biases[term as usize] += gradient;
    }
    let rounded = |sums: Vec<f64>| sums.into_iter().map(|sum| sum as f32).collect();
    Gradients { vectors: rounded(vectors), biases: rounded(biases), tokens: rounded(tokens) }
}

/// Panics if a table is not one of terms for these texts.
fn check_table(texts: TextVectors<'_>, table: &Table<'_>) {
    assert_eq!(table.metric(), Metric::Dot, "terms score by dot products");
    assert_eq!(table.dim(), texts.dim, "texts and terms have vectors of one length");
}

/// Panics if entries are not in order, or name what does not exist.
fn check_entries(texts: TextVectors<'_>, terms: usize, entries: &[Entry]) {
    let is_before = |a: &Entry, b: &Entry| (a.text, a.term) < (b.text, b.term);
    assert!(entries.is_sorted_by(is_before), "entries are ordered by text and term, each once");
    let exists = |one: &Entry| {
        (one.text as usize) < texts.texts()
            && (one.term as usize) < terms
            && (one.position as usize) < texts.range(one.text as usize).len()
    };
    assert!(entries.iter().all(exists), "entries of texts, terms and positions that exist");
}

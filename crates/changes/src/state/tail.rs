//! The rows behind those of the base: vectors, norms, biases, keys and attributes, in parts of a
//! fixed number of rows. A part that is full never changes; the last one grows.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use contract::Row;
use model_store::attributes::Value;

use super::growing::{Filled, Growing};
use crate::schema::Schema;
use crate::values::Values;

/// Maximum size of a part's vectors, in bytes.
const PART_BYTES: usize = 4 << 20;
/// Maximum number of rows of a part.
const PART_ROWS: usize = 8192;

/// What a row is beside its numbers.
#[derive(Debug, Clone)]
pub(crate) struct RowText {
    pub(crate) key: Arc<str>,
    pub(crate) values: Values,
}

/// A row that is appended.
pub(crate) struct NewRow<'a> {
    pub(crate) text: RowText,
    pub(crate) vector: &'a [f32],
    pub(crate) norm: f64,
    pub(crate) bias: Option<f32>,
}

/// Rows one behind another, as they were at a position. Clones share the memory.
#[derive(Debug, Clone)]
pub struct TailPart {
    first: Row,
    dim: usize,
    vectors: Filled<f32>,
    norms: Filled<f64>,
    biases: Filled<f32>,
    texts: Arc<[OnceLock<RowText>]>,
}

impl TailPart {
    /// Number of the first row; the others follow.
    pub fn first(&self) -> Row {
        self.first
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.norms.len()
    }

    /// The rows, by their numbers.
    pub fn rows(&self) -> Range<usize> {
        self.first.index()..self.first.index() + self.len()
    }

    /// Whether no more rows will follow the last one.
    pub fn is_full(&self) -> bool {
        self.len() == self.texts.len()
    }

    /// Components of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The components, `[len, dim]`.
    pub fn vectors(&self) -> &[f32] {
        &self.vectors
    }

    /// The norms, `[len]`.
    pub fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// The biases, `[len]`; none at all under another metric than the dot product.
    pub fn biases(&self) -> &[f32] {
        &self.biases
    }

    /// A row, by its place in the part from 0.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, place: usize) -> TailRow<'_> {
        assert!(place < self.len(), "row {place} of a part of {}", self.len());
        let text = self.texts[place].get().expect("a row's text is there before its norm");
        TailRow {
            row: Row(self.first.0 + place as u32),
            key: &text.key,
            vector: &self.vectors[place * self.dim..][..self.dim],
            norm: self.norms[place],
            bias: self.biases.get(place).copied(),
            attributes: &text.values,
        }
    }
}

/// A row that was added after the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TailRow<'a> {
    /// Its number.
    pub row: Row,
    /// Its key.
    pub key: &'a str,
    /// Its components, `[dim]`.
    pub vector: &'a [f32],
    /// The norm of its vector, by the contract.
    pub norm: f64,
    /// Its bias, under the dot product.
    pub bias: Option<f32>,
    /// Its attributes, in the order of the schema's columns.
    pub attributes: &'a [Option<Value<'static>>],
}

/// The parts that are full, and the one that grows.
pub(super) struct Tail {
    dim: usize,
    has_biases: bool,
    rows_per_part: usize,
    full: Arc<Vec<TailPart>>,
    last: LastPart,
}

struct LastPart {
    first: Row,
    vectors: Growing<f32>,
    norms: Growing<f64>,
    biases: Growing<f32>,
    texts: Arc<[OnceLock<RowText>]>,
}

/// The parts at a position.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    rows_per_part: usize,
    full: Arc<Vec<TailPart>>,
    last: TailPart,
}

impl Tail {
    /// No rows yet; the first will be this one.
    pub(super) fn new(schema: &Schema, first: Row) -> Self {
        let fit = PART_BYTES / (schema.dim * size_of::<f32>()).max(1);
        let rows_per_part = fit.clamp(1, PART_ROWS);
        let (dim, has_biases) = (schema.dim, schema.has_biases());
        let last = LastPart::new(dim, has_biases, rows_per_part, first);
        Self { dim, has_biases, rows_per_part, full: Arc::default(), last }
    }

    pub(super) fn push(&mut self, row: NewRow<'_>) {
        let NewRow { text, vector, norm, bias } = row;
        if self.last.texts.len() == self.last.norms.filled().len() {
            let first = Row(self.last.first.0 + self.rows_per_part as u32);
            let next = LastPart::new(self.dim, self.has_biases, self.rows_per_part, first);
            let full = std::mem::replace(&mut self.last, next).filled(self.dim);
            Arc::make_mut(&mut self.full).push(full);
        }
        let place = self.last.norms.filled().len();
        let is_new = self.last.texts[place].set(text).is_ok();
        assert!(is_new, "a row is given once");
        self.last.vectors.extend(vector);
        self.last.biases.extend(bias.as_slice());
        self.last.norms.extend(&[norm]);
    }

    pub(super) fn parts(&self) -> Parts {
        let (full, last) = (Arc::clone(&self.full), self.last.filled(self.dim));
        Parts { rows_per_part: self.rows_per_part, full, last }
    }
}

impl LastPart {
    fn new(dim: usize, has_biases: bool, rows: usize, first: Row) -> Self {
        Self {
            first,
            vectors: Growing::with_capacity(rows * dim),
            norms: Growing::with_capacity(rows),
            biases: Growing::with_capacity(if has_biases { rows } else { 0 }),
            texts: (0..rows).map(|_| OnceLock::new()).collect(),
        }
    }

    fn filled(&self, dim: usize) -> TailPart {
        TailPart {
            first: self.first,
            dim,
            vectors: self.vectors.filled(),
            norms: self.norms.filled(),
            biases: self.biases.filled(),
            texts: Arc::clone(&self.texts),
        }
    }
}

impl Parts {
    pub(super) fn all(&self) -> impl Iterator<Item = &TailPart> {
        self.full.iter().chain([&self.last]).filter(|part| !part.is_empty())
    }

    /// The row at this place among all rows of the tail.
    pub(super) fn row(&self, place: usize) -> TailRow<'_> {
        let part = self.full.get(place / self.rows_per_part).unwrap_or(&self.last);
        part.row(place % self.rows_per_part)
    }
}

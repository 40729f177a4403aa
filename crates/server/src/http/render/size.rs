//! Estimates the size of an answer from its question, before anything is searched or written.

use std::iter::Sum;
use std::ops::Add;

use kindred::attributes::AttributeType;
use kindred::contract::Hit;
use kindred::question::{Checked, Included, Prepared};

use crate::http::ApiError;
use crate::http::offload::Cost;
use crate::models::{Call, Pinned};
use scheduler::account::{Pool, Reservation};

/// Bytes of a neighbour without its vector, with a word of typical length: 72 in the answer, and 16
/// as a hit.
pub(in crate::http) const BYTES_PER_NEIGHBOR: usize = 72 + 16;
/// Bytes of a component of a vector.
pub(in crate::http) const BYTES_PER_COMPONENT: usize = 12;
/// Bytes of an attribute without its name and its value.
const BYTES_PER_ATTRIBUTE: usize = 8;
/// Unpacking the block of a text that is stored takes as long as writing this many numbers.
const NUMBERS_PER_STORED_TEXT: usize = 400;
/// Bytes of a word's part in a score.
pub(in crate::http) const BYTES_PER_TERM: usize = 104;
/// Writing this many bytes of text takes as long as writing one number.
const BYTES_PER_NUMBER: usize = 16;
/// Bytes of everything else in the answer to a query, or of a problem.
const BYTES_PER_QUERY: usize = 256;
/// Answers up to this many bytes are not counted: they take no more memory than a connection's own
/// buffers.
pub(in crate::http) const UNCOUNTED_ANSWER: u64 = 16 << 10;

/// The estimated size of an answer.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::http) struct Size {
    /// Numbers and words to write. Other work is counted as numbers that take as long to write.
    numbers: usize,
    pub(in crate::http) bytes: usize,
}

impl Size {
    /// The size of the answer to one query.
    pub(in crate::http) fn of(asked: Pinned<'_>, prepared: &Prepared, options: &Checked) -> Self {
        let dim = asked.model.dim();
        // A term takes one dot product. A component of it is far less work than writing a number.
        let terms = prepared.explanation.as_ref().map_or(0, |e| e.formula.number_of_words());
        let (numbers, of_parts) = size_of_parts(asked, &prepared.included);
        let named = prepared.notes.bytes();
        let bytes = BYTES_PER_NEIGHBOR + of_parts + terms * BYTES_PER_TERM;
        let rows = asked.rows().count();
        let k = options.k.min(rows);
        // Hits that are no neighbours take memory until the neighbours are picked.
        let others = prepared.query.k.min(rows) - k;
        // If not all hits are neighbours, more are examined.
        let examined = if prepared.pick.is_some() { 16 * options.depth().min(rows) } else { 0 };
        // A neighbour is a word, which is rarely in a cache, and two numbers: 60 ns on a Xeon with
        // 2 MB of L2 a core, 150 on an EPYC with 0.5 MB.
        Self {
            numbers: k * (2 + numbers + terms * (4 + dim / 32))
                + examined
                + named / BYTES_PER_NUMBER,
            bytes: k * bytes
                + others * size_of::<Hit>()
                + BYTES_PER_QUERY
                + terms * BYTES_PER_TERM
                + 2 * named
                + prepared.added_bytes(),
        }
    }

    /// The size of a problem in place of an answer.
    pub(in crate::http) fn of_error(error: &ApiError) -> Self {
        Self {
            numbers: 8 + error.bytes() / BYTES_PER_NUMBER,
            bytes: BYTES_PER_QUERY + error.bytes(),
        }
    }

    /// The size of a text of the request that the answer repeats, with what surrounds it.
    pub(in crate::http) fn of_text(bytes: usize) -> Self {
        Self { numbers: 8 + 2 * bytes / BYTES_PER_NUMBER, bytes: BYTES_PER_QUERY + 2 * bytes }
    }

    /// The size of n rows, with their words and a few numbers each.
    pub(in crate::http) fn of_rows(rows: usize) -> Self {
        Self { numbers: 4 * rows, bytes: BYTES_PER_NEIGHBOR * rows + BYTES_PER_QUERY }
    }

    /// The size of n vectors, each with the words that it is the sum of.
    pub(in crate::http) fn of_vectors(vectors: usize, dim: usize) -> Self {
        /// Words of a text of usual length, as numbers and as bytes.
        const WORDS: usize = 16;
        let bytes = dim * (size_of::<f32>() + BYTES_PER_COMPONENT) + WORDS * 16 + BYTES_PER_QUERY;
        Self { numbers: vectors * (dim + WORDS), bytes: vectors * bytes }
    }

    /// The size of an array of this many bytes, and of the hits that it is made of.
    pub(in crate::http) fn of_array(bytes: usize, of_hits: usize) -> Self {
        /// Taking hits and copying this many bytes takes as long as writing one number.
        const BYTES_PER_NUMBER: usize = 32;
        Self { numbers: bytes / BYTES_PER_NUMBER, bytes: bytes + of_hits + BYTES_PER_QUERY }
    }

    /// About how long writing takes.
    pub(in crate::http) fn cost(self) -> Cost {
        Cost::of_writing(self.numbers)
    }

    /// Takes the memory that the answer needs until it is sent. A small answer needs none.
    pub(in crate::http) fn room(self, call: &Call) -> Result<Option<Reservation>, ApiError> {
        room_for(call, self.bytes as u64)
    }
}

/// The numbers, and the bytes, of a neighbour's parts beside its word, score and row.
pub(in crate::http) fn size_of_parts(asked: Pinned<'_>, included: &Included) -> (usize, usize) {
    let components = if included.vectors { asked.model.dim() } else { 0 };
    let (mut numbers, mut bytes) = (components, components * BYTES_PER_COMPONENT);
    for column in included.columns(asked.rows()) {
        let value = column.usual_bytes();
        bytes += column.name().len() + value + BYTES_PER_ATTRIBUTE;
        numbers += 4 + value / BYTES_PER_NUMBER;
        if column.kind() == AttributeType::Stored {
            numbers += NUMBERS_PER_STORED_TEXT;
        }
    }
    (numbers, bytes)
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { numbers: self.numbers + other.numbers, bytes: self.bytes + other.bytes }
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Self::add)
    }
}

/// Takes memory for an answer of n bytes.
pub(in crate::http) fn room_for(call: &Call, bytes: u64) -> Result<Option<Reservation>, ApiError> {
    if bytes <= UNCOUNTED_ANSWER {
        return Ok(None);
    }
    Ok(Some(call.service().memory.take(&call.account, Pool::Answers, bytes)?))
}

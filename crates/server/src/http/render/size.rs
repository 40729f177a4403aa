//! How much an answer will be, known from its question before anything is searched or written.

use std::iter::Sum;
use std::ops::Add;

use kindred::question::{Checked, Prepared};

use crate::http::ApiError;
use crate::http::aside::Work;
use crate::models::{Call, ServedModel};
use scheduler::account::{Held, Pool};

/// A neighbour without its vector, with a word of usual length: as it is found, and as it is written.
pub(in crate::http) const BYTES_PER_NEIGHBOR: usize = 72 + 16;
/// A component of a vector.
pub(in crate::http) const BYTES_PER_COMPONENT: usize = 12;
/// A word's part in a score.
pub(in crate::http) const BYTES_PER_TERM: usize = 104;
/// Writing this many bytes of text takes as long as writing one number.
const BYTES_PER_NUMBER: usize = 16;
/// Anything else that stands in an answer for a query, or a problem.
const BYTES_PER_QUERY: usize = 256;
/// Smaller answers are not counted: they are no more than a connection's own buffers.
pub(in crate::http) const UNCOUNTED_ANSWER: u64 = 16 << 10;

/// An answer's size.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::http) struct Size {
    /// Numbers and words to be written, and other work of the same length.
    numbers: usize,
    bytes: usize,
}

impl Size {
    /// Of the answer to one query.
    pub(in crate::http) fn of(
        served: &ServedModel,
        prepared: &Prepared,
        options: &Checked,
    ) -> Self {
        let dim = served.model.dim();
        let components = if prepared.with_vectors { dim } else { 0 };
        // A term takes one dot product, of which a component is far less work than a number to write.
        let terms = prepared.explain.as_ref().map_or(0, |e| e.formula.number_of_words());
        let bytes = BYTES_PER_NEIGHBOR + components * BYTES_PER_COMPONENT + terms * BYTES_PER_TERM;
        let k = options.k().min(served.model.rows());
        // Where variants are left out, more hits are looked at.
        let folded = if prepared.fold.is_some() { 16 * k } else { 0 };
        Self {
            numbers: k * (1 + components + terms * (4 + dim / 32)) + folded,
            bytes: k * bytes + BYTES_PER_QUERY + terms * BYTES_PER_TERM,
        }
    }

    /// Of a problem that stands in the place of an answer.
    pub(in crate::http) fn of_error(error: &ApiError) -> Self {
        Self {
            numbers: 8 + error.bytes() / BYTES_PER_NUMBER,
            bytes: BYTES_PER_QUERY + error.bytes(),
        }
    }

    /// Of a text of the request that is repeated, with what is around it.
    pub(in crate::http) fn of_text(bytes: usize) -> Self {
        Self { numbers: 8 + 2 * bytes / BYTES_PER_NUMBER, bytes: BYTES_PER_QUERY + 2 * bytes }
    }

    /// Of n rows with their words and a few numbers each.
    pub(in crate::http) fn of_rows(rows: usize) -> Self {
        Self { numbers: 4 * rows, bytes: BYTES_PER_NEIGHBOR * rows + BYTES_PER_QUERY }
    }

    /// About how many bytes are written.
    pub(in crate::http) fn bytes(self) -> usize {
        self.bytes
    }

    /// About how long writing takes.
    pub(in crate::http) fn work(self) -> Work {
        Work::of_writing(self.numbers)
    }

    /// The memory that the answer needs, until it is sent. A small one needs none.
    pub(in crate::http) fn room(self, call: &Call) -> Result<Option<Held>, ApiError> {
        room_for(call, self.bytes as u64)
    }
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

/// Memory for an answer of n bytes.
pub(in crate::http) fn room_for(call: &Call, bytes: u64) -> Result<Option<Held>, ApiError> {
    if bytes <= UNCOUNTED_ANSWER {
        return Ok(None);
    }
    Ok(Some(call.service().memory.take(call.account(), Pool::Answers, bytes)?))
}

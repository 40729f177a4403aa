//! A model and the position of its rows that one request is about.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use kindred::contract::Row;
use kindred::rows::{AtPosition, Rows};

use super::ServedModel;

/// A served model, whose rows are those of one position if they change. Answers are written of it.
#[derive(Clone, Copy)]
pub(crate) struct Pinned<'a> {
    served: &'a ServedModel,
    at: Option<&'a Arc<AtPosition>>,
}

impl<'a> Pinned<'a> {
    pub(super) fn new(served: &'a ServedModel, at: Option<&'a Arc<AtPosition>>) -> Self {
        Self { served, at }
    }

    /// The rows: numbers, words and attributes.
    pub(crate) fn rows(self) -> &'a dyn Rows {
        match self.at {
            Some(at) => &**at,
            None => &*self.served.model,
        }
    }

    /// The position, if the rows change.
    pub(crate) fn position(self) -> Option<u64> {
        self.at.map(|at| at.position())
    }

    /// Number of rows that are there.
    pub(crate) fn live_rows(self) -> usize {
        self.at.map_or_else(|| self.served.model.rows(), |at| at.live_rows())
    }

    /// The word of a row, without checking again that it is UTF-8: this is on the hot path.
    #[inline]
    pub(crate) fn word(self, row: Row) -> &'a [u8] {
        match self.at.and_then(|at| at.tail_row(row)) {
            Some(tail) => tail.key.as_bytes(),
            None => self.served.model.words().bytes(row),
        }
    }

    /// The beginning of an answer with room for n more bytes: an open object that says what it is
    /// about.
    pub(crate) fn begin(self, bytes: usize) -> Vec<u8> {
        let beginning = &self.served.beginning;
        let mut body = Vec::with_capacity(96 + beginning.len() + bytes);
        body.extend_from_slice(beginning);
        if let Some(position) = self.position() {
            body.extend_from_slice(b"\"position\":");
            body.extend_from_slice(itoa::Buffer::new().format(position).as_bytes());
            body.push(b',');
        }
        body
    }

    /// The entity tag of answers in JSON: a hash of what they are about.
    pub(crate) fn etag(self) -> Cow<'a, str> {
        let of_version = &self.served.etag;
        match self.position() {
            None => Cow::Borrowed(of_version),
            Some(position) => Cow::Owned(tag_with(of_version, format_args!("{position}"))),
        }
    }
}

/// An entity tag with one more part.
pub(crate) fn tag_with(tag: &str, part: std::fmt::Arguments<'_>) -> String {
    format!("{}-{part}\"", tag.trim_end_matches('"'))
}

impl Deref for Pinned<'_> {
    type Target = ServedModel;

    fn deref(&self) -> &ServedModel {
        self.served
    }
}

#[cfg(test)]
impl ServedModel {
    /// The model without a position: its rows do not change.
    pub(crate) fn pinned(&self) -> Pinned<'_> {
        Pinned::new(self, None)
    }
}

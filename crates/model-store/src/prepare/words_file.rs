//! A file of words, one a line, for vectors that come without.

use std::path::Path;

use memchr::memchr;

use super::unpack::{self, file_name};
use super::{Input, formats::MAX_RECORD_BYTES};
use crate::ModelError;

/// Words in row order.
#[derive(Debug)]
pub(super) struct WordList {
    name: String,
    text: String,
    ends: Vec<usize>,
}

impl WordList {
    /// Reads a file, packed or not.
    pub(super) fn read(path: &Path) -> Result<Self, ModelError> {
        let text = unpack::read(Input::File(path), None, |unpacked| {
            let mut text = Vec::new();
            while unpacked.fill(&mut text, MAX_RECORD_BYTES)? {}
            Ok(text)
        })?;
        let mut list = Self { name: file_name(path), text: String::new(), ends: Vec::new() };
        list.text.reserve(text.len());
        let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        while !rest.is_empty() {
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
            let bad = |reason| ModelError::BadLine {
                path: path.to_owned(),
                line: list.ends.len() as u64 + 1,
                reason,
            };
            if line.is_empty() {
                return Err(bad("the line is empty; expected a word".into()));
            }
            list.text.push_str(super::formats::utf8(line).map_err(bad)?);
            list.ends.push(list.text.len());
            rest = &rest[rest.len().min(end + 1)..];
        }
        Ok(list)
    }

    /// The file's name, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Number of words.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A word, by its row.
    pub(super) fn get(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.text[start..self.ends[row]]
    }
}

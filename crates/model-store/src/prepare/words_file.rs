//! A file of words, one per line, for vectors without words.

use std::path::Path;

use super::Input;
use super::formats::{MAX_WORD_BYTES, utf8};
use super::lines::for_each_line;
use super::unpack::{self, file_name};
use crate::ModelError;

/// Words in row order.
#[derive(Debug)]
pub(super) struct WordList {
    name: String,
    text: String,
    ends: Vec<usize>,
}

impl WordList {
    /// Reads a file, compressed or not.
    pub(super) fn read(path: &Path) -> Result<Self, ModelError> {
        let mut list = Self { name: file_name(path), text: String::new(), ends: Vec::new() };
        unpack::read(Input::File(path), None, |unpacked| {
            let what = "a words file has one word per line";
            for_each_line(unpacked, Vec::new(), true, MAX_WORD_BYTES, what, |line| list.add(line))
        })?;
        Ok(list)
    }

    fn add(&mut self, line: &[u8]) -> Result<(), String> {
        self.text.push_str(utf8(line)?);
        self.ends.push(self.text.len());
        Ok(())
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

//! A file of words, one per line, for vectors without words.

use std::path::Path;

use memchr::memchr;

use super::Input;
use super::formats::{BYTE_ORDER_MARK, MAX_WORD_BYTES, utf8};
use super::unpack::{self, file_name};
use crate::ModelError;

/// Bytes per read.
const CHUNK_BYTES: usize = 1 << 20;

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
            let bad = |line: usize, reason: &str| {
                let reason =
                    format!("line {}: {reason}; a words file has one word per line", line + 1);
                bad_words(path, reason)
            };
            let mut buffer = Vec::new();
            let mut is_first = true;
            loop {
                let more = unpacked.fill(&mut buffer, CHUNK_BYTES)?;
                let mut rest = &buffer[..];
                if std::mem::take(&mut is_first) {
                    rest = rest.strip_prefix(BYTE_ORDER_MARK).unwrap_or(rest);
                }
                while let Some(end) =
                    memchr(b'\n', rest).or((!more && !rest.is_empty()).then_some(rest.len()))
                {
                    list.add(&rest[..end]).map_err(|reason| bad(list.len(), &reason))?;
                    rest = &rest[rest.len().min(end + 1)..];
                }
                if rest.len() > MAX_WORD_BYTES {
                    return Err(bad(list.len(), "the line is longer than 4096 bytes"));
                }
                if !more {
                    return Ok(());
                }
                buffer = rest.to_vec();
            }
        })?;
        Ok(list)
    }

    fn add(&mut self, line: &[u8]) -> Result<(), String> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Err("it is empty".into());
        }
        if line.len() > MAX_WORD_BYTES {
            return Err(format!("it is longer than {MAX_WORD_BYTES} bytes"));
        }
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

fn bad_words(path: &Path, reason: String) -> ModelError {
    ModelError::BadInput { path: path.to_owned(), reason }
}

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::source::Source;
use crate::ModelError;

/// How much text is taken apart at a time, and the longest line there may be.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;

/// A text as chunks of whole lines. Memory stays bounded, whatever the file is.
pub(crate) struct Lines {
    path: PathBuf,
    buffer: Vec<u8>,
    /// The lines now in the buffer, without their ends.
    lines: Vec<Range<usize>>,
    /// Where the part of a line begins that is not whole yet, and where the buffer's content ends.
    rest: Range<usize>,
    /// Number of the next line to be read, from 1.
    next_line: u64,
    at_end: bool,
}

impl Lines {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            buffer: vec![0; CHUNK_BYTES],
            lines: Vec::new(),
            rest: 0..0,
            next_line: 1,
            at_end: false,
        }
    }

    /// Reads the next lines; the number of the first of them, from 1, or nothing at the end.
    pub(crate) fn read_more(&mut self, source: &mut Source) -> Result<Option<u64>, ModelError> {
        let first_line = self.next_line;
        self.lines.clear();
        if self.at_end {
            return Ok(None);
        }
        let kept = self.rest.len();
        self.buffer.copy_within(self.rest.clone(), 0);
        let read = source.fill(&mut self.buffer[kept..])?;
        let end = kept + read;
        self.at_end = end < self.buffer.len();

        let mut start = 0;
        while let Some(length) = self.buffer[start..end].iter().position(|&b| b == b'\n') {
            self.lines.push(start..start + length);
            start += length + 1;
        }
        if self.at_end && start < end {
            // The last line may lack its line feed.
            self.lines.push(start..end);
            start = end;
        }
        self.rest = start..end;
        if self.lines.is_empty() && !self.at_end {
            let reason = format!(
                "line {first_line} is longer than {} MiB; is this a text of one word a line?",
                CHUNK_BYTES >> 20
            );
            return Err(ModelError::BadInput { path: self.path.clone(), reason });
        }
        self.next_line += self.lines.len() as u64;
        Ok((!self.lines.is_empty()).then_some(first_line))
    }

    /// The first of the lines now in the buffer.
    pub(crate) fn first(&self) -> &[u8] {
        self.get(0)
    }

    /// Number of lines now in the buffer.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// One of the lines now in the buffer, without its end (a line feed, or carriage return and
    /// line feed).
    pub(crate) fn get(&self, line: usize) -> &[u8] {
        let line = &self.buffer[self.lines[line].clone()];
        line.strip_suffix(b"\r").unwrap_or(line)
    }
}

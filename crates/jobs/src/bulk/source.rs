//! The bytes of an input, from where work goes on, with a hash of all that was used.

use model_store::delimited::{Bytes, MOST_ROW_BYTES, count_lines};
use model_store::prepare::Unpacked;
use serde::{Deserialize, Serialize};

use crate::error::JobError;

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// A place between two rows of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// Rows before it.
    pub(super) rows: u64,
    /// Lines before it.
    pub(super) lines: u64,
    /// Bytes before it, without compression.
    pub(super) bytes: u64,
    /// The BLAKE3 hash of these bytes, so that an input that has changed is told from the one that
    /// work was begun with.
    pub(super) hash: String,
}

/// Reads an input.
pub(super) struct Source<'r, 'i> {
    unpacked: &'r mut Unpacked<'i>,
    buffer: Vec<u8>,
    /// What comes next in the buffer.
    at: usize,
    /// Up to where the buffer is hashed.
    hashed: usize,
    hasher: blake3::Hasher,
    /// All that was used.
    used: u64,
    /// Lines that were used.
    pub(super) lines: u64,
    after_return: bool,
    /// Zero bytes at the end, which only fill the file up.
    pub(super) padding: u64,
}

impl<'r, 'i> Source<'r, 'i> {
    /// From its beginning, without the byte order mark that some programs put before UTF-8.
    pub(super) fn new(unpacked: &'r mut Unpacked<'i>) -> Result<Self, JobError> {
        let mut source = Self {
            unpacked,
            buffer: Vec::new(),
            at: 0,
            hashed: 0,
            hasher: blake3::Hasher::new(),
            used: 0,
            lines: 0,
            after_return: false,
            padding: 0,
        };
        source.more()?;
        if source.rest().starts_with("\u{feff}".as_bytes()) {
            source.use_up("\u{feff}".len());
        }
        Ok(source)
    }

    /// The next bytes were used.
    pub(super) fn use_up(&mut self, bytes: usize) {
        self.at += bytes;
        self.used += bytes as u64;
    }

    fn hash(&mut self) {
        self.hasher.update(&self.buffer[self.hashed..self.at]);
        self.hashed = self.at;
    }

    /// The place after this number of rows.
    pub(super) fn position(&mut self, rows: u64) -> Position {
        self.hash();
        let hash = self.hasher.finalize().to_hex().to_string();
        Position { rows, lines: self.lines, bytes: self.used, hash }
    }

    /// Goes on to this place. `false` if what comes before it is not what it was.
    pub(super) fn go_on_to(&mut self, place: &Position) -> Result<bool, JobError> {
        while self.used < place.bytes {
            let some = (place.bytes - self.used).min(self.rest().len() as u64) as usize;
            self.use_up(some);
            if self.used < place.bytes && !self.more()? {
                return Ok(false);
            }
        }
        self.lines = place.lines;
        // What follows a `\r` ends no line again, if it is a `\n`.
        self.after_return = self.at > 0 && self.buffer[self.at - 1] == b'\r';
        Ok(self.position(place.rows) == *place)
    }

    /// Whether nothing but ends of lines and then zero bytes is left, at most as many as a row may
    /// have. Counts the zero bytes.
    pub(super) fn is_filled_up(&mut self) -> Result<bool, JobError> {
        let (mut seen, mut zeros) = (0, 0);
        loop {
            for &byte in &self.rest()[seen..] {
                match byte {
                    0 => zeros += 1,
                    b'\n' | b'\r' if zeros == 0 => {}
                    _ => return Ok(false),
                }
            }
            seen = self.rest().len();
            if seen > MOST_ROW_BYTES {
                return Ok(false);
            }
            if !self.more()? {
                self.padding = zeros;
                return Ok(true);
            }
        }
    }

    /// Bytes of the file that were read, before decompression.
    pub(super) fn bytes_read(&self) -> u64 {
        self.unpacked.bytes_read()
    }
}

impl Bytes for Source<'_, '_> {
    type Error = JobError;

    fn rest(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    fn more(&mut self) -> Result<bool, JobError> {
        self.hash();
        self.buffer.drain(..self.at);
        (self.at, self.hashed) = (0, 0);
        let before = self.buffer.len();
        self.unpacked.fill(&mut self.buffer, CHUNK)?;
        Ok(self.buffer.len() > before)
    }

    fn use_up_lines(&mut self, bytes: usize) {
        let used = &self.buffer[self.at..self.at + bytes];
        self.lines += count_lines(used, &mut self.after_return);
        self.use_up(bytes);
    }

    fn lines(&self) -> u64 {
        self.lines
    }
}

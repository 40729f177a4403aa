//! Reads the fields of a fastText file one after the other, none beyond the file's end.

use std::path::Path;

use crate::EncoderError;

/// A place in a file.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    path: &'a Path,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(path: &'a Path, bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, path }
    }

    /// The byte that comes next.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The number of bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The fault of the field that begins at a byte.
    pub(super) fn damaged(&self, byte: usize, reason: impl Into<String>) -> EncoderError {
        EncoderError::Damaged {
            path: self.path.to_owned(),
            byte: byte as u64,
            reason: reason.into(),
        }
    }

    /// A kind of file that is not read.
    pub(super) fn unsupported(&self, reason: impl Into<String>) -> EncoderError {
        EncoderError::Unsupported { path: self.path.to_owned(), reason: reason.into() }
    }

    /// The next bytes. The length is compared with the file's before anything is made of it.
    pub(super) fn take(&mut self, length: u64, name: &str) -> Result<&'a [u8], EncoderError> {
        if length > self.left() as u64 {
            let left = self.left();
            let reason = format!("{name} needs {length} bytes, and the file ends after {left}");
            return Err(self.damaged(self.at, reason));
        }
        // Not more than are left.
        let length = length as usize;
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, name: &str) -> Result<[u8; N], EncoderError> {
        Ok(self.take(N as u64, name)?.try_into().expect("as many bytes as were asked for"))
    }

    pub(super) fn i8(&mut self, name: &str) -> Result<i8, EncoderError> {
        self.array(name).map(i8::from_le_bytes)
    }

    pub(super) fn i32(&mut self, name: &str) -> Result<i32, EncoderError> {
        self.array(name).map(i32::from_le_bytes)
    }

    pub(super) fn i64(&mut self, name: &str) -> Result<i64, EncoderError> {
        self.array(name).map(i64::from_le_bytes)
    }

    /// A number that counts something.
    pub(super) fn count(&mut self, name: &str) -> Result<u32, EncoderError> {
        let at = self.at;
        let number = self.i32(name)?;
        u32::try_from(number).map_err(|_| self.damaged(at, format!("{name} is {number}")))
    }

    /// Yes or no: fastText writes a byte of 0 or 1.
    pub(super) fn bool(&mut self, name: &str) -> Result<bool, EncoderError> {
        let at = self.at;
        match self.i8(name)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.damaged(at, format!("{name} is {other} instead of 0 or 1"))),
        }
    }

    /// Checks that nothing follows the last field.
    pub(super) fn end(&self, last: &str) -> Result<(), EncoderError> {
        match self.left() {
            0 => Ok(()),
            left => Err(self.damaged(self.at, format!("{left} bytes follow {last}"))),
        }
    }

    /// The bytes up to the next 0, which is skipped.
    pub(super) fn until_zero(&mut self, name: &str) -> Result<&'a [u8], EncoderError> {
        let rest = &self.bytes[self.at..];
        let Some(length) = memchr::memchr(0, rest) else {
            return Err(self.damaged(self.at, format!("{name} has no end")));
        };
        self.at += length + 1;
        Ok(&rest[..length])
    }
}

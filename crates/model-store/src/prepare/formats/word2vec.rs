//! word2vec's binary format: a line with the numbers of rows and components, then for each row its
//! word, a space, its components as little-endian float32, and an optional line feed.

use memchr::memchr;

use super::{BadBytes, Framing, MAX_WORD_BYTES, Parsed, Parser, check_finite, utf8};
use crate::number::Number;
use crate::prepare::encoding::{TextEncoding, word_in};

/// Finds the end of each row.
pub(super) struct RowFraming {
    pub(super) dim: usize,
    /// Rows according to the header.
    pub(super) rows: u64,
    /// Rows found so far.
    pub(super) found: u64,
}

/// The offsets of a row's word, of its components and of their end; `None` if bytes are missing.
fn split(bytes: &[u8], dim: usize) -> Result<Option<(usize, usize, usize)>, &'static str> {
    // The line feed after the previous row.
    let word = usize::from(bytes.starts_with(b"\n"));
    let window = &bytes[word..bytes.len().min(word + MAX_WORD_BYTES + 1)];
    let Some(length) = memchr(b' ', window) else {
        if window.len() > MAX_WORD_BYTES {
            return Err("expected a word of at most 4096 bytes followed by a space");
        }
        return Ok(None);
    };
    let components = word + length + 1;
    let end = components + dim * size_of::<f32>();
    Ok((end <= bytes.len()).then_some((word, components, end)))
}

impl Framing for RowFraming {
    fn whole(&mut self, bytes: &[u8], at_end: bool) -> Result<(usize, u64), BadBytes> {
        let (mut whole, before) = (0, self.found);
        while self.found < self.rows {
            let fault = |byte, reason| BadBytes { record: Some(self.found), byte, reason };
            match split(&bytes[whole..], self.dim) {
                Ok(Some((_, _, end))) => whole += end,
                Ok(None) if !at_end => return Ok((whole, self.found - before)),
                Ok(None) if whole + 1 >= bytes.len() => {
                    let reason = format!(
                        "the file ends here, but its header announces {} rows of {} components",
                        self.rows, self.dim
                    );
                    return Err(fault(whole, reason));
                }
                Ok(None) => {
                    let reason = format!(
                        "the file ends inside this row of {} components (the file is cut off, or its header \
                         is wrong)",
                        self.dim
                    );
                    return Err(fault(whole, reason));
                }
                Err(reason) => {
                    let reason = format!(
                        "{reason} (the file is damaged, or its header is wrong: {} rows of {} components)",
                        self.rows, self.dim
                    );
                    return Err(fault(whole, reason));
                }
            }
            self.found += 1;
        }
        let rest = &bytes[whole..];
        if !rest.is_empty() && rest != b"\n" {
            let reason = format!(
                "the file has more data after the {} rows that its header announces",
                self.rows
            );
            return Err(BadBytes { record: None, byte: whole, reason });
        }
        // A line feed after the last row belongs to it.
        Ok((bytes.len(), self.found - before))
    }

    fn end_of(&self, bytes: &[u8], records: u64) -> Option<usize> {
        if records > self.rows - self.found {
            return None;
        }
        (0..records).try_fold(0, |end, _| match split(&bytes[end..], self.dim) {
            Ok(Some((_, _, length))) => Some(end + length),
            _ => None,
        })
    }
}

pub(super) struct BinaryRows {
    pub(super) dim: usize,
    /// The encoding of the words, if it is not UTF-8.
    pub(super) encoding: Option<TextEncoding>,
}

impl Parser for BinaryRows {
    fn parse(&self, bytes: &[u8], _first: u64) -> Parsed {
        let mut parsed = Parsed::default();
        parsed.components.reserve(bytes.len() / size_of::<f32>());
        let mut start = 0;
        // The framing only passes whole records.
        while let Ok(Some((word, components, end))) = split(&bytes[start..], self.dim) {
            let row = &bytes[start..start + end];
            let word = &row[word..components - 1];
            Number::F32.read(&row[components..], &mut parsed.components);
            match check_word(&word_in(self.encoding, word)) {
                Ok(word) => {
                    let before = parsed.components.len() - self.dim;
                    let good = check_finite(&parsed.components[before..]).map(|()| word);
                    parsed.end_record(good, self.dim, start);
                }
                Err(reason) => parsed.end_broken_record(reason, self.dim, start),
            }
            start += end;
        }
        parsed
    }
}

/// An invalid word means that the header is wrong, or that the previous word contains a space. Then
/// all following data is misplaced.
fn check_word(word: &[u8]) -> Result<&str, String> {
    let reason = match utf8(word, None) {
        Ok("") => "the word is empty".to_owned(),
        Ok(word) if word.contains(|c: char| c.is_ascii_control()) => {
            "the word contains control characters".to_owned()
        }
        Ok(word) => return Ok(word),
        Err(reason) => reason,
    };
    Err(reason
        + "; the header may be wrong, or an earlier word contains a space, which this format does not allow: \
             use the text form instead")
}

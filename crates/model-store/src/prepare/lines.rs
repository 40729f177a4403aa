//! The lines of a small file beside the vectors: words, or biases.

use std::mem;

use memchr::memchr;

use super::blank_end::BlankEnd;
use super::encoding::TextEncoding;
use super::formats::{is_padding, without_returns};
use super::plain_text::{other_kind_reason, utf16_cure};
use super::signature::BYTE_ORDER_MARK;
use super::unpack::Unpacked;
use crate::ModelError;

/// Bytes per read.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// Passes each line to `take`, without its line feed and carriage return. `buffer` has what was
/// read already; `more` says whether the file may go on. Returns a warning if empty lines or zero
/// bytes at the end were left out.
///
/// An error of `take` names what is wrong with the line; `what` says what every line is.
pub(super) fn for_each_line(
    unpacked: &mut Unpacked<'_>,
    buffer: Vec<u8>,
    more: bool,
    encoding: Option<TextEncoding>,
    most_bytes: usize,
    what: &str,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<Option<String>, ModelError> {
    let (mut buffer, mut more) = begin(unpacked, buffer, more, encoding)?;
    let mut line = 0u64;
    let so_far = unpacked.progress().clone();
    let bad = |line: u64, reason: &str| so_far.bad(format!("line {line}: {reason}; {what}"));
    let too_long = || format!("the line is longer than {most_bytes} bytes");
    // Empty lines and zero bytes that nothing has followed so far.
    let mut end = BlankEnd::default();
    loop {
        let mut rest = &buffer[..];
        while let Some(until) =
            memchr(b'\n', rest).or((!more && !rest.is_empty()).then_some(rest.len()))
        {
            line += 1;
            let text = without_returns(&rest[..until]);
            let is_last = !more && until == rest.len();
            rest = &rest[rest.len().min(until + 1)..];
            if text.is_empty() {
                end.lines += 1;
                continue;
            }
            if is_last && is_padding(text) {
                end.zeros += text.len() as u64;
                continue;
            }
            let taken = match text.len() {
                _ if end.zeros > 0 => Err(too_long()),
                _ if end.lines > 0 => return Err(bad(line - end.lines, "it is empty")),
                bytes if bytes > most_bytes => Err(too_long()),
                _ => take(text),
            };
            taken.map_err(|reason| bad(line, &reason))?;
        }
        if rest.len() > most_bytes + 1 {
            if !is_padding(rest) {
                return Err(bad(line + 1, &too_long()));
            }
            end.zeros += rest.len() as u64;
            rest = &[];
        }
        if !more {
            return Ok(end.warning());
        }
        buffer = rest.to_vec();
        more = unpacked.fill(&mut buffer, CHUNK_BYTES)?;
    }
}

/// The first bytes as UTF-8, without a byte order mark, and whether the file may go on.
pub(super) fn begin(
    unpacked: &mut Unpacked<'_>,
    mut buffer: Vec<u8>,
    mut more: bool,
    encoding: Option<TextEncoding>,
) -> Result<(Vec<u8>, bool), ModelError> {
    if buffer.is_empty() && more {
        more = unpacked.fill(&mut buffer, CHUNK_BYTES)?;
    }
    // Signatures are those of the file, not of decoded text.
    if let Some(reason) = other_kind_reason(&buffer) {
        return Err(unpacked.progress().bad(reason));
    }
    if let Some(encoding) = encoding.and_then(TextEncoding::other_than_utf8) {
        unpacked.decode(encoding, mem::take(&mut buffer));
        more = unpacked.fill(&mut buffer, CHUNK_BYTES)?;
    }
    if let Some(reason) = utf16_cure(&buffer) {
        return Err(unpacked.progress().bad(reason));
    }
    if buffer.starts_with(BYTE_ORDER_MARK) {
        buffer.drain(..BYTE_ORDER_MARK.len());
    }
    Ok((buffer, more))
}

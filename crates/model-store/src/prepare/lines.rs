//! The lines of a small file beside the vectors: words, or biases.

use memchr::memchr;

use super::formats::BYTE_ORDER_MARK;
use super::plain_text::utf16_cure;
use super::unpack::Unpacked;
use crate::ModelError;

/// Bytes per read.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// Passes each line to `take`, without its line feed and carriage return. `buffer` has what was
/// read already; `more` says whether the file may go on.
///
/// An error of `take` names what is wrong with the line; `what` says what every line is.
pub(super) fn for_each_line(
    unpacked: &mut Unpacked<'_>,
    mut buffer: Vec<u8>,
    mut more: bool,
    most_bytes: usize,
    what: &str,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), ModelError> {
    let mut line = 0u64;
    let so_far = unpacked.progress().clone();
    let bad = |line: u64, reason: &str| so_far.bad(format!("line {line}: {reason}; {what}"));
    let too_long = || format!("the line is longer than {most_bytes} bytes");
    let mut is_first = true;
    loop {
        let mut rest = &buffer[..];
        if is_first && !rest.is_empty() {
            is_first = false;
            if let Some(reason) = utf16_cure(rest) {
                return Err(so_far.bad(reason));
            }
            rest = rest.strip_prefix(BYTE_ORDER_MARK).unwrap_or(rest);
        }
        while let Some(end) =
            memchr(b'\n', rest).or((!more && !rest.is_empty()).then_some(rest.len()))
        {
            line += 1;
            let text = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
            let taken = match text.len() {
                0 => Err("it is empty".to_owned()),
                bytes if bytes > most_bytes => Err(too_long()),
                _ => take(text),
            };
            taken.map_err(|reason| bad(line, &reason))?;
            rest = &rest[rest.len().min(end + 1)..];
        }
        if rest.len() > most_bytes + 1 {
            return Err(bad(line + 1, &too_long()));
        }
        if !more {
            return Ok(());
        }
        buffer = rest.to_vec();
        more = unpacked.fill(&mut buffer, CHUNK_BYTES)?;
    }
}

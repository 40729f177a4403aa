//! The lines of a small file beside the vectors: words, or biases.

use memchr::memchr;

use super::blank_end::BlankEnd;
use super::formats::BYTE_ORDER_MARK;
use super::plain_text::not_plain_reason;
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
    mut buffer: Vec<u8>,
    mut more: bool,
    most_bytes: usize,
    what: &str,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<Option<String>, ModelError> {
    let mut line = 0u64;
    let so_far = unpacked.progress().clone();
    let bad = |line: u64, reason: &str| so_far.bad(format!("line {line}: {reason}; {what}"));
    let too_long = || format!("the line is longer than {most_bytes} bytes");
    let mut is_first = true;
    // Empty lines and zero bytes that nothing has followed so far.
    let mut end = BlankEnd::default();
    loop {
        let mut rest = &buffer[..];
        if is_first && !rest.is_empty() {
            is_first = false;
            if let Some(reason) = not_plain_reason(rest) {
                return Err(so_far.bad(reason));
            }
            rest = rest.strip_prefix(BYTE_ORDER_MARK).unwrap_or(rest);
        }
        while let Some(until) =
            memchr(b'\n', rest).or((!more && !rest.is_empty()).then_some(rest.len()))
        {
            line += 1;
            let text = rest[..until].strip_suffix(b"\r").unwrap_or(&rest[..until]);
            let is_last = !more && until == rest.len();
            rest = &rest[rest.len().min(until + 1)..];
            if text.is_empty() {
                end.lines += 1;
                continue;
            }
            if is_last && text.iter().all(|&byte| byte == 0) {
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
            if rest.iter().any(|&byte| byte != 0) {
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

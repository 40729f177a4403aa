//! Attributes in CSV (RFC 4180) with a header. Fields may also be separated by semicolons or tabs:
//! no name has either.

use std::io::{self, Cursor, Read as _};
use std::mem;

use csv::{ByteRecord, Position, Reader, ReaderBuilder};
use indexmap::IndexSet;

use super::super::input::ReadSoFar;
use super::super::lines::CHUNK_BYTES;
use super::super::unpack::Unpacked;
use super::field::Field;
use super::line::{Line, Read, Take};
use crate::ModelError;
use crate::error::because;

/// Maximum length of a field; a longer one has a quote that nobody closed.
const MAX_FIELD_BYTES: usize = 1 << 20;

/// Signs that may separate fields.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// Reads a file that begins with `start`; `more` says whether it may go on.
pub(super) fn read(
    unpacked: &mut Unpacked<'_>,
    start: Vec<u8>,
    more: bool,
    take: Take<'_>,
) -> Result<Read, ModelError> {
    let so_far = unpacked.progress().clone();
    let rest = Rest { read: Cursor::new(start), unpacked, more, fault: None };
    let mut builder = ReaderBuilder::new();
    builder.delimiter(separator(rest.read.get_ref())).has_headers(false).flexible(true);
    let mut reader = builder.from_reader(rest);
    let bad = |line: u64, reason: String| so_far.bad(format!("line {line}: {reason}"));
    let mut record = ByteRecord::new();
    if next(&mut reader, &mut record, &so_far)?.is_none() {
        return Err(so_far.bad("it is empty; its first line names the attributes"));
    }
    let names = header(&record).map_err(|reason| bad(1, reason))?;
    while let Some(number) = next(&mut reader, &mut record, &so_far)? {
        let fields = fields(&names, &record).map_err(|reason| bad(number, reason))?;
        let line = Line { number, names: &names, fields: &fields };
        take(&line).map_err(|reason| bad(number, reason))?;
    }
    Ok(Read { names, warning: None })
}

/// The sign between the names of the first line.
fn separator(start: &[u8]) -> u8 {
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    SEPARATORS.into_iter().find(|sign| line.contains(sign)).unwrap_or(SEPARATORS[0])
}

/// Reads the next record. Returns the number of its first line; `None` at the end.
fn next(
    reader: &mut Reader<Rest<'_, '_>>,
    record: &mut ByteRecord,
    so_far: &ReadSoFar,
) -> Result<Option<u64>, ModelError> {
    match reader.read_byte_record(record) {
        Ok(true) => Ok(Some(record.position().map_or(0, Position::line))),
        Ok(false) => Ok(None),
        Err(error) => {
            let fault = reader.get_mut().fault.take();
            let text = format!("it can't be read as CSV ({error})");
            Err(fault.unwrap_or_else(|| so_far.bad(because(text, error))))
        }
    }
}

/// The names in the header.
fn header(record: &ByteRecord) -> Result<IndexSet<String>, String> {
    let mut names = IndexSet::with_capacity(record.len());
    for name in record {
        let name = std::str::from_utf8(name).map_err(|_| not_text("the header"))?.trim();
        if !names.insert(name.to_owned()) {
            return Err(format!("two columns have the name {name:?}; rename one"));
        }
    }
    Ok(names)
}

/// The fields of a record.
fn fields<'a>(
    names: &IndexSet<String>,
    record: &'a ByteRecord,
) -> Result<Vec<(usize, Field<'a>)>, String> {
    let long = record.iter().position(|field| field.len() > MAX_FIELD_BYTES);
    if let Some(name) = long.map(|index| names.get_index(index)) {
        let name = name.map_or("a field", String::as_str);
        return Err(format!(
            "`{name}` has more than {MAX_FIELD_BYTES} bytes; a quote may not be closed"
        ));
    }
    if record.len() != names.len() {
        return Err(format!(
            "it has {} fields, but the header has {}; a text with a separator, a quote or a line \
             feed stands between quotes",
            record.len(),
            names.len()
        ));
    }
    let field = |(index, field): (usize, &'a [u8])| {
        let text = std::str::from_utf8(field).map_err(|_| not_text(&names[index]))?;
        Ok::<_, String>((index, Field::Untyped(text)))
    };
    record.iter().enumerate().map(field).collect()
}

fn not_text(name: &str) -> String {
    format!("`{name}` has bytes that are not of the file's encoding; name it with --encoding")
}

/// The bytes of a file behind those that were read.
struct Rest<'r, 'u> {
    read: Cursor<Vec<u8>>,
    unpacked: &'r mut Unpacked<'u>,
    /// Whether there may be more than was read.
    more: bool,
    /// Why reading failed.
    fault: Option<ModelError>,
}

impl io::Read for Rest<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let bytes = self.read.read(buffer)?;
            if bytes > 0 || buffer.is_empty() || !self.more {
                return Ok(bytes);
            }
            let mut next = mem::take(&mut self.read).into_inner();
            next.clear();
            match self.unpacked.fill(&mut next, CHUNK_BYTES) {
                Ok(more) => self.more = more,
                Err(fault) => {
                    self.fault = Some(fault);
                    return Err(io::Error::other("the file can't be read"));
                }
            }
            self.read = Cursor::new(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_shows_its_separator() {
        for (start, expected) in [
            (&b"a,b\n1;2;3\n"[..], b','),
            (b"a;b\n1,5;2\n", b';'),
            (b"a\tb\r\n1,5\t2\n", b'\t'),
            (b"a", b','),
            (b"", b','),
        ] {
            assert_eq!(separator(start), expected, "{start:?}");
        }
    }
}

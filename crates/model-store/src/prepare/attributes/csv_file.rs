//! Attributes in CSV (RFC 4180) or TSV with a header. Fields of CSV may also be separated by
//! semicolons: no name has either.

use indexmap::IndexSet;

use super::super::lines::CHUNK_BYTES;
use super::super::unpack::Unpacked;
use super::field::Field;
use super::line::{Line, Read, Take};
use crate::ModelError;
use crate::delimited::{Bytes, Dialect, Reader, Row, count_lines};

/// In the order in which a header tells them.
const DIALECTS: [Dialect; 3] = [Dialect::Tsv, Dialect::Csv, Dialect::Semicolons];

/// Of a file with one column, an empty line might be a missing value or nothing at all; behind it,
/// all lines would go with the wrong rows.
const EMPTY: &str = "it is empty; remove it, or write \"\" if it stands for a missing value";

/// Reads a file that begins with `start`; `more` says whether it may go on.
pub(super) fn read(
    unpacked: &mut Unpacked<'_>,
    start: Vec<u8>,
    more: bool,
    take: Take<'_>,
) -> Result<Read, ModelError> {
    let so_far = unpacked.progress().clone();
    let bad = |line: u64, reason: String| so_far.bad(format!("line {line}: {reason}"));
    let mut reader = Reader::new(dialect(&start));
    let mut rest = Rest { unpacked, buffer: start, at: 0, more, lines: 0, after_return: false };
    // Lines up to the end of the last row.
    let mut lines = 0;
    let mut names: Option<IndexSet<String>> = None;
    while let Some(row) = reader.next(&mut rest)? {
        if row.line > lines + 1 {
            return Err(bad(lines + 1, EMPTY.to_owned()));
        }
        lines = rest.lines;
        if let Some(problem) = row.problem {
            return Err(bad(row.line, problem.reason(reader.dialect())));
        }
        match &names {
            None => {
                let found = header(&reader, &row).map_err(|reason| bad(row.line, reason))?;
                names = Some(found);
            }
            Some(names) => {
                let taken = fields(names, &reader)
                    .and_then(|fields| take(&Line { number: row.line, names, fields: &fields }));
                taken.map_err(|reason| bad(row.line, reason))?;
            }
        }
    }
    let names = names.ok_or_else(|| so_far.bad("it is empty; its first line names the attributes"));
    Ok(Read { names: names?, warning: None })
}

/// The dialect by the sign between the names of the first line.
fn dialect(start: &[u8]) -> Dialect {
    let mut is_quoted = false;
    let outside = |byte: &u8| {
        is_quoted ^= *byte == b'"';
        !is_quoted
    };
    let line = start.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    let line: Vec<u8> = line.iter().copied().filter(outside).collect();
    let has_separator = |dialect: &Dialect| line.contains(&dialect.separator());
    DIALECTS.into_iter().find(has_separator).unwrap_or(Dialect::Csv)
}

/// The names in the header.
fn header(reader: &Reader, row: &Row) -> Result<IndexSet<String>, String> {
    let mut names = IndexSet::with_capacity(row.columns);
    for column in 0..row.columns {
        let name = reader.field(column);
        let name = std::str::from_utf8(name).map_err(|_| not_text("the header"))?.trim();
        if !names.insert(name.to_owned()) {
            return Err(format!("two columns have the name {name:?}; rename one"));
        }
    }
    Ok(names)
}

/// The fields of the last row, which has as many as the header.
fn fields<'a>(
    names: &IndexSet<String>,
    reader: &'a Reader,
) -> Result<Vec<(usize, Field<'a>)>, String> {
    let field = |(column, name): (usize, &String)| {
        let text = std::str::from_utf8(reader.field(column)).map_err(|_| not_text(name))?;
        Ok((column, Field::Untyped(text)))
    };
    names.iter().enumerate().map(field).collect()
}

fn not_text(name: &str) -> String {
    format!("`{name}` has bytes that are not of the file's encoding; name it with --encoding")
}

/// The bytes of a file behind those that were used.
struct Rest<'r, 'u> {
    unpacked: &'r mut Unpacked<'u>,
    buffer: Vec<u8>,
    /// What comes next in the buffer.
    at: usize,
    /// Whether there may be more than was read.
    more: bool,
    /// Ends of lines that were used.
    lines: u64,
    after_return: bool,
}

impl Bytes for Rest<'_, '_> {
    type Error = ModelError;

    fn rest(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    fn more(&mut self) -> Result<bool, ModelError> {
        if !self.more {
            return Ok(false);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let before = self.buffer.len();
        self.more = self.unpacked.fill(&mut self.buffer, CHUNK_BYTES)?;
        Ok(self.buffer.len() > before)
    }

    fn use_up_lines(&mut self, bytes: usize) {
        let used = &self.buffer[self.at..self.at + bytes];
        self.lines += count_lines(used, &mut self.after_return);
        self.at += bytes;
    }

    fn lines(&self) -> u64 {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_shows_its_separator() {
        for (start, expected) in [
            (&b"a,b\n1;2;3\n"[..], Dialect::Csv),
            (b"a;b\n1,5;2\n", Dialect::Semicolons),
            (b"a;b\r1,5;2\r", Dialect::Semicolons),
            (b"\"a, or \"\"b\"\"\";b\n", Dialect::Semicolons),
            (b"a, or b\tc\r\n1,5\t2\n", Dialect::Tsv),
            (b"a", Dialect::Csv),
            (b"", Dialect::Csv),
        ] {
            assert_eq!(dialect(start), expected, "{start:?}");
        }
    }
}

//! Cuts an input into rows, and rows into parts that are answered together.
//!
//! Where a part ends depends on the input and the options only, so a part of a resumed run is one of an undisturbed run.

use std::ops::{ControlFlow, Range};

use csv_core::{ReadRecordResult, Reader};
use memchr::memchr;
use model_store::prepare::{Input, read_unpacked};

use super::source::{Position, Source};
use super::{BulkError, BulkFormat, BulkInput, Fault};

/// A part ends after the row that makes it longer.
const PART_BYTES: usize = 1 << 20;

/// Longer rows are not answered, so that a quote that is never closed does not take all memory.
pub(super) const MOST_ROW_BYTES: usize = 16 << 20;

/// Rows with more columns are not answered.
const MOST_COLUMNS: usize = 1 << 16;

/// Rows that are answered together.
#[derive(Default)]
pub(super) struct Part {
    /// Counted from the first part of this run.
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) rows: Vec<RawRow>,
    /// Where it ends.
    pub(super) end: Position,
    /// Bytes of the file that were read by then, before decompression.
    pub(super) bytes_read: u64,
}

/// A row as it is in the input: places in the bytes of its part.
pub(super) struct RawRow {
    /// From 1.
    pub(super) line: u64,
    /// The text; of JSON, the whole line.
    pub(super) text: Range<usize>,
    /// The column with its id.
    pub(super) id: Option<Range<usize>>,
    /// Why it can't be read.
    pub(super) fault: Option<Fault>,
}

/// How an input is read.
pub(super) struct Reading<'a> {
    pub(super) input: BulkInput<'a>,
    pub(super) format: BulkFormat,
    pub(super) column: &'a str,
    pub(super) id: Option<&'a str>,
    pub(super) rows_per_part: usize,
    /// Where an earlier run ended.
    pub(super) from: Option<&'a Position>,
}

/// Why reading ended: it is over, the caller has enough, or what was read before has changed.
#[derive(Debug, PartialEq)]
pub(super) enum Ended {
    AtTheEnd,
    Enough,
    Changed,
}

impl Part {
    fn push(&mut self, line: u64, text: &[u8], id: Option<&[u8]>, fault: Option<Fault>) {
        let mut put = |bytes: &[u8]| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            start..self.bytes.len()
        };
        let (text, id) = (put(text), id.map(&mut put));
        self.rows.push(RawRow { line, text, id, fault });
    }
}

impl Reading<'_> {
    /// Gives the parts of the input to `take`, in order.
    pub(super) fn parts(
        &self,
        take: &mut dyn FnMut(Part) -> ControlFlow<()>,
    ) -> Result<Ended, BulkError> {
        let input = match self.input {
            BulkInput::File(path) => Input::File(path),
            BulkInput::Stdin => Input::Stdin,
        };
        read_unpacked(input, |unpacked| {
            let mut source = Source::new(unpacked)?;
            match self.format {
                BulkFormat::Csv => {
                    let Some(mut csv) = Csv::new(&mut source, self)? else {
                        return Ok(Ended::AtTheEnd);
                    };
                    self.cut(&mut source, |source, part| csv.next(source, part), take)
                }
                format => {
                    let skips_blank = format == BulkFormat::JsonLines;
                    let next = |source: &mut Source<'_, '_>, part: &mut Part| {
                        next_line(source, part, skips_blank)
                    };
                    self.cut(&mut source, next, take)
                }
            }
        })?
    }

    /// `next` appends a row to a part; `false` at the end.
    fn cut<'r, 'i>(
        &self,
        source: &mut Source<'r, 'i>,
        mut next: impl FnMut(&mut Source<'r, 'i>, &mut Part) -> Result<bool, BulkError>,
        take: &mut dyn FnMut(Part) -> ControlFlow<()>,
    ) -> Result<Ended, BulkError> {
        if let Some(place) = self.from
            && !source.go_on_to(place)?
        {
            return Ok(Ended::Changed);
        }
        let mut rows = self.from.map_or(0, |place| place.rows);
        for number in 0.. {
            let mut part = Part { number, ..Part::default() };
            let mut goes_on = true;
            while goes_on && part.rows.len() < self.rows_per_part && part.bytes.len() < PART_BYTES {
                goes_on = next(source, &mut part)?;
            }
            if part.rows.is_empty() {
                break;
            }
            rows += part.rows.len() as u64;
            (part.end, part.bytes_read) = (source.position(rows), source.bytes_read());
            if take(part).is_break() {
                return Ok(Ended::Enough);
            }
        }
        Ok(Ended::AtTheEnd)
    }
}

fn too_large() -> Fault {
    let detail = format!("it has more than {} MiB; split it", MOST_ROW_BYTES >> 20);
    Fault { code: "row_too_large", detail }
}

/// The next line without its end.
fn next_line(
    source: &mut Source<'_, '_>,
    part: &mut Part,
    skips_blank: bool,
) -> Result<bool, BulkError> {
    let (mut searched, mut is_too_large) = (0, false);
    loop {
        let rest = source.rest();
        let found = memchr(b'\n', &rest[searched..]).map(|at| searched + at);
        let end = found.unwrap_or(rest.len());
        is_too_large |= end > MOST_ROW_BYTES;
        if found.is_none() {
            match is_too_large {
                true => source.use_up(end),
                false => searched = end,
            }
            if source.more()? {
                searched = if is_too_large { 0 } else { searched };
                continue;
            }
            // The end of the input ends its last line, if there is one.
            if source.rest().is_empty() && !is_too_large {
                return Ok(false);
            }
        }
        let (end, number) = (end.min(source.rest().len()), source.lines + 1);
        let line = &source.rest()[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_blank = skips_blank && !is_too_large && line.trim_ascii().is_empty();
        if is_too_large {
            part.push(number, b"", None, Some(too_large()));
        } else if !is_blank {
            part.push(number, line, None, None);
        }
        source.lines = number;
        source.use_up(end + usize::from(found.is_some()));
        if !is_blank {
            return Ok(true);
        }
        (searched, is_too_large) = (0, false);
    }
}

/// Rows of CSV.
struct Csv {
    core: Reader,
    text: usize,
    id: Option<usize>,
    columns: usize,
    fields: Vec<u8>,
    /// Where each field ends.
    ends: Vec<usize>,
}

/// What was read of a row: its line, the number of its columns, and what is wrong with it.
struct Record {
    line: u64,
    columns: usize,
    fault: Option<Fault>,
}

impl Csv {
    /// Reads the names of the columns. `None` if the input is empty.
    fn new(source: &mut Source<'_, '_>, wanted: &Reading<'_>) -> Result<Option<Self>, BulkError> {
        let mut core = Reader::new();
        // A byte order mark in the middle of a file is text, and there a resumed run begins to read.
        let _ = core.read_record(b"\n", &mut [0], &mut [0]);
        let (fields, ends) = (vec![0; 4096], vec![0; 64]);
        let mut csv = Self { core, text: 0, id: None, columns: 0, fields, ends };
        let Some(head) = csv.record(source)? else { return Ok(None) };
        csv.columns = head.columns;
        let names: Vec<String> = (0..csv.columns)
            .map(|column| String::from_utf8_lossy(csv.field(column)).trim().to_owned())
            .collect();
        let find = |column: &str| {
            names.iter().position(|name| name == column).ok_or_else(|| BulkError::Column {
                file: wanted.input.name(),
                column: column.to_owned(),
                found: names.join(", "),
            })
        };
        csv.text = find(wanted.column)?;
        csv.id = wanted.id.map(find).transpose()?;
        Ok(Some(csv))
    }

    fn field(&self, column: usize) -> &[u8] {
        let start = column.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.fields[start..self.ends[column]]
    }

    fn next(&mut self, source: &mut Source<'_, '_>, part: &mut Part) -> Result<bool, BulkError> {
        let Some(Record { line, columns, fault }) = self.record(source)? else { return Ok(false) };
        let has = |column: usize| fault.is_none() && column < columns;
        let id = self.id.filter(|&id| has(id)).map(|id| self.field(id));
        if has(self.text) && self.id.is_none_or(has) {
            part.push(line, self.field(self.text), id, None);
        } else {
            let missing = || {
                let detail =
                    format!("it has {columns} columns; the first line has {}", self.columns);
                Fault { code: "invalid_request", detail }
            };
            part.push(line, b"", id, Some(fault.clone().unwrap_or_else(missing)));
        }
        Ok(true)
    }

    /// Reads a row. `None` at the end.
    fn record(&mut self, source: &mut Source<'_, '_>) -> Result<Option<Record>, BulkError> {
        loop {
            let is_end = |byte: &u8| !matches!(byte, b'\n' | b'\r');
            let blank = source.rest().iter().position(is_end).unwrap_or(source.rest().len());
            source.use_up_lines(blank);
            if !source.rest().is_empty() {
                break;
            }
            if !source.more()? {
                return Ok(None);
            }
        }
        let line = source.lines + 1;
        let (mut filled, mut columns) = (0, 0);
        let (mut is_too_large, mut is_open) = (false, false);
        loop {
            let (result, used, out, ended) = self.core.read_record(
                source.rest(),
                &mut self.fields[filled..],
                &mut self.ends[columns..],
            );
            source.use_up_lines(used);
            (filled, columns) = (filled + out, columns + ended);
            match result {
                ReadRecordResult::InputEmpty => {
                    if !source.more()? {
                        is_open = self.end(filled, &mut columns);
                        break;
                    }
                }
                ReadRecordResult::OutputFull if self.fields.len() < MOST_ROW_BYTES => {
                    self.fields.resize(2 * self.fields.len(), 0);
                }
                ReadRecordResult::OutputEndsFull if self.ends.len() < MOST_COLUMNS => {
                    self.ends.resize(2 * self.ends.len(), 0);
                }
                // The rest is read, and forgotten.
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    (is_too_large, filled, columns) = (true, 0, 0);
                }
                ReadRecordResult::Record => break,
                ReadRecordResult::End => return Ok(None),
            }
        }
        let fault = match (is_too_large, is_open) {
            (true, _) => Some(too_large()),
            (_, true) => {
                let detail = "it has a quote that is opened and not closed".to_owned();
                Some(Fault { code: "not_csv", detail })
            }
            _ => None,
        };
        Ok(Some(Record { line, columns, fault }))
    }

    /// Ends the last row, as the end of a line would. Returns whether a quote is open: within quotes, that is text.
    fn end(&mut self, filled: usize, columns: &mut usize) -> bool {
        // Room for a byte and a column.
        self.fields.resize(self.fields.len().max(filled + 1), 0);
        self.ends.resize(self.ends.len().max(*columns + 1), 0);
        for (end, is_open) in [(&b"\n"[..], false), (b"", true)] {
            let (fields, ends) = (&mut self.fields[filled..], &mut self.ends[*columns..]);
            let (result, _, _, ended) = self.core.read_record(end, fields, ends);
            if result == ReadRecordResult::Record {
                *columns += ended;
                return is_open;
            }
        }
        true
    }
}

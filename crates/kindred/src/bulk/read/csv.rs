//! Rows of CSV.

use csv_core::{ReadRecordResult, Reader};

use super::{BulkError, Fault, MOST_ROW_BYTES, Part, Reading, Source, too_large};

/// Rows with more columns are not answered.
const MOST_COLUMNS: usize = 1 << 16;

/// Rows of CSV.
pub(super) struct Csv {
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
    pub(super) fn new(
        source: &mut Source<'_, '_>,
        wanted: &Reading<'_>,
    ) -> Result<Option<Self>, BulkError> {
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
        csv.text = wanted.find(wanted.column, &names)?;
        csv.id = wanted.id.map(|id| wanted.find(id, &names)).transpose()?;
        Ok(Some(csv))
    }

    fn field(&self, column: usize) -> &[u8] {
        let start = column.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.fields[start..self.ends[column]]
    }

    pub(super) fn next(
        &mut self,
        source: &mut Source<'_, '_>,
        part: &mut Part,
    ) -> Result<bool, BulkError> {
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

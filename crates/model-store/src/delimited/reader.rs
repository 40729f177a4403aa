//! Cuts bytes into rows and fields, as they come.

use csv_core::{ReadRecordResult, ReaderBuilder};
use memchr::memchr2_iter;

use super::{Dialect, MOST_ROW_BYTES, OPEN_QUOTE, TEXT_AFTER_QUOTE};

/// A row with more columns is bad.
const MOST_COLUMNS: usize = 1 << 16;

/// Bytes that are read piece by piece.
pub trait Bytes {
    /// Why they can't be read on.
    type Error;

    /// Those that were read and not used.
    fn rest(&self) -> &[u8];

    /// Reads on; `false` at the end.
    fn more(&mut self) -> Result<bool, Self::Error>;

    /// The next bytes were used.
    fn use_up_lines(&mut self, bytes: usize);

    /// The number of ends of lines among those that were used.
    fn lines(&self) -> u64;
}

/// The ends of lines in bytes that follow others: `\n`, `\r` or both. `after_return`: whether the
/// last byte was a `\r`.
pub fn count_lines(bytes: &[u8], after_return: &mut bool) -> u64 {
    let Some(last) = bytes.last() else { return 0 };
    let before = |at: usize| at.checked_sub(1).map_or(*after_return, |at| bytes[at] == b'\r');
    let is_end = |&at: &usize| bytes[at] == b'\r' || !before(at);
    let count = memchr2_iter(b'\n', b'\r', bytes).filter(is_end).count();
    *after_return = *last == b'\r';
    count as u64
}

/// Reads rows. The fields of the last one are in it.
pub struct Reader {
    core: csv_core::Reader,
    dialect: Dialect,
    /// The number of columns that a row must have; any until the first was read.
    columns: Option<usize>,
    fields: Vec<u8>,
    /// Where each field ends.
    ends: Vec<usize>,
    quotes: Quotes,
}

/// Watches the quotes of a row, which the reader takes as they come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// A field begins.
    Start,
    /// In a field without quotes.
    Plain,
    Within,
    /// After a quote within quotes: the field is over, or the quote is doubled.
    AfterQuote,
    Broken,
}

impl Quotes {
    fn see(&mut self, bytes: &[u8], separator: u8) {
        for &byte in bytes {
            *self = match (*self, byte) {
                (Self::Broken, _) => return,
                (Self::Within, b'"') => Self::AfterQuote,
                (Self::Within, _) => Self::Within,
                (Self::Start | Self::AfterQuote, b'"') => Self::Within,
                (_, b'\n' | b'\r') => Self::Start,
                (_, byte) if byte == separator => Self::Start,
                (Self::AfterQuote, _) => Self::Broken,
                _ => Self::Plain,
            };
        }
    }
}

/// A row that was read.
pub struct Row {
    /// Its first line, from 1.
    pub line: u64,
    /// The number of its fields.
    pub columns: usize,
    /// The fault.
    pub problem: Option<Problem>,
}

/// What is wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// It has more than [`MOST_ROW_BYTES`], or too many columns. It has no fields then.
    TooLarge,
    /// A quote is opened and not closed.
    OpenQuote,
    /// A field goes on after the quote that closes it. So it was perhaps not meant to be closed
    /// there, and encloses several rows.
    TextAfterQuote,
    /// It has not as many columns as the first row.
    Columns {
        /// Its own.
        found: usize,
        /// Those of the first row.
        expected: usize,
    },
}

impl Problem {
    /// What is wrong, in a sentence that may begin with the row's number.
    pub fn reason(self, dialect: Dialect) -> String {
        match self {
            Self::TooLarge => "it is longer than 16 MiB".to_owned(),
            Self::OpenQuote => OPEN_QUOTE.to_owned(),
            Self::TextAfterQuote => TEXT_AFTER_QUOTE.to_owned(),
            Self::Columns { found, expected } => dialect.other_width(found, expected),
        }
    }
}

impl Reader {
    /// A reader at the start of a file, or of a row.
    pub fn new(dialect: Dialect) -> Self {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(dialect.separator()).quoting(dialect.has_quotes());
        let mut core = builder.build();
        // A byte order mark in the middle of a file is text, and there a resumed run begins to
        // read.
        let _ = core.read_record(b"\n", &mut [0], &mut [0]);
        Self {
            core,
            dialect,
            columns: None,
            fields: vec![0; 4096],
            ends: vec![0; 64],
            quotes: Quotes::Start,
        }
    }

    /// Sign between columns, and quotes.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// A field of the last row.
    ///
    /// # Panics
    /// If the row has no such column.
    pub fn field(&self, column: usize) -> &[u8] {
        let start = column.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.fields[start..self.ends[column]]
    }

    /// Reads a row. `None` at the end. Empty lines are no rows.
    pub fn next<B: Bytes>(&mut self, bytes: &mut B) -> Result<Option<Row>, B::Error> {
        loop {
            let is_text = |byte: &u8| !matches!(byte, b'\n' | b'\r');
            let blank = bytes.rest().iter().position(is_text).unwrap_or(bytes.rest().len());
            bytes.use_up_lines(blank);
            if !bytes.rest().is_empty() {
                break;
            }
            if !bytes.more()? {
                return Ok(None);
            }
        }
        let line = bytes.lines() + 1;
        let (mut filled, mut columns) = (0, 0);
        let (mut is_too_large, mut is_open) = (false, false);
        self.quotes = Quotes::Start;
        loop {
            let (result, used, out, ended) = self.core.read_record(
                bytes.rest(),
                &mut self.fields[filled..],
                &mut self.ends[columns..],
            );
            if self.dialect.has_quotes() {
                self.quotes.see(&bytes.rest()[..used], self.dialect.separator());
            }
            bytes.use_up_lines(used);
            (filled, columns) = (filled + out, columns + ended);
            match result {
                ReadRecordResult::InputEmpty => {
                    if !bytes.more()? {
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
        if is_too_large {
            columns = 0;
        }
        let expected = *self.columns.get_or_insert(columns);
        let problem = match (is_too_large, is_open) {
            (true, _) => Some(Problem::TooLarge),
            (_, true) => Some(Problem::OpenQuote),
            _ if self.quotes == Quotes::Broken => Some(Problem::TextAfterQuote),
            _ if columns != expected => Some(Problem::Columns { found: columns, expected }),
            _ => None,
        };
        Ok(Some(Row { line, columns, problem }))
    }

    /// Ends the last row, as the end of a line would. Returns whether a quote is open: within
    /// quotes, that is text.
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

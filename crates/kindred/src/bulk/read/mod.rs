//! Cuts an input into rows, and rows into pieces that are answered together.
//!
//! Where a piece ends depends on the input and the options only, so a piece of a resumed run is one
//! of an undisturbed run.

mod columns;
mod lines;
#[cfg(feature = "parquet")]
mod parquet;

use std::ops::{ControlFlow, Range};

use model_store::prepare::{Input, read_unpacked, utf16_reason};

use super::source::{Position, Source};
use super::{BulkError, BulkFormat, BulkInput, Fault};
use crate::delimited::{self, Dialect, MOST_ROW_BYTES, NotFound};

/// A piece ends after the row that makes it longer.
const PIECE_BYTES: usize = 1 << 20;

/// Rows that are answered together.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) rows: Vec<RawRow>,
    /// Where it ends.
    pub(super) end: Position,
    /// Bytes of the file that were read by then, before decompression.
    pub(super) bytes_read: u64,
}

/// A row as it is in the input: places in the bytes of its piece.
pub(super) struct RawRow {
    /// From 1. Of Parquet, the row.
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
    pub(super) rows_per_piece: usize,
    /// Where an earlier run ended.
    pub(super) from: Option<&'a Position>,
}

/// Why reading ended: it is over, the caller has enough, or what was read before has changed.
#[derive(Debug, PartialEq)]
pub(super) enum ReadingEnd {
    AtTheEnd,
    Enough,
    Changed,
}

impl Piece {
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

/// The rows of an input, one after another.
trait Rows {
    /// Appends the next row to a piece; `false` at the end.
    fn next(&mut self, piece: &mut Piece) -> Result<bool, BulkError>;

    /// Goes on to this place. `false` if what comes before it is not what it was.
    fn go_on_to(&mut self, place: &Position) -> Result<bool, BulkError>;

    /// The place after this number of rows.
    fn position(&mut self, rows: u64) -> Position;

    /// Bytes of the file that were read, before decompression.
    fn bytes_read(&self) -> u64;
}

/// Rows of text. `next` appends one to a piece.
struct OfText<'r, 'i, N> {
    source: Source<'r, 'i>,
    next: N,
}

impl<'r, 'i, N> Rows for OfText<'r, 'i, N>
where
    N: FnMut(&mut Source<'r, 'i>, &mut Piece) -> Result<bool, BulkError>,
{
    fn next(&mut self, piece: &mut Piece) -> Result<bool, BulkError> {
        (self.next)(&mut self.source, piece)
    }

    fn go_on_to(&mut self, place: &Position) -> Result<bool, BulkError> {
        self.source.go_on_to(place)
    }

    fn position(&mut self, rows: u64) -> Position {
        self.source.position(rows)
    }

    fn bytes_read(&self) -> u64 {
        self.source.bytes_read()
    }
}

impl Reading<'_> {
    /// Gives the pieces of the input to `take`, in order.
    pub(super) fn pieces(
        &self,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<ReadingEnd, BulkError> {
        #[cfg(feature = "parquet")]
        if let (BulkFormat::Parquet, BulkInput::File(path)) = (self.format, self.input) {
            return self.cut(&mut parquet::Columns::open(path, self)?, take);
        }
        let input = match self.input {
            BulkInput::File(path) => Input::File(path),
            BulkInput::Stdin => Input::Stdin,
        };
        read_unpacked(input, |unpacked| {
            let mut source = Source::new(unpacked)?;
            if let Some(reason) = utf16_reason(source.rest()) {
                return Err(BulkError::Encoding { file: self.input.name(), reason });
            }
            let dialect = match self.format {
                BulkFormat::Csv => Some(Dialect::Csv),
                BulkFormat::Tsv => Some(Dialect::Tsv),
                _ => None,
            };
            match dialect {
                Some(dialect) => {
                    let columns = columns::Columns::new(dialect, &mut source, self)?;
                    let Some(mut columns) = columns else { return Ok(ReadingEnd::AtTheEnd) };
                    let next = |source: &mut _, piece: &mut _| columns.next(source, piece);
                    self.cut(&mut OfText { source, next }, take)
                }
                None => {
                    let skips_blank = self.format == BulkFormat::JsonLines;
                    let next =
                        |source: &mut _, piece: &mut _| lines::next(source, piece, skips_blank);
                    self.cut(&mut OfText { source, next }, take)
                }
            }
        })?
    }

    fn cut(
        &self,
        input: &mut dyn Rows,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<ReadingEnd, BulkError> {
        if let Some(place) = self.from
            && !input.go_on_to(place)?
        {
            return Ok(ReadingEnd::Changed);
        }
        let mut rows = self.from.map_or(0, |place| place.rows);
        loop {
            let mut piece = Piece::default();
            let mut goes_on = true;
            while goes_on
                && piece.rows.len() < self.rows_per_piece
                && piece.bytes.len() < PIECE_BYTES
            {
                goes_on = input.next(&mut piece)?;
            }
            if piece.rows.is_empty() {
                return Ok(ReadingEnd::AtTheEnd);
            }
            rows += piece.rows.len() as u64;
            (piece.end, piece.bytes_read) = (input.position(rows), input.bytes_read());
            if take(piece).is_break() {
                return Ok(ReadingEnd::Enough);
            }
        }
    }

    /// The place of a column among those that the input has.
    fn find(&self, column: &str, names: &[String]) -> Result<usize, BulkError> {
        delimited::find(names, column).map_err(|why| match why {
            NotFound::Missing => BulkError::Column {
                file: self.input.name(),
                column: column.to_owned(),
                found: names.join(", "),
            },
            NotFound::Several([first, second]) => BulkError::Columns {
                file: self.input.name(),
                column: column.to_owned(),
                found: [first, second].map(|place| names[place].clone()),
            },
        })
    }
}

fn too_large() -> Fault {
    let detail = format!("it has more than {} MiB; split it", MOST_ROW_BYTES >> 20);
    Fault { code: "row_too_large", detail }
}

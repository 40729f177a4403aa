//! Cuts an input into rows, and rows into pieces that are answered together.
//!
//! Where a piece ends depends on the input and the options only, so a piece of a resumed run is one
//! of an undisturbed run.

mod columns;
mod lines;
#[cfg(feature = "parquet")]
mod parquet;

use std::ops::{ControlFlow, Range};

use model_store::delimited::{self, Bytes as _, Dialect, MOST_ROW_BYTES, NotFound};
use model_store::prepare::{Input, not_plain_reason, read_unpacked};

use super::formats::{BulkFormat, BulkInput};
use super::source::{Position, Source};
use super::{Fault, Job};
use crate::error::JobError;

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

/// Why reading ended: it is over, the caller has enough, or what was read before has changed.
#[derive(Debug, PartialEq)]
pub(super) enum ReadingEnd {
    AtTheEnd {
        /// Zero bytes that were left out.
        padding: u64,
    },
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
    fn next(&mut self, piece: &mut Piece) -> Result<bool, JobError>;

    /// Goes on to this place. `false` if what comes before it is not what it was.
    fn go_on_to(&mut self, place: &Position) -> Result<bool, JobError>;

    /// The place after this number of rows.
    fn position(&mut self, rows: u64) -> Position;

    /// Bytes of the file that were read, before decompression.
    fn bytes_read(&self) -> u64;

    /// Zero bytes at the end that were left out, once the end was seen.
    fn padding(&self) -> u64 {
        0
    }
}

/// Rows of text: of CSV or TSV if there are columns, otherwise lines.
struct OfText<'r, 'i> {
    source: Source<'r, 'i>,
    columns: Option<columns::Columns>,
    skips_blank: bool,
}

impl Rows for OfText<'_, '_> {
    fn next(&mut self, piece: &mut Piece) -> Result<bool, JobError> {
        match &mut self.columns {
            Some(columns) => columns.next(&mut self.source, piece),
            None => lines::next(&mut self.source, piece, self.skips_blank),
        }
    }

    fn go_on_to(&mut self, place: &Position) -> Result<bool, JobError> {
        self.source.go_on_to(place)
    }

    fn position(&mut self, rows: u64) -> Position {
        self.source.position(rows)
    }

    fn bytes_read(&self) -> u64 {
        self.source.bytes_read()
    }

    fn padding(&self) -> u64 {
        self.source.padding
    }
}

impl Job<'_> {
    /// Gives the pieces of the input to `take`, in order; `from`: where an earlier run ended.
    pub(super) fn pieces(
        &self,
        from: Option<&Position>,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<ReadingEnd, JobError> {
        #[cfg(feature = "parquet")]
        if let (BulkFormat::Parquet, BulkInput::File(path)) = (self.format, self.input) {
            return self.cut(&mut parquet::Columns::open(path, self)?, from, take);
        }
        let input = match self.input {
            BulkInput::File(path) => Input::File(path),
            BulkInput::Stdin => Input::Stdin,
        };
        read_unpacked(input, |unpacked| {
            let mut source = Source::new(unpacked)?;
            if let Some(reason) = not_plain_reason(source.rest()) {
                return Err(JobError::Refused(format!("{}: {reason}", self.input.name())));
            }
            let dialect = match self.format {
                BulkFormat::Csv => Some(Dialect::Csv),
                BulkFormat::Tsv => Some(Dialect::Tsv),
                _ => None,
            };
            let columns = dialect.map(|dialect| columns::Columns::new(dialect, &mut source, self));
            let columns = match columns.transpose()? {
                Some(None) => return Ok(ReadingEnd::AtTheEnd { padding: 0 }),
                columns => columns.flatten(),
            };
            let skips_blank = self.format == BulkFormat::JsonLines;
            self.cut(&mut OfText { source, columns, skips_blank }, from, take)
        })?
    }

    fn cut(
        &self,
        input: &mut dyn Rows,
        from: Option<&Position>,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<ReadingEnd, JobError> {
        if let Some(place) = from
            && !input.go_on_to(place)?
        {
            return Ok(ReadingEnd::Changed);
        }
        let (mut rows, most_rows) =
            (from.map_or(0, |place| place.rows), self.question.rows_per_piece());
        loop {
            let mut piece = Piece::default();
            let mut goes_on = true;
            while goes_on && piece.rows.len() < most_rows && piece.bytes.len() < PIECE_BYTES {
                goes_on = input.next(&mut piece)?;
            }
            if piece.rows.is_empty() {
                return Ok(ReadingEnd::AtTheEnd { padding: input.padding() });
            }
            rows += piece.rows.len() as u64;
            (piece.end, piece.bytes_read) = (input.position(rows), input.bytes_read());
            if take(piece).is_break() {
                return Ok(ReadingEnd::Enough);
            }
        }
    }

    /// The place of a column among those that the input has.
    fn find(&self, column: &str, names: &[String]) -> Result<usize, JobError> {
        delimited::find(names, column).map_err(|why| {
            let file = self.input.name();
            JobError::Refused(match why {
                NotFound::Missing => format!(
                    "{file}: it has no column `{column}`; choose one of its columns: {} (with \
                     `kindred bulk`, --column or --id)",
                    names.join(", ")
                ),
                NotFound::Several([first, second]) => format!(
                    "{file}: `{column}` may be its column `{}` or its column `{}`; rename one (with \
                     `kindred bulk`, --column and --id name them)",
                    names[first], names[second]
                ),
            })
        })
    }
}

fn too_large() -> Fault {
    let detail = format!("it has more than {} MiB; split it", MOST_ROW_BYTES >> 20);
    Fault { code: "row_too_large".into(), detail }
}

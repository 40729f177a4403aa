//! Rows of CSV and TSV.

use model_store::delimited::{Dialect, OPEN_QUOTE, Problem, Reader, Row, TEXT_AFTER_QUOTE};

use super::{Fault, Job, JobError, Piece, Source, too_large};

/// Rows of CSV or TSV, of which two columns matter.
pub(super) struct Columns {
    reader: Reader,
    text: usize,
    id: Option<usize>,
}

impl Columns {
    /// Reads the names of the columns. `None` if the input is empty.
    pub(super) fn new(
        dialect: Dialect,
        source: &mut Source<'_, '_>,
        wanted: &Job<'_>,
    ) -> Result<Option<Self>, JobError> {
        let mut reader = Reader::new(dialect);
        let Some(head) = reader.next(source)? else { return Ok(None) };
        if head.problem.is_some() {
            return Err(JobError::Refused(format!(
                "{}: its first row, which names the columns, has a quote that is not closed, or is \
                 too large; correct it",
                wanted.input.name()
            )));
        }
        let name = |column| String::from_utf8_lossy(reader.field(column)).trim().to_owned();
        let names: Vec<String> = (0..head.columns).map(name).collect();
        let text = wanted.find(wanted.column, &names)?;
        let id = wanted.id.map(|id| wanted.find(id, &names)).transpose()?;
        Ok(Some(Self { reader, text, id }))
    }

    /// Appends the next row to a piece; `false` at the end.
    pub(super) fn next(
        &mut self,
        source: &mut Source<'_, '_>,
        piece: &mut Piece,
    ) -> Result<bool, JobError> {
        if source.is_filled_up()? {
            return Ok(false);
        }
        let Some(Row { line, columns, problem }) = self.reader.next(source)? else {
            return Ok(false);
        };
        let Some(problem) = problem else {
            let id = self.id.map(|id| self.reader.field(id));
            piece.push(line, self.reader.field(self.text), id, None);
            return Ok(true);
        };
        let (fault, has_id) = match problem {
            Problem::TooLarge => (too_large(), false),
            Problem::OpenQuote => {
                let detail = OPEN_QUOTE.to_owned();
                (Fault { code: "not_csv".into(), detail }, false)
            }
            Problem::TextAfterQuote => {
                (Fault { code: "not_csv".into(), detail: TEXT_AFTER_QUOTE.to_owned() }, false)
            }
            Problem::Columns { found, expected } => {
                let detail = self.reader.dialect().other_width(found, expected);
                // Before one column too many, the id may be a piece of another.
                (Fault { code: "invalid_request".into(), detail }, found < expected)
            }
        };
        let id = self.id.filter(|&id| has_id && id < columns).map(|id| self.reader.field(id));
        piece.push(line, b"", id, Some(fault));
        Ok(true)
    }
}

//! Asks for the answers of a piece, and writes them.

use kindred::Error;

use super::answerer::RowAnswer;
use super::read::Piece;
use super::rows::{Row, rows};
use super::source::Position;
use super::{Fault, Job};
use crate::cancellation::{Cancellation, Interrupted};
use crate::requests::Requests;

/// A piece whose answers are written.
pub(super) struct Written {
    pub(super) bytes: Vec<u8>,
    pub(super) end: Position,
    pub(super) bytes_read: u64,
    /// The line and the error of each row that has one.
    pub(super) faults: Vec<(u64, Fault)>,
}

impl Job<'_> {
    /// Asks for the answers of a piece.
    pub(super) fn ask(
        &self,
        piece: Piece,
        cancellation: &Cancellation,
    ) -> Result<Written, Interrupted> {
        let mut rows = rows(&piece, self.format, self.column, self.id);
        let texts: Vec<&str> = rows.iter().filter_map(|row| row.text.as_deref().ok()).collect();
        let mut answered = Vec::with_capacity(texts.len());
        let mut requests = Requests::new(cancellation, texts.len());
        requests.all(0..texts.len() as u64, |some| {
            let texts = &texts[some.start as usize..some.end as usize];
            let found = self.answerer.answers(texts, &|| cancellation.go_on())?;
            answered.extend(found.ok_or(Interrupted::Cancelled)?);
            Ok(())
        })?;
        let mut answered = answered.into_iter();
        let answer = |row: &Row<'_>| match &row.text {
            Ok(_) => answered.next().unwrap_or_else(|| Err(Error::Internal.into())),
            Err(fault) => Err(fault.clone()),
        };
        let answers: Vec<Result<RowAnswer<'_>, Fault>> = rows.iter().map(answer).collect();
        let faults = rows
            .iter()
            .zip(&answers)
            .filter_map(|(row, answer)| Some((row.line, answer.as_ref().err()?.clone())));
        let faults: Vec<(u64, Fault)> = faults.collect();
        // With `strict`, what follows a row without an answer is not written.
        if self.strict
            && let Some(first) = answers.iter().position(Result::is_err)
        {
            rows.truncate(first);
        }
        let bytes = self.render(&rows, &answers).map_err(|_| Error::Internal)?;
        let Piece { end, bytes_read, .. } = &piece;
        Ok(Written { bytes, end: end.clone(), bytes_read: *bytes_read, faults })
    }
}

//! Asks for the answers of a piece, and writes them.

use std::ops::ControlFlow;

use super::read::Piece;
use super::render::Rendering;
use super::rows::{Row, rows};
use super::source::Position;
use super::{BulkError, BulkFormat, Fault, RowAnswer};
use crate::Error;
use crate::jobs::{Cancellation, Interrupted, Requests};

/// Answers texts.
pub(crate) trait AnswerTexts: Sync {
    /// An answer or an error for each text, in order; an error for all if they were not answered.
    /// `go_on` is asked while they are waited for; after a break there is no answer.
    fn answer(
        &self,
        texts: &[&str],
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<Result<Vec<Result<RowAnswer<'_>, Error>>, Error>>;
}

/// A piece whose answers are written.
pub(super) struct Written {
    pub(super) bytes: Vec<u8>,
    pub(super) end: Position,
    pub(super) bytes_read: u64,
    /// The line and the error of each row that has one.
    pub(super) faults: Vec<(u64, Fault)>,
}

/// How all threads ask.
pub(super) struct Asker<'s> {
    pub(super) answers: &'s dyn AnswerTexts,
    pub(super) format: BulkFormat,
    pub(super) column: &'s str,
    pub(super) id: Option<&'s str>,
    pub(super) rendering: Rendering,
    /// With `strict`, what follows a row without an answer is not written.
    pub(super) strict: bool,
    pub(super) cancellation: &'s Cancellation,
}

impl Asker<'_> {
    /// Asks for the answers of a piece.
    pub(super) fn ask(&self, piece: Piece) -> Result<Written, Interrupted<BulkError>> {
        let mut rows = rows(&piece, self.format, self.column, self.id);
        let texts: Vec<&str> = rows.iter().filter_map(|row| row.text.as_deref().ok()).collect();
        let mut answers =
            self.answers(&texts).map_err(Interrupted::of_job::<BulkError>)?.into_iter();
        let answer = |row: &Row<'_>| match &row.text {
            Ok(_) => answers.next().unwrap_or(Err(Fault::from(Error::Internal))),
            Err(fault) => Err(fault.clone()),
        };
        let answers: Vec<Result<RowAnswer<'_>, Fault>> = rows.iter().map(answer).collect();
        let faults = rows
            .iter()
            .zip(&answers)
            .filter_map(|(row, answer)| Some((row.line, answer.as_ref().err()?.clone())));
        let faults: Vec<(u64, Fault)> = faults.collect();
        if self.strict
            && let Some(first) = answers.iter().position(Result::is_err)
        {
            rows.truncate(first);
        }
        let bytes = self
            .rendering
            .rows(&rows, &answers)
            .map_err(|_| Interrupted::Failed(BulkError::from(Error::Internal)))?;
        let Piece { end, bytes_read, .. } = &piece;
        Ok(Written { bytes, end: end.clone(), bytes_read: *bytes_read, faults })
    }

    /// The answer to each text.
    fn answers(&self, texts: &[&str]) -> Result<Vec<Result<RowAnswer<'_>, Fault>>, Interrupted> {
        let mut all = Vec::with_capacity(texts.len());
        let mut go_on = || match self.cancellation.is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let mut requests = Requests::new(self.cancellation, texts.len());
        requests.all(0..texts.len() as u64, |some| {
            let texts = &texts[some.start as usize..some.end as usize];
            let Some(answers) = self.answers.answer(texts, &mut go_on) else {
                return Err(Interrupted::Cancelled);
            };
            all.extend(answers?.into_iter().map(|answer| answer.map_err(Fault::from)));
            Ok(())
        })?;
        Ok(all)
    }
}

//! Threads that take parts, ask for their answers, and write them.

use std::ops::ControlFlow;
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

use super::read::Part;
use super::render::Rendering;
use super::rows::{Row, rows};
use super::source::Position;
use super::{BulkError, BulkFormat, Fault, Found};
use crate::Error;
use crate::jobs::{Early, Retry, Stop};

/// Answers texts.
pub(crate) trait Answers: Sync {
    /// An answer or an error for each text, in order; an error for all if they were not answered.
    /// `go_on` is asked while they are waited for; after a break there is no answer.
    fn answer(
        &self,
        texts: &[&str],
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<Result<Vec<Result<Found<'_>, Error>>, Error>>;
}

/// A part whose answers are written.
pub(super) struct Written {
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) end: Position,
    pub(super) bytes_read: u64,
    /// The line and the error of each row that has one.
    pub(super) faults: Vec<(u64, Fault)>,
}

/// What a thread tells: a part is written, or why not.
pub(super) type Told = Result<Written, BulkError>;

/// What all threads ask by.
pub(super) struct Asker<'s> {
    pub(super) answers: &'s dyn Answers,
    pub(super) format: BulkFormat,
    pub(super) column: &'s str,
    pub(super) id: Option<&'s str>,
    pub(super) rendering: Rendering,
    /// With `strict`, what follows a row without an answer is not written.
    pub(super) strict: bool,
    pub(super) stop: &'s Stop,
}

impl Asker<'_> {
    /// Takes parts until there are no more, one fails, or the work is stopped.
    /// `tell` says whether somebody listens.
    pub(super) fn run(&self, parts: &Mutex<Receiver<Part>>, tell: &dyn Fn(Told) -> bool) {
        while !self.stop.is_stopped() {
            let part = parts.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(part) = part else { return };
            let told = match self.part(part) {
                Ok(written) => Ok(written),
                Err(Early::Failed(error)) => Err(error.into()),
                Err(Early::Stopped) => return,
            };
            if !tell(told) {
                return;
            }
        }
    }

    fn part(&self, part: Part) -> Result<Written, Early> {
        let mut rows = rows(&part, self.format, self.column, self.id);
        let texts = rows.iter().filter_map(|row| row.text.as_deref().ok());
        let mut answers = self.ask(&texts.collect::<Vec<&str>>())?.into_iter();
        let answer = |row: &Row<'_>| match &row.text {
            Ok(_) => answers.next().unwrap_or(Err(Fault::from(Error::Internal))),
            Err(fault) => Err(fault.clone()),
        };
        let answers: Vec<Result<Found<'_>, Fault>> = rows.iter().map(answer).collect();
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
        let bytes =
            self.rendering.rows(&rows, &answers).map_err(|_| Early::Failed(Error::Internal))?;
        let Part { number, end, bytes_read, .. } = &part;
        Ok(Written { number: *number, bytes, end: end.clone(), bytes_read: *bytes_read, faults })
    }

    /// The answer to each text.
    fn ask(&self, texts: &[&str]) -> Result<Vec<Result<Found<'_>, Fault>>, Early> {
        let (mut retry, mut next) = (Retry::new(texts.len()), 0);
        let mut all = Vec::with_capacity(texts.len());
        let mut go_on = || match self.stop.is_stopped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        while next < texts.len() {
            let end = texts.len().min(next + retry.together().max(1));
            match self.answers.answer(&texts[next..end], &mut go_on).ok_or(Early::Stopped)? {
                Ok(answers) => {
                    all.extend(answers.into_iter().map(|answer| answer.map_err(Fault::from)));
                    next = end;
                    retry.answered();
                }
                Err(Error::NotAnswered(why)) => retry.after(why, self.stop)?,
                Err(error) => return Err(Early::Failed(error)),
            }
        }
        Ok(all)
    }
}

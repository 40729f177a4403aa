//! Asks for the answers of a piece, and writes them.

use std::time::Duration;

use kindred::{Answering, Error, Options, Target};

use super::read::Piece;
use super::rows::{Row, rows};
use super::source::Position;
use super::work::BulkWork;
use super::{Fault, Job, RowAnswer};
use crate::cancellation::{Cancellation, Interrupted};
use crate::requests::Requests;

/// How often a thread that waits asks whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A piece whose answers are written.
pub(super) struct Written {
    pub(super) bytes: Vec<u8>,
    pub(super) end: Position,
    pub(super) bytes_read: u64,
    /// The line and the error of each row that has one.
    pub(super) faults: Vec<(u64, Fault)>,
}

/// An answer or an error for each text, in order.
type Answers<'a> = Vec<Result<RowAnswer<'a>, Error>>;

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
            answered.extend(self.answers(texts, cancellation)?);
            Ok(())
        })?;
        let mut answered = answered.into_iter();
        let answer = |row: &Row<'_>| match &row.text {
            Ok(_) => answered.next().unwrap_or(Err(Error::Internal)).map_err(Fault::from),
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

    /// The answers to some texts, asked for together.
    fn answers(
        &self,
        texts: &[&str],
        cancellation: &Cancellation,
    ) -> Result<Answers<'_>, Interrupted> {
        match self.work {
            BulkWork::Nearest(options) => {
                self.neighbors(texts, options, |text| Ok(Target::word(text)), cancellation)
            }
            BulkWork::NearestOfTexts(options) => {
                self.neighbors(texts, options, |text| Ok(Target::text(text)), cancellation)
            }
            BulkWork::Analogy(options) => {
                self.neighbors(texts, options, Target::expression, cancellation)
            }
            BulkWork::Classify(head, wanted) => {
                let found = waited(self.kindred.classify(head, texts), cancellation)?;
                let labels = |found| RowAnswer::Labels(found, *wanted);
                Ok(found.into_iter().map(|one| one.map(labels)).collect())
            }
            BulkWork::Expand(expander, wanted, form) => {
                let found = waited(self.kindred.expand(expander, texts, *wanted), cancellation)?;
                let terms = |found| RowAnswer::Terms(found, *form);
                Ok(found.into_iter().map(|one| one.map(terms)).collect())
            }
        }
    }

    fn neighbors(
        &self,
        texts: &[&str],
        options: &Options,
        target: fn(&str) -> Result<Target, Error>,
        cancellation: &Cancellation,
    ) -> Result<Answers<'_>, Interrupted> {
        // Long work has no time limit.
        let options = Options { timeout_ms: None, ..options.clone() };
        let mut asked = Vec::with_capacity(texts.len());
        let faults = texts
            .iter()
            .map(|text| target(text).map(|target| asked.push((target, options.clone()))));
        let faults: Vec<Result<(), Error>> = faults.collect();
        let mut found = waited(self.kindred.ask_all(asked), cancellation)?.into_iter();
        let each = faults.into_iter().map(|fault| {
            // Those that became questions are in their order.
            let answer = fault.and_then(|()| found.next().unwrap_or(Err(Error::Internal)));
            answer.map(RowAnswer::Neighbors)
        });
        Ok(each.collect())
    }
}

fn waited<T>(
    answering: Answering<'_, Result<T, Error>>,
    cancellation: &Cancellation,
) -> Result<T, Interrupted> {
    let answer = answering.wait_while(ASK_EVERY, || cancellation.go_on());
    Ok(answer.ok_or(Interrupted::Cancelled)??)
}

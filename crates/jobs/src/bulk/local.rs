//! The engine in this process answers.

use std::time::Duration;

use kindred::{Answering, Error, Kindred, Options, Target};
use serde_json::Value;

use super::Fault;
use super::answerer::{Answerer, GoOn, RowAnswer, RowAnswers};
use super::work::BulkWork;
use crate::error::JobError;

/// The interval at which a thread that waits checks whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// An engine in this process, and the head that it is asked for.
pub(super) struct Local<'a> {
    /// Pinned: all answers are about the same rows, those of a run that is resumed as well.
    pub(super) kindred: Kindred,
    pub(super) work: &'a BulkWork,
}

impl Answerer for Local<'_> {
    fn model(&self) -> (&str, &str) {
        let model = self.kindred.model();
        (model.name(), model.version())
    }

    fn about(&self) -> Value {
        let mut about = self.work.about(self.kindred.engine().name);
        if let Some(at) = self.kindred.at() {
            about["position"] = at.position().into();
        }
        about
    }

    fn answers(&self, texts: &[&str], go_on: GoOn<'_>) -> Result<RowAnswers<'_>, JobError> {
        match self.work {
            BulkWork::Nearest(options) => {
                self.neighbors(texts, options, |text| Ok(Target::word(text)), go_on)
            }
            BulkWork::NearestOfTexts(options) => {
                self.neighbors(texts, options, |text| Ok(Target::text(text)), go_on)
            }
            BulkWork::Analogy(options) => self.neighbors(texts, options, Target::expression, go_on),
            BulkWork::Classify(head, wanted) => {
                let found = waited(self.kindred.classify(head, texts), go_on)?;
                Ok(each(found, |found| RowAnswer::Labels(found, *wanted)))
            }
            BulkWork::Expand(expander, wanted, form) => {
                let found = waited(self.kindred.expand(expander, texts, wanted.clone()), go_on)?;
                Ok(each(found, |found| RowAnswer::Terms(found, *form)))
            }
        }
    }
}

impl Local<'_> {
    fn neighbors(
        &self,
        texts: &[&str],
        options: &Options,
        target: fn(&str) -> Result<Target, Error>,
        go_on: GoOn<'_>,
    ) -> Result<RowAnswers<'_>, JobError> {
        // Long work has no time limit.
        let options = Options { timeout_ms: None, ..options.clone() };
        let mut asked = Vec::with_capacity(texts.len());
        let faults = texts
            .iter()
            .map(|text| target(text).map(|target| asked.push((target, options.clone()))));
        let faults: Vec<Result<(), Error>> = faults.collect();
        let Some(found) = waited(self.kindred.ask_all(asked), go_on)? else { return Ok(None) };
        let mut found = found.into_iter();
        // Those that became questions are in their order.
        let answer = |fault: Result<(), Error>| {
            fault.and_then(|()| found.next().unwrap_or(Err(Error::Internal)))
        };
        let all: Vec<_> = faults.into_iter().map(answer).collect();
        Ok(each(Some(all), RowAnswer::Neighbors))
    }
}

fn each<'a, T>(
    found: Option<Vec<Result<T, Error>>>,
    answer: impl Fn(T) -> RowAnswer<'a>,
) -> RowAnswers<'a> {
    let one = |one: Result<T, Error>| one.map(&answer).map_err(Fault::from);
    Some(found?.into_iter().map(one).collect())
}

fn waited<T>(
    answering: Answering<'_, Result<T, Error>>,
    go_on: GoOn<'_>,
) -> Result<Option<T>, JobError> {
    Ok(answering.wait_while(ASK_EVERY, go_on).transpose()?)
}

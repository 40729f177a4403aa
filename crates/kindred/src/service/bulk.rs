//! Bulk work: the rows of a file, answered into another.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::{Kindred, LONGEST};
use crate::Error;
use crate::bulk::{
    self, AnswerTexts, BulkError, BulkInput, BulkOptions, BulkOutput, BulkProgress, BulkSummary,
    BulkWork, Plan, RowAnswer, Shape,
};
use crate::options::{DEFAULT_K, Options};
use crate::question::{Checked, Target};

/// How often a thread that waits asks whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(100);

impl Kindred {
    /// Answers each row of a file, and writes the answers to another, in the order of the rows.
    /// Waits until that is complete.
    ///
    /// Each answer has the bits that a single question gives. A row without an answer, such as one
    /// that is not JSON or whose words the model does not have, becomes a row with an error. Work
    /// that was killed or stopped is in a folder beside the output, and the same call goes on from
    /// there. `on_progress` is called ten times a second; a break stops the work.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use kindred::bulk::{BulkInput, BulkOptions, BulkOutput, BulkWork};
    /// use kindred::{Kindred, Model, Options, Settings};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let (words, near) = (folder.path().join("words.txt"), folder.path().join("near.jsonl"));
    /// std::fs::write(&words, "frog\nfrogg\n")?;
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let work = BulkWork::Nearest(Options::new().k(3));
    /// let files = (BulkInput::File(&words), BulkOutput::File(&near));
    /// let done = kindred.bulk(&work, files, &BulkOptions::default(), |_| ControlFlow::Continue(()))?;
    /// assert_eq!((done.rows, done.answered, done.errors["unknown_word"]), (2, 1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`BulkError`].
    pub fn bulk(
        &self,
        work: &BulkWork,
        files: (BulkInput<'_>, BulkOutput<'_>),
        options: &BulkOptions,
        mut on_progress: impl FnMut(BulkProgress) -> ControlFlow<()>,
    ) -> Result<BulkSummary, BulkError> {
        work.check_output(files.1, options)?;
        let (plan, answers) = (self.plan(work)?, TextAnswers { kindred: self, work });
        // A look-up of a word then takes a fraction of the time.
        self.store().words().make_table();
        bulk::write(&plan, &answers, files, options, &mut on_progress)
    }

    /// What the work needs to know of what is asked. Refuses what no row could be asked.
    fn plan(&self, work: &BulkWork) -> Result<Plan, BulkError> {
        let (name, column, shape, most_per_row, options) = match work {
            BulkWork::Nearest(options) => {
                let k = self.check(options)?;
                ("nearest", "word", Shape::neighbors(options, false), k, options.to_json())
            }
            BulkWork::NearestOfTexts(options) => {
                let (k, mut json) = (self.check(options)?, options.to_json());
                json["texts"] = true.into();
                ("nearest", "text", Shape::neighbors(options, true), k, json)
            }
            BulkWork::Analogy(options) => {
                let k = self.check(options)?;
                ("analogy", "expression", Shape::neighbors(options, false), k, options.to_json())
            }
            BulkWork::Classify(head, wanted) => {
                let all = head.description().labels.len();
                let most = wanted.top.map_or(all, |top| top.min(all));
                // Class scores have the same bits on one kind of engine.
                let options = json!({
                    "top": wanted.top, "threshold": wanted.threshold,
                    "head": version(head.description()), "engine": self.engine().name,
                });
                ("classify", "text", Shape::Labels, most, options)
            }
            BulkWork::Expand(expander, wanted, form) => {
                let options = json!({
                    "top": wanted.top, "min_weight": wanted.min_weight, "max_ratio": wanted.max_ratio,
                    "form": form.name(), "head": version(expander.description()),
                });
                ("expand", "text", Shape::Terms(*form), wanted.top, options)
            }
        };
        let (model, version) = (self.store().name().to_owned(), self.store().version().to_owned());
        Ok(Plan { work: name, column, shape, most_per_row, model, version, options })
    }

    /// Refuses options that no row could be asked with. Returns k.
    fn check(&self, options: &Options) -> Result<usize, BulkError> {
        let checked = Checked::new(self.store(), options.clone(), None);
        checked.map_err(|error| BulkError::Option(error.to_string()))?;
        Ok(options.k.unwrap_or(DEFAULT_K) as usize)
    }
}

/// A head's version: that of its description, which has the checksum of its weights.
fn version(description: &impl Serialize) -> String {
    let description: Value = serde_json::to_value(description).expect("it is written as JSON");
    blake3::hash(description.to_string().as_bytes()).to_hex()[..16].to_owned()
}

struct TextAnswers<'a> {
    kindred: &'a Kindred,
    work: &'a BulkWork,
}

impl AnswerTexts for TextAnswers<'_> {
    fn answer(
        &self,
        texts: &[&str],
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<Result<Vec<Result<RowAnswer<'_>, Error>>, Error>> {
        let Self { kindred, work } = self;
        let shared = &kindred.shared;
        let asking = shared.queue.asking(&kindred.account, Instant::now() + LONGEST);
        let found = match work {
            BulkWork::Nearest(options) => {
                return self.search(texts, options, |text| Ok(Target::word(text)), go_on);
            }
            BulkWork::NearestOfTexts(options) => {
                return self.search(texts, options, |text| Ok(Target::text(text)), go_on);
            }
            BulkWork::Analogy(options) => {
                return self.search(texts, options, Target::expression, go_on);
            }
            BulkWork::Classify(head, wanted) => {
                let answering = kindred.classify_by(asking, head, texts);
                let found = answering.wait_while(ASK_EVERY, go_on)?;
                let labels = |found| RowAnswer::Labels(found, *wanted);
                found.map(|found| found.into_iter().map(|one| one.map(labels)).collect())
            }
            BulkWork::Expand(expander, wanted, form) => {
                let answering = kindred.expand_by(asking, expander, texts, *wanted);
                let found = answering.wait_while(ASK_EVERY, go_on)?;
                let terms = |found| RowAnswer::Terms(found, *form);
                found.map(|found| found.into_iter().map(|one| one.map(terms)).collect())
            }
        };
        Some(found)
    }
}

impl TextAnswers<'_> {
    fn search(
        &self,
        texts: &[&str],
        options: &Options,
        target: fn(&str) -> Result<Target, Error>,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<Result<Vec<Result<RowAnswer<'_>, Error>>, Error>> {
        let shared = &self.kindred.shared;
        let asking = shared.queue.asking(&self.kindred.account, Instant::now() + LONGEST);
        let mut asked = Vec::with_capacity(texts.len());
        let faults = texts
            .iter()
            .map(|text| target(text).map(|target| asked.push((target, options.clone()))));
        let faults: Vec<Result<(), Error>> = faults.collect();
        // Suggestions for unknown words take longer than searches.
        let search = self.kindred.search(asking, asked, false);
        let found = crate::answering::Answering::new(&shared.timer, search);
        let found = match found.wait_while(ASK_EVERY, go_on)? {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        let mut found = found.into_iter();
        let each = faults.into_iter().map(|fault| {
            // Those that became questions are in their order.
            fault.and_then(|()| found.next().unwrap_or(Err(Error::Internal)))
        });
        Some(Ok(each.map(|one| one.map(RowAnswer::Neighbors)).collect()))
    }
}

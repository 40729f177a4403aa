//! The work as a whole: what it is, how it begins and ends.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::ask::Asker;
use super::journal::{Done, Identity};
use super::read::Reading;
use super::render::Rendering;
use super::sink::Sink;
use super::turns::Run;
use super::work::{AsParquet, Work};
use super::{
    Answers, BulkError, BulkFormat, BulkInput, BulkOptions, BulkOutput, BulkProgress, BulkSummary,
    Shape, check_bulk_files,
};
use crate::jobs::Stop;

/// What is asked of each row, as the work needs to know it.
pub(crate) struct Plan {
    /// `classify`, `expand`, `nearest` or `analogy`.
    pub(crate) work: &'static str,
    /// The column that is asked if none is named.
    pub(crate) column: &'static str,
    /// The columns of an answer.
    pub(crate) shape: Shape,
    /// Labels, terms or neighbours of a row, at most.
    pub(crate) most_per_row: usize,
    pub(crate) model: String,
    pub(crate) version: String,
    /// What else decides the answers: the head, options, and the engine if scores depend on it.
    pub(crate) options: Value,
}

impl Plan {
    /// Rows that are answered together. Their answers take a few megabytes.
    fn rows_per_part(&self) -> usize {
        (65_536 / self.most_per_row.max(1)).clamp(64, 1024)
    }
}

/// Reads the input, has its rows answered, and writes the output, complete or not at all. Goes on
/// from what an earlier call left.
///
/// `on_progress` is called ten times a second; a break stops the work.
pub(crate) fn write(
    plan: &Plan,
    answers: &dyn Answers,
    (input, output): (BulkInput<'_>, BulkOutput<'_>),
    options: &BulkOptions,
    on_progress: &mut dyn FnMut(BulkProgress) -> ControlFlow<()>,
) -> Result<BulkSummary, BulkError> {
    let started = Instant::now();
    check_bulk_files(input, output, options)?;
    let (from, (to, is_packed)) = (input.format(options.from)?, output.format(options.to)?);
    let total = match input {
        BulkInput::File(path) => file_length(path)?,
        BulkInput::Stdin => None,
    };
    let column = options.column.as_deref().unwrap_or(plan.column);
    let identity = identity(plan, options, (from, column), (to, is_packed), total);
    let rendering = Rendering { format: to, is_packed, columns: plan.shape.columns() };
    let mut sink = match output {
        BulkOutput::File(file) => Sink::Folder(Work::open(file, &identity, total.is_some())?),
        BulkOutput::Stdout => Sink::Stdout,
    };
    let done = match &sink {
        Sink::Folder(work) => work.committed().clone(),
        Sink::Stdout => Done::default(),
    };
    let resumed = done.input.rows;
    let no_text = |_| BulkError::NotAnswered(crate::Error::Internal);
    if resumed == 0 {
        let head = rendering.head().map_err(no_text)?;
        sink.write(&head)?;
    }
    let asked = Instant::now();
    let from_here = (resumed > 0).then_some(&done.input);
    let reading = Reading {
        input,
        format: from,
        column,
        id: options.id.as_deref(),
        rows_per_part: plan.rows_per_part(),
        from: from_here,
    };
    let stop = Stop::new();
    let asker = Asker {
        answers,
        format: from,
        column,
        id: options.id.as_deref(),
        rendering,
        strict: options.strict,
        stop: &stop,
    };
    let mut run = Run { input, format: from, done: done.clone(), sink, resumed, total, read: 0 };
    let result = run.all(&reading, &asker, options.jobs.max(1), on_progress);
    let Run { done, sink, .. } = run;
    let asking_seconds = asked.elapsed().as_secs_f64();
    match (result, sink) {
        (Ok(()), Sink::Stdout) => {}
        (Ok(()), Sink::Folder(mut work)) => {
            let BulkOutput::File(file) = output else { unreachable!("it is written to a file") };
            if work.is_empty() {
                work.write(&rendering.nothing().map_err(no_text)?)?;
            }
            // Something may have come there meanwhile.
            check_bulk_files(input, output, options)?;
            let as_parquet = (to == BulkFormat::Parquet).then(|| AsParquet {
                shape: plan.shape,
                has_ids: options.id.is_some(),
                about: vec![
                    ("kindred.work", plan.work.to_owned()),
                    ("kindred.model", plan.model.clone()),
                    ("kindred.version", plan.version.clone()),
                ],
            });
            if as_parquet.is_some() && done.input.rows > 0 {
                // Making Parquet of them may take long.
                work.commit(done.clone())?;
            }
            work.finish(file, as_parquet.as_ref())?;
        }
        // Nothing to go on from, or no way to; another command may be right.
        (Err(error), Sink::Folder(work)) if total.is_none() || done.input.rows == 0 => {
            work.remove();
            return Err(error);
        }
        (Err(error), _) => return Err(error),
    }
    let failed = done.errors.values().sum();
    Ok(BulkSummary {
        input: input.name(),
        output: output.name(),
        work: plan.work,
        model: plan.model.clone(),
        version: plan.version.clone(),
        rows: done.input.rows,
        answered: done.input.rows - failed,
        failed,
        errors: done.errors,
        resumed_rows: resumed,
        asking_seconds,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// The length of a file; `None` for a pipe, which can't be read again.
fn file_length(path: &Path) -> Result<Option<u64>, BulkError> {
    let metadata = path.metadata().map_err(|source| model_store::ModelError::Io {
        action: "open",
        path: path.to_owned(),
        source,
    })?;
    Ok(metadata.is_file().then_some(metadata.len()))
}

/// What decides every byte of the output.
fn identity(
    plan: &Plan,
    options: &BulkOptions,
    (from, column): (BulkFormat, &str),
    (to, is_packed): (BulkFormat, bool),
    input_bytes: Option<u64>,
) -> Identity {
    /// Of the folder of work.
    const FORMAT: u32 = 1;
    let mut identity = Identity::new();
    let mut put = |name: &str, value: Value| identity.insert(name.to_owned(), value);
    put("format", FORMAT.into());
    put("work", plan.work.into());
    put("model", plan.model.as_str().into());
    put("version", plan.version.as_str().into());
    put("options", plan.options.clone());
    put("from", from.name().into());
    put("to", to.name().into());
    put("gzip", is_packed.then_some(true).into());
    put("column", (from != BulkFormat::Lines).then_some(column).into());
    put("id", options.id.as_deref().into());
    put("input_bytes", input_bytes.into());
    identity
}

//! The work as a whole: what it is, how it begins and ends.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::ask::Asker;
use super::journal::{Checkpoint, Identity};
use super::keep::Keeper;
use super::partial::{AsParquet, PartialFile};
use super::read::Reading;
use super::render::Rendering;
use super::sink::Sink;
use super::source::Position;
use super::{
    AnswerTexts, BulkError, BulkFormat, BulkInput, BulkOptions, BulkOutput, BulkProgress,
    BulkSummary, Shape, check_bulk_files,
};
use crate::jobs::Cancellation;

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
    fn rows_per_piece(&self) -> usize {
        (65_536 / self.most_per_row.max(1)).clamp(64, 1024)
    }
}

/// Reads the input, has its rows answered, and writes the output, complete or not at all. Goes on
/// from what an earlier call left.
///
/// `on_progress` is called ten times a second; a break stops the work.
pub(crate) fn write(
    plan: &Plan,
    answers: &dyn AnswerTexts,
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
        BulkOutput::File(file) => {
            Sink::Folder(Box::new(PartialFile::open(file, &identity, total.is_some())?))
        }
        BulkOutput::Stdout => Sink::Stdout,
    };
    let begun = match &sink {
        Sink::Folder(file) => file.entered().clone(),
        Sink::Stdout => Checkpoint::default(),
    };
    let resumed = begun.input.rows;
    let no_text = |_| BulkError::NotAnswered(crate::Error::Internal);
    if resumed == 0 {
        let head = rendering.head().map_err(no_text)?;
        sink.write(&head)?;
    }
    let asked = Instant::now();
    let reading = Reading {
        input,
        format: from,
        column,
        id: options.id.as_deref(),
        rows_per_piece: plan.rows_per_piece(),
        from: (resumed > 0).then_some(&begun.input),
    };
    let cancellation = Cancellation::new();
    let asker = Asker {
        answers,
        format: from,
        column,
        id: options.id.as_deref(),
        rendering,
        strict: options.strict,
        cancellation: &cancellation,
    };
    let mut keeper = Keeper {
        input,
        format: from,
        strict: options.strict,
        checkpoint: begun.clone(),
        sink,
        resumed,
        total,
        read: 0,
        pieces: 0,
        on_progress,
    };
    let result = keeper.run(&reading, &asker, options.jobs.max(1));
    let Keeper { checkpoint, sink, .. } = keeper;
    let asking_seconds = asked.elapsed().as_secs_f64();
    match (result, sink) {
        (Ok(()), Sink::Stdout) => {}
        (Ok(()), Sink::Folder(mut partial)) => {
            let BulkOutput::File(file) = output else { unreachable!("it is written to a file") };
            if partial.is_empty() {
                partial.write(&rendering.nothing().map_err(no_text)?)?;
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
            if as_parquet.is_some() && checkpoint.input.rows > 0 {
                // Making Parquet of them may take long.
                partial.commit(checkpoint.clone(), false)?;
            }
            partial.finish(file, as_parquet.as_ref())?;
        }
        // Nothing to go on from, or no way to; another command may be right.
        (Err(error), Sink::Folder(partial)) if total.is_none() || checkpoint.input.rows == 0 => {
            partial.remove();
            return Err(error);
        }
        (Err(error), _) => return Err(error),
    }
    let Checkpoint { input: Position { rows, .. }, errors, .. } = checkpoint;
    let failed = errors.values().sum();
    Ok(BulkSummary {
        input: input.name(),
        output: output.name(),
        work: plan.work,
        model: plan.model.clone(),
        version: plan.version.clone(),
        rows,
        answered: rows - failed,
        failed,
        errors,
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

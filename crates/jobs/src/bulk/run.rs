//! The work as a whole: what it is, how it begins and ends.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use kindred::{Error, Kindred};
use model_store::ModelError;
use serde_json::Value;

use super::answerer::Answerer;
use super::formats::{BulkFormat, BulkInput, BulkOutput};
use super::journal::Checkpoint;
use super::keep::Keeper;
use super::local::Local;
use super::output::Output;
use super::source::Position;
use super::work::{BulkQuestion, BulkWork};
use super::{BulkOptions, BulkProgress, BulkSummary, Job, check_bulk_files};
use crate::error::JobError;
use crate::journal::{Description, Journal};

/// Answers each row of a file, and writes the answers to another, in the order of the rows, complete
/// or not at all. Waits until that is done.
///
/// Each answer has the bits that a single question gives. A row without an answer, such as one that
/// is not JSON or whose words the model does not have, becomes a row with an error. Work that was
/// killed or stopped is in a folder beside the output, and the same call goes on from there.
/// `on_progress` is called ten times a second; a break stops the work.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use jobs::bulk::{self, BulkInput, BulkOptions, BulkOutput, BulkWork};
/// use kindred::{Kindred, Model, Options, Settings};
///
/// let folder = tempfile::tempdir()?;
/// let (words, near) = (folder.path().join("words.txt"), folder.path().join("near.jsonl"));
/// std::fs::write(&words, "frog\nfrogg\n")?;
/// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
/// let (work, options) = (BulkWork::Nearest(Options::new().k(3)), BulkOptions::default());
/// let files = (BulkInput::File(&words), BulkOutput::File(&near));
/// let done = bulk::run(&kindred, &work, files, &options, |_| ControlFlow::Continue(()))?;
/// assert_eq!((done.rows, done.answered, done.errors["unknown_word"]), (2, 1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`JobError`].
pub fn run(
    kindred: &Kindred,
    work: &BulkWork,
    files: (BulkInput<'_>, BulkOutput<'_>),
    options: &BulkOptions,
    on_progress: impl FnMut(BulkProgress) -> ControlFlow<()>,
) -> Result<BulkSummary, JobError> {
    let question = work.question();
    question.check_output(files.1, options)?;
    work.check(kindred)?;
    // A look-up of a word then takes a fraction of the time.
    kindred.model().store().words().make_table();
    let local = Local { kindred: kindred.for_long_work().pinned(), work };
    run_by(&local, &question, files, options, on_progress)
}

/// As [`run`], answered by anything else than an engine in this process.
///
/// # Errors
/// See [`JobError`].
pub fn run_by(
    answerer: &dyn Answerer,
    question: &BulkQuestion,
    (input, output): (BulkInput<'_>, BulkOutput<'_>),
    options: &BulkOptions,
    mut on_progress: impl FnMut(BulkProgress) -> ControlFlow<()>,
) -> Result<BulkSummary, JobError> {
    question.check_output(output, options)?;
    let started = Instant::now();
    check_bulk_files(input, output, options)?;
    let (from, (to, is_packed)) = (input.format(options.from)?, output.format(options.to)?);
    let total = match input {
        BulkInput::File(path) => file_length(path)?,
        BulkInput::Stdin => None,
    };
    let job = Job {
        answerer,
        question,
        input,
        format: from,
        column: options.column.as_deref().unwrap_or(question.column()),
        id: options.id.as_deref(),
        strict: options.strict,
        to,
        is_packed,
    };
    let mut written = match output {
        BulkOutput::File(file) => Output::open(file, &description(&job, total), total.is_some())?,
        BulkOutput::Stdout => Output::stdout(),
    };
    let begun = written.entered.clone();
    let resumed = begun.input.rows;
    let no_text = |_| JobError::NotAnswered(Error::Internal);
    if resumed == 0 {
        let head = job.head().map_err(no_text)?;
        written.write(&head)?;
    }
    let asked = Instant::now();
    let mut keeper = Keeper {
        job: &job,
        checkpoint: begun.clone(),
        output: written,
        resumed,
        total,
        read: 0,
        pieces: 0,
        padding: 0,
        on_progress: &mut on_progress,
    };
    let result = keeper.run((resumed > 0).then_some(&begun.input), options.jobs.max(1));
    let Keeper { checkpoint, output: mut written, padding, .. } = keeper;
    let asking_seconds = asked.elapsed().as_secs_f64();
    if let Err(error) = result {
        // Nothing to go on from, or no way to; another command may be right.
        let goes_on = total.is_some() && checkpoint.input.rows > 0;
        let is_kept = goes_on && written.journal.is_some();
        if let Some(journal) = written.journal.filter(|_| !goes_on) {
            journal.remove();
        }
        return Err(match error {
            JobError::Answerer(reason) if !is_kept => JobError::AnswererForGood(reason),
            error => error,
        });
    }
    if let BulkOutput::File(file) = output {
        if written.is_empty() {
            written.write(&job.pack(Vec::new()).map_err(no_text)?)?;
        }
        // Something may have come there meanwhile.
        check_bulk_files(input, output, options)?;
        if to == BulkFormat::Parquet {
            // Making it of the rows may take long.
            written.commit(&checkpoint, false)?;
        }
        match written.journal {
            Some(journal) if to == BulkFormat::Parquet => finish_as_parquet(journal, file, &job)?,
            Some(journal) => journal.finish(file, None)?,
            None => unreachable!("it is written to a file"),
        }
    }
    let Checkpoint { input: Position { rows, .. }, errors, .. } = checkpoint;
    let failed = errors.values().sum();
    let (model, version) = answerer.model();
    let warnings = match padding {
        0 => Vec::new(),
        zeros => vec![format!("the zero bytes at its end ({zeros}) were left out")],
    };
    Ok(BulkSummary {
        input: input.name(),
        output: output.name(),
        work: question.name(),
        model: model.to_owned(),
        version: version.to_owned(),
        rows,
        answered: rows - failed,
        failed,
        errors,
        warnings,
        resumed_rows: resumed,
        asking_seconds,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// A kill meanwhile costs nothing but this: the rows stay until it is done.
#[cfg(feature = "parquet")]
fn finish_as_parquet(journal: Journal, file: &Path, job: &Job<'_>) -> Result<(), JobError> {
    let (model, version) = job.answerer.model();
    let about = [
        ("kindred.work", job.question.name()),
        ("kindred.model", model),
        ("kindred.version", version),
    ];
    let (made, schema) = (journal.made("parquet"), job.question.schema(job.id.is_some()));
    super::parquet::write(&made, &journal.data, &schema, &about)
        .map_err(JobError::io("write", &made))?;
    journal.finish(file, Some(&made))
}

#[cfg(not(feature = "parquet"))]
fn finish_as_parquet(_: Journal, file: &Path, _: &Job<'_>) -> Result<(), JobError> {
    unreachable!("{} is refused at first", file.display())
}

/// The length of a file; `None` for a pipe, which can't be read again.
fn file_length(path: &Path) -> Result<Option<u64>, JobError> {
    let metadata = path.metadata().map_err(|source| ModelError::Io {
        action: "open",
        path: path.to_owned(),
        source,
    })?;
    Ok(metadata.is_file().then_some(metadata.len()))
}

/// What decides every byte of the output.
fn description(job: &Job<'_>, input_bytes: Option<u64>) -> Description {
    /// Of the folder of work. Rows of format 1 had no `asked`.
    const FORMAT: u32 = 2;
    let ((model, version), from, to) = (job.answerer.model(), job.format, job.to);
    let mut description = Description::new();
    let mut put = |name: &str, value: Value| description.insert(name.to_owned(), value);
    put("format", FORMAT.into());
    put("work", job.question.name().into());
    put("model", model.into());
    put("version", version.into());
    put("options", job.question.options());
    put("answerer", job.answerer.about());
    put("from", from.name().into());
    put("to", to.name().into());
    put("gzip", job.is_packed.then_some(true).into());
    put("column", (from != BulkFormat::Lines).then_some(job.column).into());
    put("id", job.id.into());
    put("input_bytes", input_bytes.into());
    description
}

//! `kindred bulk`: answers each row of a file into another, with progress.

use std::path::Path;

use indicatif::HumanCount;
use jobs::JobError;
use jobs::bulk::{
    self, BulkInput, BulkOptions, BulkOutput, BulkProgress, BulkSummary, BulkWork, check_bulk_files,
};
use kindred::Options;
use serde_json::json;

use super::classify::classifier_of;
use super::expand::{expander_of, wanted_terms};
use super::long_work::{LongWork, display, resumed};
use super::progress::Pace;
use super::{CommandError, heading, model_of, print};
use crate::arguments::{BulkCommand, BulkEngine, BulkFiles};
use server::models::OneModel;

/// Slots of the queue for a job in flight, eight for each row: a caller gets half of the queue, and
/// a long text or a large k takes more than one.
const SLOTS_PER_JOB: u32 = 8 * 1024;

/// What is said if the work does not stop by itself after Ctrl-C.
const KEPT: &str = "rows that are done are kept beside the output, unless they came from standard input or went to standard \
                    output: the same command goes on from there";

/// Answers each row of a file.
pub(super) fn bulk(command: &BulkCommand) -> Result<(), CommandError> {
    match command {
        BulkCommand::Classify { labels, files, engine } => run(files, engine, |one| {
            let (name, head) = classifier_of(one, labels.head.as_deref())?;
            Ok((Some(name), BulkWork::Classify(head, labels.wanted())))
        }),
        BulkCommand::Expand { terms, format, files, engine } => {
            let wanted = wanted_terms(terms)?;
            run(files, engine, |one| {
                let (name, expander) = expander_of(one, terms.head.as_deref())?;
                Ok((Some(name), BulkWork::Expand(expander, wanted, *format)))
            })
        }
        BulkCommand::Nearest { texts, options, files, engine } => {
            let work = if *texts { BulkWork::NearestOfTexts } else { BulkWork::Nearest };
            run(files, engine, |_| Ok((None, work(options.0.clone()))))
        }
        BulkCommand::Analogy { options, method, files, engine } => {
            let options = Options { method: *method, ..options.0.clone() };
            run(files, engine, |_| Ok((None, BulkWork::Analogy(options))))
        }
    }
}

fn run(
    files: &BulkFiles,
    engine: &BulkEngine,
    work: impl FnOnce(&OneModel) -> Result<(Option<String>, BulkWork), CommandError>,
) -> Result<(), CommandError> {
    let is_stream = |path: &Path| path == Path::new("-");
    let input = match is_stream(&files.input) {
        true => BulkInput::Stdin,
        false => BulkInput::File(&files.input),
    };
    let output = match is_stream(&files.out) {
        true => BulkOutput::Stdout,
        false => BulkOutput::File(&files.out),
    };
    let options = BulkOptions {
        from: files.from,
        to: files.to,
        column: files.column.clone(),
        id: files.id.clone(),
        strict: files.strict,
        replace: files.replace,
        ..BulkOptions::default()
    };
    // Before the engine is made, which may take long.
    check_bulk_files(input, output, &options)?;
    let one = model_of(&engine.model)?;
    let (head, asked) = work(&one)?;
    asked.check_output(output, &options)?;
    let work = LongWork::start(one.model, &engine.devices, SLOTS_PER_JOB, KEPT)?;
    let options = BulkOptions { jobs: work.jobs(options.jobs), ..options };
    let (mut display, mut pace, mut is_first) = (display("read"), Pace::default(), true);
    let done = bulk::run(&work.kindred, &asked, (input, output), &options, |progress| {
        let BulkProgress { rows, failed, resumed, read, total } = progress;
        if is_first && resumed > 0 {
            display.say(&format!("resuming after {} rows", HumanCount(resumed)));
        }
        is_first = false;
        let mut message = format!("{} rows", HumanCount(rows));
        if failed > 0 {
            message += &format!(", {} of them with an error", HumanCount(failed));
        }
        message += &pace.of(rows.saturating_sub(resumed), read, total);
        display.show(read, total, message);
        work.interrupt.go_on()
    });
    display.finish();
    match done {
        // As in `kindred bulk … --out - | head`.
        Err(JobError::Closed) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(done) => print_summary(&done, head.as_deref(), work, files, output),
    }
}

fn print_summary(
    done: &BulkSummary,
    head: Option<&str>,
    work: LongWork,
    files: &BulkFiles,
    output: BulkOutput<'_>,
) -> Result<(), CommandError> {
    let asked = done.rows - done.resumed_rows;
    let rate = asked as f64 / done.asking_seconds.max(1e-9);
    let (mut report, engine) = (work.report(done, rate), work.kindred.engine().name);
    work.verification.finish(Some(&files.out))?;
    let text = if files.json {
        if let Some(head) = head {
            report["head"] = json!(head);
        }
        serde_json::to_string_pretty(&report).expect("numbers and names are JSON")
    } else {
        let errors =
            done.errors.iter().map(|(code, count)| format!("{code}: {}", HumanCount(*count)));
        let errors = match done.failed {
            0 => String::new(),
            failed => format!(
                "\n{} rows have an error ({})",
                HumanCount(failed),
                errors.collect::<Vec<_>>().join(", ")
            ),
        };
        format!(
            "{}: {} rows{}, {} answered, in {:.1} s{errors}\n{} rows asked for in {:.1} s, {} rows/s, \
             by {} on the engine {engine}",
            done.output,
            HumanCount(done.rows),
            resumed(done.resumed_rows),
            HumanCount(done.answered),
            done.seconds,
            HumanCount(asked),
            done.asking_seconds,
            HumanCount(rate as u64),
            heading(head, &done.model, &done.version),
        )
    };
    if output == BulkOutput::Stdout {
        eprintln!("{text}");
        return Ok(());
    }
    print((text + "\n").as_bytes())
}

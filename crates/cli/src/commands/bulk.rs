//! `kindred bulk`: answers each row of a file into another, with progress.

use std::ops::ControlFlow;
use std::path::Path;

use indicatif::HumanCount;
use jobs::JobError;
use jobs::bulk::{
    self, BulkInput, BulkOptions, BulkOutput, BulkProgress, BulkQuestion, BulkSummary, BulkWork,
    check_bulk_files,
};
use kindred::Options;
use kindred::heads::HeadKind;
use serde_json::json;

use super::beside::Verification;
use super::by_url::ByUrl;
use super::classify::classifier_of;
use super::expand::{expander_of, wanted_terms};
use super::long_work::{LongWork, report, resumed};
use super::progress::{Display, Step, counted};
use super::signals::Interrupt;
use super::{CommandError, changed_model_of, heading, print};
use crate::arguments::{BulkCommand, BulkEngine, BulkFiles};
use server::models::OneModel;

/// Slots of the queue for a job in flight, eight for each row: a caller gets half of the queue, and
/// a long text or a large k takes more than one.
const SLOTS_PER_JOB: u32 = 8 * 1024;

/// Requests in flight to a service. With the default limits, it sheds more.
const REQUESTS: usize = 4;

/// What is said if the work does not stop by itself after Ctrl-C.
const KEPT: &str = "rows that are done are kept beside the output, unless they came from standard input or went to standard \
                    output: the same command goes on from there";

/// Answers each row of a file.
pub(super) fn bulk(command: &BulkCommand) -> Result<(), CommandError> {
    match command {
        BulkCommand::Classify { labels, files, engine } => {
            let (head, wanted) = (labels.head.as_deref(), labels.wanted());
            if engine.service.url.is_some() {
                let question = |labels| BulkQuestion::Classify(wanted, labels);
                return by_url(files, engine, Some((HeadKind::Classifier, head)), question);
            }
            run(files, engine, |one| {
                let (name, head) = classifier_of(one, head)?;
                Ok((Some(name), BulkWork::Classify(head, wanted)))
            })
        }
        BulkCommand::Expand { terms, format, files, engine } => {
            let (head, wanted) = (terms.head.as_deref(), wanted_terms(terms)?);
            if engine.service.url.is_some() {
                let question = |_| BulkQuestion::Expand(wanted, *format);
                return by_url(files, engine, Some((HeadKind::Expander, head)), question);
            }
            run(files, engine, |one| {
                let (name, expander) = expander_of(one, head)?;
                Ok((Some(name), BulkWork::Expand(expander, wanted, *format)))
            })
        }
        BulkCommand::Nearest { texts, options, files, engine } => {
            let work = if *texts { BulkWork::NearestOfTexts } else { BulkWork::Nearest };
            without_head(files, engine, work(options.0.clone()))
        }
        BulkCommand::Analogy { options, method, files, engine } => {
            let options = Options { method: *method, ..options.0.clone() };
            without_head(files, engine, BulkWork::Analogy(options))
        }
    }
}

fn without_head(
    files: &BulkFiles,
    engine: &BulkEngine,
    work: BulkWork,
) -> Result<(), CommandError> {
    match engine.service.url {
        Some(_) => by_url(files, engine, None, |_| work.question()),
        None => run(files, engine, |_| Ok((None, work))),
    }
}

/// The files, with the options. Refuses files that can't be read or written.
fn checked(
    files: &BulkFiles,
) -> Result<(BulkInput<'_>, BulkOutput<'_>, BulkOptions), CommandError> {
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
    check_bulk_files(input, output, &options)?;
    Ok((input, output, options))
}

/// An engine in this process answers.
fn run(
    files: &BulkFiles,
    engine: &BulkEngine,
    work: impl FnOnce(&OneModel) -> Result<(Option<String>, BulkWork), CommandError>,
) -> Result<(), CommandError> {
    // Before the engine is made, which may take long.
    let (input, output, options) = checked(files)?;
    let (one, live) = changed_model_of(&engine.model)?;
    let (head, asked) = work(&one)?;
    asked.question().check_output(output, &options)?;
    let LongWork { kindred, interrupt, verification } =
        LongWork::start((&one.model, live.as_ref()), &engine.devices, SLOTS_PER_JOB, KEPT)?;
    let options = BulkOptions { jobs: LongWork::jobs(&kindred, options.jobs), ..options };
    let done = shown(&interrupt, |on_progress| {
        bulk::run(&kindred, &asked, (input, output), &options, on_progress)
    });
    let by = (head.as_deref(), kindred.engine().name);
    print_summary(done, by, Some(verification), files, output)
}

/// A service answers. `head` is the kind of head that is asked, and its name.
fn by_url(
    files: &BulkFiles,
    engine: &BulkEngine,
    head: Option<(HeadKind, Option<&Path>)>,
    question: impl FnOnce(usize) -> BulkQuestion,
) -> Result<(), CommandError> {
    let (input, output, options) = checked(files)?;
    let service = ByUrl::new(&engine.service, head, question)?;
    service.question().check_output(output, &options)?;
    let (interrupt, options) = (Interrupt::watch(KEPT), BulkOptions { jobs: REQUESTS, ..options });
    let done = shown(&interrupt, |on_progress| {
        bulk::run_by(&service, service.question(), (input, output), &options, on_progress)
    });
    print_summary(done, (service.head(), service.engine()), None, files, output)
}

/// The outcome of work.
type Done = Result<BulkSummary, JobError>;

/// Shows the progress of work until it ends.
fn shown(
    interrupt: &Interrupt,
    work: impl FnOnce(&mut dyn FnMut(BulkProgress) -> ControlFlow<()>) -> Done,
) -> Done {
    let (mut display, mut is_first) = (Display::new(), true);
    let done = work(&mut |progress| {
        let BulkProgress { rows, failed, resumed, read, total } = progress;
        if is_first && resumed > 0 {
            display.say(&format!("resuming after {}", counted(resumed, "row")));
        }
        is_first = false;
        let errors = match failed {
            0 => String::new(),
            failed => counted(failed, "error"),
        };
        display.show(&Step {
            things: "rows",
            count: rows,
            earlier: resumed,
            note: &errors,
            done: read,
            length: total,
        });
        interrupt.go_on()
    });
    interrupt.end();
    done
}

/// Says what was done, by this head and on this engine.
fn print_summary(
    done: Done,
    (head, engine): (Option<&str>, &str),
    verification: Option<Verification>,
    files: &BulkFiles,
    output: BulkOutput<'_>,
) -> Result<(), CommandError> {
    let done = match done {
        // As in `kindred bulk … --out - | head`.
        Err(JobError::Closed) => return Ok(()),
        done => done?,
    };
    let asked = done.rows - done.resumed_rows;
    let rate = asked as f64 / done.asking_seconds.max(1e-9);
    let mut report = report(&done, engine, rate);
    if let Some(verification) = verification {
        verification.finish(Some(&files.out))?;
    }
    for warning in &done.warnings {
        eprintln!("warning: {}: {warning}", done.input);
    }
    let errors = done.errors.iter().map(|(code, count)| format!("{code}: {}", HumanCount(*count)));
    let errors = errors.collect::<Vec<_>>().join(", ");
    let text = if files.json {
        if let Some(head) = head {
            report["head"] = json!(head);
        }
        serde_json::to_string_pretty(&report).expect("numbers and names are JSON")
    } else {
        let errors = match done.failed {
            0 => String::new(),
            1 => format!("\n1 row has an error ({errors})"),
            failed => format!("\n{} rows have an error ({errors})", HumanCount(failed)),
        };
        format!(
            "{}: {}{}, {} answered, in {:.1} s{errors}\n{} asked for in {:.1} s, {} rows/s, by {} \
             on the engine {engine}",
            done.output,
            counted(done.rows, "row"),
            resumed(done.resumed_rows),
            HumanCount(done.answered),
            done.seconds,
            counted(asked, "row"),
            done.asking_seconds,
            HumanCount(rate as u64),
            heading(head, &done.model, &done.version),
        )
    };
    match output {
        BulkOutput::Stdout => eprintln!("{text}"),
        BulkOutput::File(_) => print((text + "\n").as_bytes())?,
    }
    if done.rows > 0 && done.answered == 0 {
        let BulkSummary { rows, output, .. } = done;
        return Err(CommandError::NothingAnswered { rows, errors, output });
    }
    Ok(())
}

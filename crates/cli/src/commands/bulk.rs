//! `kindred bulk`: answers each row of a file into another, with progress.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use jobs::JobError;
use jobs::bulk::{
    self, BulkInput, BulkOptions, BulkOutput, BulkProgress, BulkSummary, BulkWork, check_bulk_files,
};
use kindred::{Kindred, Options};
use serde_json::json;

use super::beside::Verification;
use super::classify::classifier_of;
use super::expand::{expander_of, wanted_terms};
use super::prepare::watch_for_interrupt_keeping;
use super::{CommandError, heading, long_work, model_of_head, print};
use crate::arguments::{
    BulkAnalogyArguments, BulkClassifyArguments, BulkCommand, BulkEngine, BulkExpandArguments,
    BulkFiles, BulkNearestArguments,
};
use server::models::OneModel;

/// Slots of the queue for a job in flight, eight for each row: a caller gets half of the queue, and
/// a long text or a large k takes more than one.
const SLOTS_PER_JOB: u32 = 8 * 1024;

/// What is said if the work does not stop by itself after Ctrl-C.
const KEPT: &str = "rows that are done are kept beside the output, unless they came from standard input or went to standard \
                    output: the same command goes on from there";

/// Answers each row of a file.
///
/// # Errors
/// If an option is wrong, the model or the engine can't be used, the input can't be read, or the
/// output can't be written. Answered rows are kept.
pub fn bulk(command: &BulkCommand) -> Result<(), CommandError> {
    match command {
        BulkCommand::Classify(arguments) => classify(arguments),
        BulkCommand::Expand(arguments) => expand(arguments),
        BulkCommand::Nearest(arguments) => {
            let BulkNearestArguments { texts, options, files, engine } = &**arguments;
            let work = if *texts { BulkWork::NearestOfTexts } else { BulkWork::Nearest };
            search(files, engine, &options.0, work)
        }
        BulkCommand::Analogy(arguments) => {
            let BulkAnalogyArguments { options, method, files, engine } = &**arguments;
            let options = Options { method: *method, ..options.0.clone() };
            search(files, engine, &options, BulkWork::Analogy)
        }
    }
}

fn search(
    files: &BulkFiles,
    engine: &BulkEngine,
    options: &Options,
    work: fn(Options) -> BulkWork,
) -> Result<(), CommandError> {
    run(files, engine, |_| Ok((None, work(options.clone()))))
}

fn classify(arguments: &BulkClassifyArguments) -> Result<(), CommandError> {
    let BulkClassifyArguments { labels, files, engine } = arguments;
    run(files, engine, |one| {
        let (name, head) = classifier_of(one, labels.head.as_deref())?;
        Ok((Some(name), BulkWork::Classify(head, labels.wanted())))
    })
}

fn expand(arguments: &BulkExpandArguments) -> Result<(), CommandError> {
    let BulkExpandArguments { terms, format, files, engine } = arguments;
    let wanted = wanted_terms(terms)?;
    run(files, engine, |one| {
        let (name, expander) = expander_of(one, terms.head.as_deref())?;
        Ok((Some(name), BulkWork::Expand(expander, wanted, *format)))
    })
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
    let one = model_of_head(&engine.model)?;
    let (head, work) = work(&one)?;
    work.check_output(output, &options)?;
    let verification = Verification::start(&one.model)?;
    let settings = long_work::settings(&engine.devices, SLOTS_PER_JOB);
    let interrupted = watch_for_interrupt_keeping(KEPT)?;
    let kindred = Kindred::start(one.model.into(), settings)?;
    let options = BulkOptions { jobs: long_work::jobs(&kindred, options.jobs), ..options };
    let mut display = Display::new();
    let done = bulk::run(&kindred, &work, (input, output), &options, |progress| {
        display.show(progress);
        match interrupted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    display.finish();
    match done {
        // As in `kindred bulk … --out - | head`.
        Err(JobError::Closed) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(done) => {
            verification.finish(Some(&files.out))?;
            let is_piped = output == BulkOutput::Stdout;
            print_summary(&done, head.as_deref(), &kindred, files.json, is_piped)
        }
    }
}

fn print_summary(
    done: &BulkSummary,
    head: Option<&str>,
    kindred: &Kindred,
    is_json: bool,
    is_piped: bool,
) -> Result<(), CommandError> {
    let asked = done.rows - done.resumed_rows;
    let rate = asked as f64 / done.asking_seconds.max(1e-9);
    let engine = kindred.engine().name;
    let text = if is_json {
        let mut report = json!(done);
        report["engine"] = json!(engine);
        if let Some(head) = head {
            report["head"] = json!(head);
        }
        report["rows_per_second"] = json!(rate);
        serde_json::to_string_pretty(&report).expect("numbers and names are JSON")
    } else {
        let resumed = match done.resumed_rows {
            0 => String::new(),
            rows => format!(", {} of them earlier", HumanCount(rows)),
        };
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
            "{}: {} rows{resumed}, {} answered, in {:.1} s{errors}\n{} rows asked for in {:.1} s, {} rows/s, \
             by {} on the engine {engine}",
            done.output,
            HumanCount(done.rows),
            HumanCount(done.answered),
            done.seconds,
            HumanCount(asked),
            done.asking_seconds,
            HumanCount(rate as u64),
            heading(head, &done.model, &done.version),
        )
    };
    if is_piped {
        eprintln!("{text}");
        return Ok(());
    }
    print((text + "\n").as_bytes())
}

/// Progress on standard error: a bar on a terminal, otherwise a line now and then.
struct Display {
    bar: Option<ProgressBar>,
    /// When the first new rows were done, and how far the input was then.
    began: Option<(Instant, u64)>,
    last: Option<Instant>,
}

const BETWEEN_LINES: Duration = Duration::from_secs(5);

impl Display {
    fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}");
            ProgressBar::new(0).with_style(style.expect("checked by use"))
        });
        Self { bar, began: None, last: None }
    }

    fn show(&mut self, progress: BulkProgress) {
        let BulkProgress { rows, failed, resumed, read, total } = progress;
        if self.last.is_none() && resumed > 0 {
            self.say(&format!("resuming after {} rows", HumanCount(resumed)));
        }
        let mut message = format!("{} rows", HumanCount(rows));
        if failed > 0 {
            message += &format!(", {} of them with an error", HumanCount(failed));
        }
        if rows > resumed {
            message += &self.pace(progress);
        }
        let now = Instant::now();
        match &self.bar {
            Some(bar) => {
                self.last = Some(now);
                match total {
                    Some(bytes) => bar.set_length(bytes),
                    None => bar.unset_length(),
                }
                bar.set_position(read);
                bar.set_message(message);
            }
            None if self.last.get_or_insert(now).elapsed() >= BETWEEN_LINES => {
                self.last = Some(now);
                match total {
                    Some(bytes) => eprintln!("{} % read, {message}", read * 100 / bytes.max(1)),
                    None => eprintln!("{} read, {message}", HumanBytes(read)),
                }
            }
            None => {}
        }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Rows a second in this run, and the time that is left at the pace at which the input is read.
    fn pace(&mut self, progress: BulkProgress) -> String {
        let BulkProgress { rows, resumed, read, total, .. } = progress;
        let (began, first) = *self.began.get_or_insert((Instant::now(), read));
        let seconds = began.elapsed().as_secs_f64();
        if seconds < 0.5 {
            return String::new();
        }
        let rate = HumanCount(((rows - resumed) as f64 / seconds) as u64);
        match total.filter(|_| read > first) {
            Some(total) => {
                let left = total.saturating_sub(read) as f64 / (read - first) as f64 * seconds;
                let left = HumanDuration(Duration::from_secs_f64(left));
                format!(", {rate} rows/s, {left} left")
            }
            None => format!(", {rate} rows/s"),
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

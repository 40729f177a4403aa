//! `kindred graph`: writes the graph of nearest neighbours of a model, with progress.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use jobs::graph::{self, GraphOptions, GraphProgress, GraphSummary, check_file};
use kindred::Kindred;
use serde_json::json;

use super::beside::Verification;
use super::prepare::watch_for_interrupt_keeping;
use super::{CommandError, heading, long_work, model_of, print};
use crate::arguments::GraphArguments;

/// Slots of the queue for a job in flight, four for each row of a full job: a caller gets half of
/// the queue, and a row with a large k takes more than one.
const SLOTS_PER_JOB: u32 = 4 * 1024;

/// What is said if the work does not stop by itself after Ctrl-C.
const KEPT: &str =
    "rows that are done are kept beside the output: the same command goes on from there";

/// Makes the graph of a model's nearest neighbours.
///
/// # Errors
/// If an option is wrong, the model or the engine can't be used, or the file can't be written. What
/// is done is kept.
pub fn graph(arguments: &GraphArguments) -> Result<(), CommandError> {
    // Before the engine is made, which may take long.
    check_file(&arguments.out, arguments.replace)?;
    let model = model_of(arguments.model.as_deref(), None)?.model;
    let options = GraphOptions {
        k: arguments.k,
        first_rows: arguments.first_rows.map(|rows| rows.get()),
        min_score: arguments.min_score,
        replace: arguments.replace,
        ..GraphOptions::default()
    };
    let settings = long_work::settings(&arguments.devices, SLOTS_PER_JOB);
    let interrupted = watch_for_interrupt_keeping(KEPT)?;
    let verification = Verification::start(&model)?;
    let kindred = Kindred::start(model.into(), settings)?;
    let options = GraphOptions { jobs: long_work::jobs(&kindred, options.jobs), ..options };
    let mut display = Display::new();
    let made = graph::make(&kindred, &arguments.out, &options, |progress| {
        display.show(progress);
        match interrupted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    display.finish();
    let made = made?;
    verification.finish(Some(&arguments.out))?;
    print_summary(&made, &kindred, arguments.json)
}

fn print_summary(
    made: &GraphSummary,
    kindred: &Kindred,
    is_json: bool,
) -> Result<(), CommandError> {
    let asked = made.rows - made.resumed_rows;
    let rate = asked as f64 / made.asking_seconds.max(1e-9);
    if is_json {
        let mut report = json!(made);
        report["engine"] = json!(kindred.engine().name);
        report["rows_per_second"] = json!(rate);
        let text = serde_json::to_string_pretty(&report).expect("numbers and names are JSON");
        return print((text + "\n").as_bytes());
    }
    let GraphSummary { file, rows, k, edges, resumed_rows, asking_seconds, seconds, .. } = made;
    let model = heading(None, &made.model, &made.version);
    let resumed = match resumed_rows {
        0 => String::new(),
        rows => format!(", {} of them earlier", HumanCount(*rows)),
    };
    say!(
        "{}: {} neighbours of {} rows{resumed} of {model}, k = {k}, in {seconds:.1} s",
        file.display(),
        HumanCount(*edges),
        HumanCount(*rows),
    )?;
    let (asked, rate) = (HumanCount(asked), HumanCount(rate as u64));
    let engine = kindred.engine().name;
    say!("{asked} rows asked for in {asking_seconds:.1} s, {rate} rows/s, by the engine {engine}")
}

/// Progress on standard error: a bar on a terminal, otherwise a line now and then.
struct Display {
    bar: Option<ProgressBar>,
    started: Instant,
    last: Option<Instant>,
}

const BETWEEN_LINES: Duration = Duration::from_secs(5);

impl Display {
    fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = "{bar:40} {percent:>3} %  {human_pos} of {human_len} rows  {msg}";
            let style = ProgressStyle::with_template(style).expect("checked by use");
            ProgressBar::new(0).with_style(style)
        });
        Self { bar, started: Instant::now(), last: None }
    }

    fn show(&mut self, progress: GraphProgress) {
        let GraphProgress { done, rows, resumed, first_open } = progress;
        let percent = done * 100 / rows;
        if self.last.is_none() {
            self.started = Instant::now();
            if resumed > 0 {
                self.say(&format!("resuming at row {}, {percent} % done", HumanCount(first_open)));
            }
        }
        let pace = self.pace(done - resumed, rows - done);
        match &self.bar {
            Some(bar) => {
                self.last = Some(Instant::now());
                bar.set_length(rows);
                bar.set_position(done);
                bar.set_message(pace);
            }
            None if self.last.get_or_insert_with(Instant::now).elapsed() >= BETWEEN_LINES => {
                self.last = Some(Instant::now());
                eprintln!(
                    "{percent} % done, {} of {} rows{pace}",
                    HumanCount(done),
                    HumanCount(rows)
                );
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

    /// Rows a second in this run, and the time that is left at this pace.
    fn pace(&self, asked: u64, open: u64) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        if asked == 0 || seconds < 0.5 {
            return String::new();
        }
        let rate = asked as f64 / seconds;
        let left = HumanDuration(Duration::from_secs_f64(open as f64 / rate));
        format!(", {} rows/s, {left} left", HumanCount(rate as u64))
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

//! `kindred prepare`: converts a vectors file into a model folder, with progress and summary.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use kindred::ModelStore;
use kindred::contract::Metric;
use kindred::prepare::{Input, PrepareOptions, Progress, Summary, prepare_folder};

use super::CommandError;
use super::signals::StopSignals;
use crate::arguments::PrepareArguments;

/// Converts a vectors file into a model folder, and shows the progress.
///
/// # Errors
/// The error names the file and the line. Nothing is left behind.
pub fn prepare(arguments: &PrepareArguments) -> Result<(), CommandError> {
    // A folder appears complete or not at all, so one that is there needs no work.
    if arguments.if_missing && arguments.out.exists() && !is_empty(&arguments.out) {
        let model = ModelStore::open(&arguments.out)?;
        let (rows, dim) = (HumanCount(model.rows() as u64), model.dim());
        return say!("{}: kept: {rows} rows × {dim} dimensions", arguments.out.display());
    }
    let options = PrepareOptions {
        format: arguments.format,
        words: arguments.words.clone(),
        metric: arguments.metric,
        biases: arguments.bias.clone(),
        tensor: arguments.tensor.clone(),
        member: arguments.member.clone(),
        dim: arguments.dim,
        allow_numeric_words: arguments.allow_numeric_words,
        skip_bad_rows: arguments.skip_bad_rows,
        replace: arguments.replace,
    };
    let interrupted = watch_for_interrupt()?;
    let mut display = Display::new();
    let started = Instant::now();
    let from_stdin = arguments.input.as_os_str() == "-";
    let input = if from_stdin { Input::Stdin } else { Input::File(&arguments.input) };
    let result = prepare_folder(input, &arguments.out, &options, &mut |progress| {
        display.show(progress);
        if interrupted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    display.finish();
    let summary = result?;
    print_summary(arguments, &summary, started.elapsed())
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// How long the work may take to stop by itself after a signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Ctrl-C and SIGTERM stop the work between two chunks, so that it can remove what it has written.
pub(super) fn watch_for_interrupt() -> Result<Arc<AtomicBool>, CommandError> {
    watch_for_interrupt_keeping(
        "a temporary .kindred-* may be left beside the output, and the next run removes it",
    )
}

/// The same for work that leaves something else; `kept` says what, if the work does not stop by
/// itself.
pub(super) fn watch_for_interrupt_keeping(
    kept: &'static str,
) -> Result<Arc<AtomicBool>, CommandError> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    let no_signals = |source| CommandError::System { doing: "can't handle signals", source };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_signals)?;
    let mut stop_signals = {
        let _within = runtime.enter();
        StopSignals::handle().map_err(no_signals)?
    };
    std::thread::spawn(move || {
        runtime.block_on(stop_signals.next());
        flag.store(true, Ordering::Relaxed);
        eprintln!("stopping; a second signal stops at once");
        // A reader that waits for a silent pipe does not check the flag, so wait only for a limited
        // time.
        runtime.block_on(async {
            let _ = tokio::time::timeout(STOP_TIMEOUT, stop_signals.next()).await;
        });
        eprintln!("kindred: stopped; {kept}");
        std::process::exit(130);
    });
    Ok(interrupted)
}

/// How a model's size goes on if it is not a usual one.
pub(super) fn under(metric: Metric) -> &'static str {
    match metric {
        Metric::Cosine => "",
        Metric::Dot => " under the metric dot",
    }
}

fn print_summary(
    arguments: &PrepareArguments,
    summary: &Summary,
    took: Duration,
) -> Result<(), CommandError> {
    let seconds = took.as_secs_f64();
    say!(
        "{}: {} rows × {} dimensions{} from {} of {} in {seconds:.1} s",
        arguments.out.display(),
        HumanCount(summary.rows as u64),
        summary.dim,
        under(arguments.metric),
        HumanBytes(summary.provenance.source_bytes),
        summary.provenance.source_format,
    )?;
    say!(
        "skipped {} invalid rows and {} repeated words",
        summary.provenance.bad_rows_skipped,
        summary.provenance.duplicate_words_dropped
    )?;
    if let Some(first) = &summary.first_bad_row {
        say!("the first invalid row is {first}")?;
    }
    say!("to serve it: kindred serve --model {}", arguments.out.display())
}

/// Progress on standard error: a bar on a terminal, otherwise a line now and then.
enum Display {
    Bar(ProgressBar),
    Lines { last: Instant },
}

const BETWEEN_LINES: Duration = Duration::from_secs(2);

impl Display {
    fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines { last: Instant::now() };
        }
        let style = "{bar:40} {percent:>3} %  {decimal_bytes_per_sec}  {msg}  {eta} left";
        let style = ProgressStyle::with_template(style).expect("checked by use");
        Self::Bar(ProgressBar::new(0).with_style(style))
    }

    fn show(&mut self, progress: Progress) {
        let rows = HumanCount(progress.rows as u64);
        match self {
            Self::Bar(bar) => {
                match progress.bytes_total {
                    Some(bytes) => bar.set_length(bytes),
                    None => bar.unset_length(),
                }
                bar.set_position(progress.bytes_read);
                bar.set_message(format!("{rows} rows"));
            }
            Self::Lines { last } if last.elapsed() >= BETWEEN_LINES => {
                *last = Instant::now();
                match progress.bytes_total {
                    Some(bytes) => {
                        eprintln!(
                            "{} % read, {rows} rows",
                            progress.bytes_read * 100 / bytes.max(1)
                        );
                    }
                    None => eprintln!("{} read, {rows} rows", HumanBytes(progress.bytes_read)),
                }
            }
            Self::Lines { .. } => {}
        }
    }

    fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

//! `kindred graph`: writes the graph of nearest neighbours of a model, with progress.

use indicatif::HumanCount;
use jobs::graph::{self, GraphOptions, GraphProgress, GraphSummary, check_file};

use super::long_work::{LongWork, report, resumed};
use super::progress::{Display, Step, counted};
use super::{CommandError, changed_model_of, heading};
use crate::arguments::GraphArguments;

/// Slots of the queue for a job in flight, four for each row of a full job: a caller gets half of
/// the queue, and a row with a large k takes more than one.
const SLOTS_PER_JOB: u32 = 4 * 1024;

/// What is said if the work does not stop by itself after Ctrl-C.
const KEPT: &str =
    "rows that are done are kept beside the output: the same command goes on from there";

/// Makes the graph of a model's nearest neighbours.
pub(super) fn graph(arguments: &GraphArguments) -> Result<(), CommandError> {
    // Before the engine is made, which may take long.
    check_file(&arguments.out, arguments.replace)?;
    let (one, live) = changed_model_of(&arguments.model)?;
    let options = GraphOptions {
        k: arguments.k,
        first_rows: arguments.first_rows.map(|rows| rows.get()),
        min_score: arguments.min_score,
        filter: arguments.filter.clone(),
        replace: arguments.replace,
        ..GraphOptions::default()
    };
    let work =
        LongWork::start((&one.model, live.as_ref()), &arguments.devices, SLOTS_PER_JOB, KEPT)?;
    let options = GraphOptions { jobs: LongWork::jobs(&work.kindred, options.jobs), ..options };
    let (mut display, mut is_first) = (Display::new(), true);
    let made = graph::make(&work.kindred, &arguments.out, &options, |progress| {
        let GraphProgress { done, rows, resumed, first_open } = progress;
        if is_first && resumed > 0 {
            let (row, percent) = (HumanCount(first_open), done * 100 / rows);
            display.say(&format!("resuming at row {row}, {percent} % done"));
        }
        is_first = false;
        display.show(&Step { earlier: resumed, ..Step::of("rows", done, rows) });
        work.interrupt.go_on()
    });
    work.interrupt.end();
    display.finish();
    print_summary(&made?, work, arguments)
}

fn print_summary(
    made: &GraphSummary,
    work: LongWork,
    arguments: &GraphArguments,
) -> Result<(), CommandError> {
    let asked = made.rows - made.resumed_rows;
    let rate = asked as f64 / made.asking_seconds.max(1e-9);
    let engine = work.kindred.engine().name;
    let report = report(made, engine, rate);
    work.verification.finish(Some(&arguments.out))?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&report).expect("numbers and names are JSON");
        return say!("{text}");
    }
    let GraphSummary { file, rows, k, edges, resumed_rows, asking_seconds, seconds, .. } = made;
    say!(
        "{}: {} of {}{} of {}, k = {k}, in {seconds:.1} s",
        file.display(),
        counted(*edges, "neighbour"),
        counted(*rows, "row"),
        resumed(*resumed_rows),
        heading(None, &made.model, &made.version),
    )?;
    let (asked, rate) = (counted(asked, "row"), HumanCount(rate as u64));
    say!("{asked} asked for in {asking_seconds:.1} s, {rate} rows/s, by the engine {engine}")
}

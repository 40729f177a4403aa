//! Progress of long work, on standard error: the same for all commands, and never wider than a
//! terminal of 80 columns.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressStyle};

/// The bar takes 24 columns with the percentage; the message has the others, and is cut there.
const BAR: &str = "{bar:16} {percent:>3} %  {wide_msg}";
/// Of work whose length is unknown.
const NO_BAR: &str = "{spinner} {wide_msg}";

/// A bar is drawn anew this often, at most.
const BETWEEN_BARS: Duration = Duration::from_millis(100);
/// Without a terminal, the time from line to line.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// The progress of work.
#[derive(Debug, Default)]
pub(super) struct Step<'a> {
    /// The things that are done, by their name: `rows`.
    pub(super) things: &'a str,
    /// Their number, with those of earlier runs.
    pub(super) count: u64,
    /// The number that earlier runs did.
    pub(super) earlier: u64,
    /// Anything else to say: `12 errors`.
    pub(super) note: &'a str,
    /// The progress and, if it is known, the end: in things, or in bytes.
    pub(super) done: u64,
    pub(super) length: Option<u64>,
}

impl<'a> Step<'a> {
    /// Work whose progress is counted in things.
    pub(super) fn of(things: &'a str, count: u64, length: u64) -> Self {
        Self { things, count, done: count, length: Some(length), ..Self::default() }
    }
}

/// A bar on a terminal, otherwise a line now and then.
pub(super) struct Display {
    bar: Option<ProgressBar>,
    pace: Pace,
    last: Instant,
}

impl Display {
    pub(super) fn new() -> Self {
        let bar =
            std::io::stderr().is_terminal().then(|| ProgressBar::new(0).with_style(style(BAR)));
        let now = Instant::now();
        Self { bar, pace: Pace::since(now), last: now }
    }

    /// Shows the progress, if it is time to.
    pub(super) fn show(&mut self, step: &Step<'_>) {
        let now = Instant::now();
        self.pace.see(now, step);
        let between = if self.bar.is_some() { BETWEEN_BARS } else { BETWEEN_LINES };
        if now.duration_since(self.last) < between {
            return;
        }
        self.last = now;
        let message = message(step, &self.pace.text(now, step));
        let Some(bar) = &self.bar else {
            match step.length {
                Some(length) => eprintln!("{} % done, {message}", step.done * 100 / length.max(1)),
                None => eprintln!("{message}"),
            }
            return;
        };
        if bar.length().is_some() != step.length.is_some() {
            bar.set_style(style(if step.length.is_some() { BAR } else { NO_BAR }));
        }
        match step.length {
            Some(length) => bar.set_length(length),
            None => bar.unset_length(),
        }
        bar.set_position(step.done);
        bar.set_message(message);
    }

    /// Says something else.
    pub(super) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// An error that ends the work is not written behind a bar.
impl Drop for Display {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A number of things: `1 row`, `3,000 rows`.
pub(super) fn counted(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        number => format!("{} {thing}s", HumanCount(number)),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("checked by use")
}

/// The things that are done, the pace, and the time that is left. The least important is last,
/// because a terminal may have no room for it.
fn message(step: &Step<'_>, pace: &str) -> String {
    let Step { things, count, note, done, length, .. } = step;
    let mut message = format!("{} {things}{pace}", HumanCount(*count));
    if length.is_none() {
        message += &format!(", {} read", HumanBytes(*done));
    }
    if !note.is_empty() {
        message += &format!(", {note}");
    }
    message
}

/// The pace of a run.
struct Pace {
    /// The start of work that does not go on from earlier runs.
    created: Instant,
    /// The start of the count, with the number of things that were done then: at the creation, or,
    /// after earlier runs, at the first step.
    began: Option<(Instant, u64)>,
    /// The step with the first things of this run, with the progress then. Before it, the things of
    /// earlier runs may be read again.
    first: Option<(Instant, u64)>,
}

impl Pace {
    fn since(created: Instant) -> Self {
        Self { created, began: None, first: None }
    }

    /// Takes note of a step. The first step of work that begins anew took the time since the
    /// creation: if steps are few and large, the pace is known after it.
    fn see(&mut self, now: Instant, step: &Step<'_>) {
        let own = step.count.saturating_sub(step.earlier);
        let anew = (step.earlier == 0).then_some((self.created, 0));
        self.began.get_or_insert(anew.unwrap_or((now, own)));
        if own > 0 {
            self.first.get_or_insert(anew.unwrap_or((now, step.done)));
        }
    }

    /// Things a second in this run, and the time that is left if the length is known; nothing at
    /// first.
    fn text(&self, now: Instant, step: &Step<'_>) -> String {
        let (Some((began, own_then)), Some((first, done_then))) = (self.began, self.first) else {
            return String::new();
        };
        let own = step.count.saturating_sub(step.earlier);
        let seconds = |since| now.duration_since(since).as_secs_f64();
        if own <= own_then || seconds(began) < 0.5 {
            return String::new();
        }
        let rate = HumanCount(((own - own_then) as f64 / seconds(began)) as u64);
        let pace = format!(", {rate} {}/s", step.things);
        match step.length.filter(|_| step.done > done_then && seconds(first) >= 0.5) {
            Some(length) => {
                let a_second = (step.done - done_then) as f64 / seconds(first);
                let left = length.saturating_sub(step.done) as f64 / a_second;
                let left = HumanDuration(Duration::from_secs_f64(left));
                format!("{pace}, {left:#} left")
            }
            None => pace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(count: u64, earlier: u64, done: u64, length: Option<u64>) -> Step<'static> {
        Step { things: "rows", count, earlier, done, length, ..Step::default() }
    }

    #[test]
    fn rows_a_second_count_from_before_the_first_rows() {
        let start = Instant::now();
        let mut pace = Pace::since(start);
        let mut at = |seconds, rows, done| {
            let (now, step) =
                (start + Duration::from_secs(seconds), step(rows, 7, done, Some(100)));
            pace.see(now, &step);
            pace.text(now, &step)
        };
        assert_eq!(at(0, 7, 0), "");
        // It was resumed at 40.
        assert_eq!(at(10, 1007, 50), ", 100 rows/s");
        assert_eq!(at(20, 2007, 60), ", 100 rows/s, 40s left");
        assert_eq!(at(40, 3007, 80), ", 75 rows/s, 20s left");
    }

    #[test]
    fn the_first_step_of_work_that_begins_anew_has_its_pace() {
        let start = Instant::now();
        let mut pace = Pace::since(start);
        let mut at = |seconds, rows, done| {
            let (now, step) =
                (start + Duration::from_secs(seconds), step(rows, 0, done, Some(100)));
            pace.see(now, &step);
            pace.text(now, &step)
        };
        assert_eq!(at(10, 1000, 20), ", 100 rows/s, 40s left");
        assert_eq!(at(50, 2000, 50), ", 40 rows/s, 50s left");
    }

    #[test]
    fn rows_that_were_there_at_the_first_call_and_those_of_earlier_runs_do_not_count() {
        let start = Instant::now();
        let mut pace = Pace::since(start);
        let mut at = |seconds, rows| {
            let (now, step) = (start + Duration::from_secs(seconds), step(rows, 500, rows, None));
            pace.see(now, &step);
            pace.text(now, &step)
        };
        assert_eq!(at(0, 1500), "");
        assert_eq!(at(10, 1500), "");
        assert_eq!(at(20, 3500), ", 100 rows/s");
    }

    #[test]
    fn a_bar_of_large_work_fits_80_columns() {
        let start = Instant::now();
        let large = |count: u64, note: &'static str| Step {
            note,
            ..step(count, 1000, count / 10 * 9, Some(2_196_016_000))
        };
        let mut pace = Pace::since(start);
        pace.see(start, &large(1000, ""));
        pace.see(start + Duration::from_secs(1), &large(2000, ""));
        let (now, last) =
            (start + Duration::from_secs(7000), large(2_100_000_000, "12,345 errors"));
        let message = message(&last, &pace.text(now, &last));
        assert_eq!(message, "2,100,000,000 rows, 299,999 rows/s, 19m left, 12,345 errors");
        // The bar, the percentage and the spaces between them take 24 columns. Only the note may
        // be cut.
        let needed = message.strip_suffix(", 12,345 errors").unwrap();
        assert!(BAR.starts_with("{bar:16} {percent:>3} %  {wide_msg}") && needed.len() <= 56);
    }

    #[test]
    fn work_of_unknown_length_says_what_was_read() {
        let piped = step(3, 0, 1_500_000, None);
        assert_eq!(message(&piped, ""), "3 rows, 1.43 MiB read");
    }
}

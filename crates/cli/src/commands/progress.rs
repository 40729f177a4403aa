//! Progress of long work, on standard error.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{
    HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle,
};

/// A bar that counts up to `length`; `things` names what it counts. It is drawn only on a terminal.
pub(super) fn bar(length: u64, things: &str) -> ProgressBar {
    let style =
        format!("{{bar:40}} {{percent:>3}} %  {{human_pos}} {things}  {{eta}} left  {{msg}}");
    let style = ProgressStyle::with_template(&style).expect("checked by use");
    let bar = ProgressBar::new(length).with_style(style);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

/// A bar on a terminal, otherwise a line now and then.
pub(super) struct Display {
    bar: Option<ProgressBar>,
    /// Of what is counted, in lines: "read" or "done".
    verb: &'static str,
    between_lines: Duration,
    last: Instant,
}

impl Display {
    /// `template` is that of the bar.
    pub(super) fn new(template: &str, verb: &'static str, between_lines: Duration) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(template).expect("checked by use");
            ProgressBar::new(0).with_style(style)
        });
        Self { bar, verb, between_lines, last: Instant::now() }
    }

    /// Shows that `done` of `length` is done; if the length is unknown, they are bytes.
    pub(super) fn show(&mut self, done: u64, length: Option<u64>, message: String) {
        match &self.bar {
            Some(bar) => {
                match length {
                    Some(length) => bar.set_length(length),
                    None => bar.unset_length(),
                }
                bar.set_position(done);
                bar.set_message(message);
            }
            None if self.last.elapsed() >= self.between_lines => {
                self.last = Instant::now();
                let verb = self.verb;
                match length {
                    Some(length) => eprintln!("{} % {verb}, {message}", done * 100 / length.max(1)),
                    None => eprintln!("{} {verb}, {message}", HumanBytes(done)),
                }
            }
            None => {}
        }
    }

    /// Says something besides.
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

/// The pace of a run.
#[derive(Default)]
pub(super) struct Pace {
    /// When its progress was first told, and how many rows were done then.
    began: Option<(Instant, u64)>,
    /// When its first rows were done, and how far the work was then: what earlier runs did may be
    /// read again before that.
    first: Option<(Instant, u64)>,
}

impl Pace {
    /// Rows a second in this run, and the time that is left if `length` is known; nothing at first.
    /// The work is at `done` of `length`. The first call begins the count, also without rows.
    pub(super) fn of(&mut self, rows: u64, done: u64, length: Option<u64>) -> String {
        self.at(Instant::now(), rows, done, length)
    }

    fn at(&mut self, now: Instant, rows: u64, done: u64, length: Option<u64>) -> String {
        let (began, rows_then) = *self.began.get_or_insert((now, rows));
        if rows == 0 {
            return String::new();
        }
        let (first, done_then) = *self.first.get_or_insert((now, done));
        let seconds = |since| now.duration_since(since).as_secs_f64();
        if rows <= rows_then || seconds(began) < 0.5 {
            return String::new();
        }
        let rate = HumanCount(((rows - rows_then) as f64 / seconds(began)) as u64);
        match length.filter(|_| done > done_then && seconds(first) >= 0.5) {
            Some(length) => {
                let a_second = (done - done_then) as f64 / seconds(first);
                let left = length.saturating_sub(done) as f64 / a_second;
                let left = HumanDuration(Duration::from_secs_f64(left));
                format!(", {rate} rows/s, {left} left")
            }
            None => format!(", {rate} rows/s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_a_second_count_from_before_the_first_rows() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let mut at = |seconds, rows, done| {
            pace.at(start + Duration::from_secs(seconds), rows, done, Some(100))
        };
        assert_eq!(at(0, 0, 0), "");
        // It was resumed at 40.
        assert_eq!(at(10, 1000, 50), ", 100 rows/s");
        assert_eq!(at(20, 2000, 60), ", 100 rows/s, 40 seconds left");
        assert_eq!(at(40, 3000, 80), ", 75 rows/s, 20 seconds left");
    }

    #[test]
    fn rows_that_were_there_at_the_first_call_do_not_count() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let mut at =
            |seconds, rows| pace.at(start + Duration::from_secs(seconds), rows, rows, None);
        assert_eq!(at(0, 1000), "");
        assert_eq!(at(10, 1000), "");
        assert_eq!(at(20, 3000), ", 100 rows/s");
    }
}

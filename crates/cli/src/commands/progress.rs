//! Progress bars for long work.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::CommandError;

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

/// A bar that counts rows, and a check whether the user wants to stop the work.
pub(super) struct RowProgress {
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
}

impl RowProgress {
    /// `rows` is the number of rows to count up to.
    pub(super) fn new(rows: u64) -> Result<Self, CommandError> {
        let interrupted = super::prepare::watch_for_interrupt()?;
        Ok(Self { bar: bar(rows, "rows"), interrupted })
    }

    /// Shows that `rows` rows are done. Breaks if the user wants to stop.
    pub(super) fn show(&self, rows: u64) -> ControlFlow<()> {
        self.bar.set_position(rows);
        if self.interrupted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

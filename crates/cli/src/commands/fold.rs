//! `kindred fold`: a new base of the rows as they are now.

use std::time::{Duration, Instant};

use indicatif::HumanCount;
use kindred::live::Live;
use kindred::live::changes::{Access, ChangeOptions, FoldProgress, KEEP_OLD};

use super::CommandError;
use super::progress::{Display, Step, counted};
use super::signals::Interrupt;
use crate::arguments::FoldArguments;

/// What a signal leaves that does not wait for the end.
const UNFINISHED: &str = "the rows are as they were; an unfinished folder base-*.new may be left in \
                          the model's, and the next fold removes it";

/// Folds the changes of a model folder, and shows the progress.
pub(super) fn fold(arguments: &FoldArguments) -> Result<(), CommandError> {
    let FoldArguments { model, remove_old } = arguments;
    let keep_old = if *remove_old { Duration::ZERO } else { KEEP_OLD };
    let options = ChangeOptions { access: Access::Write, keep_old, ..ChangeOptions::default() };
    let live = Live::open(&model.folder, options)?;
    let (interrupt, mut display) = (Interrupt::watch(UNFINISHED), Display::new());
    let started = Instant::now();
    let folded = live.fold(&mut |progress| {
        let FoldProgress { step, done, of } = progress;
        display.show(&Step { note: step, ..Step::of("rows", done as u64, of as u64) });
        interrupt.go_on()
    });
    display.finish();
    let folder = model.folder.display();
    let Some(folded) = folded? else { return say!("{folder}: nothing to fold") };
    let (now, seconds) = (folded.now(), started.elapsed().as_secs_f64());
    say!(
        "{folder}: base {}, {} at position {}, in {seconds:.1} s",
        folded.generation(),
        counted(now.live_rows() as u64, "row"),
        now.position(),
    )?;
    match folded.changes().remove_old(keep_old)? {
        false => Ok(()),
        true => say!(
            "the old files stay for {} minutes, and go with the next change or fold after that; \
             --remove-old removes them now",
            HumanCount(keep_old.as_secs() / 60)
        ),
    }
}

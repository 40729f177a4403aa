use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Instant;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use model_store::synth::{SynthOptions, synth_folder};

use super::CommandError;
use crate::cli::SynthArguments;

/// Makes a synthetic model folder, and shows how far it is.
///
/// # Errors
/// If the folder can't be written; nothing is left behind.
pub fn synth(arguments: &SynthArguments) -> Result<(), CommandError> {
    let SynthArguments { rows, dim, seed, out, replace } = arguments;
    let options = SynthOptions { rows: *rows, dim: *dim as usize, seed: *seed };
    let interrupted = super::prepare::watch_for_interrupt()?;
    let style = "{bar:40} {percent:>3} %  {human_pos} rows  {eta} left";
    let bar = ProgressBar::new(u64::from(*rows))
        .with_style(ProgressStyle::with_template(style).expect("checked by use"));
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let started = Instant::now();
    let result = synth_folder(options, out, *replace, &mut |rows| {
        bar.set_position(u64::from(rows));
        if interrupted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    result?;
    say!(
        "{}: {} synthetic rows × {dim} dimensions, seed {seed}, in {:.1} s",
        out.display(),
        HumanCount(u64::from(*rows)),
        started.elapsed().as_secs_f64()
    );
    say!("serve it with: kindred serve --model {}", out.display());
    Ok(())
}

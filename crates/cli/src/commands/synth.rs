//! `kindred synth`: generates a synthetic model of any size.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use indicatif::HumanCount;
use kindred::ModelError;
use kindred::contract::Metric;
use kindred::export::check_free;
use kindred::synth::{SynthOptions, synth_folder, synth_text};

use super::prepare::under;
use super::progress::{Display, Step};
use super::signals::{Interrupt, REMOVED};
use super::{CommandError, typed};
use crate::arguments::SynthArguments;

/// Generates a synthetic model folder or text file, and shows the progress.
pub(super) fn synth(arguments: &SynthArguments) -> Result<(), CommandError> {
    let SynthArguments { rows, dim, seed, metric, attributes, buckets, out, text, replace } =
        arguments;
    let options = SynthOptions {
        rows: *rows,
        dim: *dim as usize,
        seed: *seed,
        metric: *metric,
        attributes: *attributes,
        buckets: buckets.unwrap_or_default(),
    };
    if *metric == Metric::Dot && text.is_some() {
        let usage = "GloVe text holds no biases; omit --text, and export the model with \
                     `kindred export --bias`";
        return Err(CommandError::Usage(usage.to_owned()));
    }
    // Check this before the folder is generated, which may take long.
    if let Some(text) = text {
        check_free(text, *replace)?;
    }
    let interrupt = Interrupt::watch(REMOVED);
    let mut started = Instant::now();
    let mut made = |path: &Path| {
        say!(
            "{}: {} synthetic rows × {dim} dimensions{}, seed {seed}, in {:.1} s",
            path.display(),
            HumanCount(u64::from(*rows)),
            under(*metric),
            started.elapsed().as_secs_f64()
        )?;
        started = Instant::now();
        Ok::<(), CommandError>(())
    };
    if let Some(out) = out {
        shown(&interrupt, *rows, |on_progress| synth_folder(options, out, *replace, on_progress))?;
        made(out)?;
        say!("to serve it: kindred serve --model {}", typed(out))?;
    }
    if let Some(text) = text {
        shown(&interrupt, *rows, |on_progress| synth_text(options, text, *replace, on_progress))?;
        made(text)?;
        say!("to convert it into a model: kindred prepare {} --out DIR", typed(text))?;
    }
    Ok(())
}

/// Shows the progress of work that makes this number of rows.
fn shown(
    interrupt: &Interrupt,
    rows: u32,
    work: impl FnOnce(&mut dyn FnMut(u32) -> ControlFlow<()>) -> Result<(), ModelError>,
) -> Result<(), ModelError> {
    let mut display = Display::new();
    work(&mut |done| {
        display.show(&Step::of("rows", u64::from(done), u64::from(rows)));
        interrupt.go_on()
    })
}

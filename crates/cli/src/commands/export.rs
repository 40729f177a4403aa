//! `kindred export`: writes a model in the formats of other programs.

use std::io;
use std::time::Instant;

use indicatif::HumanCount;
use kindred::ModelError;
use kindred::export::{ExportOptions, export as write};

use super::beside::Verification;
use super::progress::{Display, Step};
use super::signals::{Interrupt, REMOVED};
use super::{CommandError, heading, model_of};
use crate::arguments::ExportArguments;

/// Writes a model in another format, and shows the progress.
pub(super) fn export(arguments: &ExportArguments) -> Result<(), CommandError> {
    let ExportArguments { model, format, out, words, bias, attributes_out, replace } = arguments;
    let name = format.name();
    match (format.needs_words_file(), words) {
        (true, None) => {
            let usage = format!("{name} holds no words; name a file for them with --words FILE");
            return Err(CommandError::Usage(usage));
        }
        (false, Some(_)) => {
            let usage = format!("{name} includes the words; omit --words");
            return Err(CommandError::Usage(usage));
        }
        _ => {}
    }
    let store = model_of(&model.arguments())?.model;
    let verification = Verification::start(&store)?;
    let to_stdout = out.as_os_str() == "-";
    let (interrupt, mut display) = (Interrupt::watch(REMOVED), Display::new());
    let started = Instant::now();
    let options = ExportOptions {
        format: *format,
        out: (!to_stdout).then(|| out.clone()),
        words: words.clone(),
        biases: bias.clone(),
        attributes: attributes_out.clone(),
        replace: *replace,
    };
    let result = write(&store, &options, &mut |rows| {
        display.show(&Step::of("rows", rows as u64, store.rows() as u64));
        interrupt.go_on()
    });
    display.finish();
    match result {
        // As in `kindred export … --out - | head`. Other files would be missing.
        Err(ModelError::Io { source, .. })
            if to_stdout
                && source.kind() == io::ErrorKind::BrokenPipe
                && words.is_none()
                && bias.is_none()
                && attributes_out.is_none() =>
        {
            return Ok(());
        }
        written => written?,
    }
    verification.finish(Some(out))?;
    if store.table().biases().is_some() && bias.is_none() {
        eprintln!("the model has biases, which were not written; --bias FILE writes them");
    }
    if store.attributes().is_some() && attributes_out.is_none() {
        eprintln!(
            "the model has attributes, which were not written; --attributes-out FILE writes them"
        );
    }
    if !to_stdout {
        say!(
            "{}: {}, {} rows × {} dimensions, as {name} in {:.1} s",
            out.display(),
            heading(None, store.name(), store.version()),
            HumanCount(store.rows() as u64),
            store.dim(),
            started.elapsed().as_secs_f64()
        )?;
    }
    Ok(())
}

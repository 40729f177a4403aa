//! `kindred verify`: checks every checksum of a model folder, and of a head's.

use std::sync::Arc;

use kindred::heads::{Expander, Head, HeadKind, about};
use model_store::ModelStore;

use super::CommandError;
use crate::cli::VerifyArguments;

/// Checks every checksum of a model folder, and prints what the model is.
///
/// # Errors
/// If a file is not what it should be (the error names it), or if the result can't be written.
pub fn verify(arguments: &VerifyArguments) -> Result<(), CommandError> {
    let model = Arc::new(ModelStore::open(&arguments.model)?);
    // Steps only show progress. If standard output can't be written, printing the last line fails.
    model.verify(|step| drop(say!("checking {step}")))?;
    let (header, from) = (model.header(), &model.header().provenance);
    say!(
        "{}: {} rows × {} dimensions, metric {}{}, prepared from {} by {} at {}; all checksums match",
        arguments.model.display(),
        header.rows,
        header.dim,
        header.metric.name(),
        if header.checksums.biases.is_some() { " with biases" } else { "" },
        from.source,
        from.prepared_by,
        from.prepared_at
    )?;
    if let Some(folder) = &arguments.head {
        // Opening it checks everything.
        let what = match about(folder)?.kind {
            HeadKind::Classifier => {
                let head = Head::open(folder, &model)?;
                format!("a classifier of {}", head.description().labels.join(", "))
            }
            HeadKind::Expander => {
                format!("an expander with {} terms", Expander::open(folder, &model)?.len())
            }
        };
        say!("{}: {what}, made for this model; all checksums match", folder.display())?;
    }
    Ok(())
}

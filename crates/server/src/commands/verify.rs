//! `kindred verify`: checks every checksum of a model folder, and of a head's.

use kindred::heads::Head;
use model_store::ModelStore;

use super::CommandError;
use crate::cli::VerifyArguments;

/// Checks every checksum of a model folder, and prints what the model is.
///
/// # Errors
/// If a file is not what it should be (the error names it), or if the result can't be written.
pub fn verify(arguments: &VerifyArguments) -> Result<(), CommandError> {
    let model = ModelStore::open(&arguments.model)?;
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
        let head = Head::open(folder, &model)?;
        let labels = head.description().labels.join(", ");
        say!(
            "{}: a classifier of {labels}, made for this model; all checksums match",
            folder.display()
        )?;
    }
    Ok(())
}

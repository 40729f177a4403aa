//! `kindred verify`: checks every checksum of a model folder, and of a head's.

use indicatif::HumanCount;
use kindred::heads::{AnyHead, about};

use super::progress::counted;
use super::{CommandError, model_of};
use crate::arguments::VerifyArguments;

/// Checks every checksum of a model folder, and prints what the model is.
pub(super) fn verify(arguments: &VerifyArguments) -> Result<(), CommandError> {
    let one = model_of(&arguments.model.arguments())?;
    let model = one.model;
    let folder = one.config.model.first().and_then(|source| source.folder.as_ref());
    let name = folder
        .map_or_else(|| "the built-in model".to_owned(), |folder| folder.display().to_string());
    // Steps only show progress. If standard output can't be written, printing the last line fails.
    model.verify(|step| drop(say!("checking {step}")))?;
    let (header, from) = (model.header(), &model.header().provenance);
    let attributes = match model.attributes() {
        Some(all) => format!(", {}", counted(all.columns().len() as u64, "attribute")),
        None => String::new(),
    };
    say!(
        "{name}: version {}, {} rows × {} dimensions, metric {}{}{attributes}, prepared from {} \
         by {} at {}; all checksums match",
        model.version(),
        HumanCount(model.rows() as u64),
        header.dim,
        header.metric.name(),
        if header.checksums.biases.is_some() { " with biases" } else { "" },
        from.source,
        from.prepared_by,
        from.prepared_at
    )?;
    if let Some(folder) = &arguments.head {
        let head = AnyHead::open(folder, &model)?;
        // Opening it checks everything but the folder of terms, if there is one.
        if let Some(terms) = head.terms_folder() {
            terms.verify(|step| drop(say!("checking {step} of the terms")))?;
        }
        let (what, missing) = (head.summary(), head.missing_checksum());
        let made_for = match about(folder)?.model {
            Some(_) => "made for this model",
            None => "served beside any model",
        };
        let (head, what) = (folder.display(), format!("{what}, {made_for}"));
        match missing {
            None => say!("{head}: {what}; all checksums match")?,
            Some(checksum) => say!(
                "{head}: {what}; the checksum of its weights matches, but its head.json has none of its \
                 own, as those of earlier versions: if labels and settings are right, add \
                 \"checksum\": \"{checksum}\" to it"
            )?,
        }
    }
    Ok(())
}

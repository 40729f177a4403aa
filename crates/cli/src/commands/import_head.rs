//! `kindred import-head`: heads that were trained in PyTorch.

use std::path::Path;

use kindred::heads::{
    ExpanderImportOptions, ImportOptions, Imported, Probabilities, import_expander,
    import_head as import, write_expander,
};

use super::beside::Verification;
use super::{CommandError, check_is_free, model_of, read_text, tokens};
use crate::arguments::ImportHeadArguments;

/// Makes a head of a state dict, writes its folder, and prints what was read.
pub(super) fn import_head(arguments: &ImportHeadArguments) -> Result<(), CommandError> {
    check_is_free(&arguments.out, arguments.replace)?;
    let weights = &arguments.weights;
    let state = std::fs::read(weights).map_err(|source| CommandError::Unreadable {
        path: weights.clone(),
        source,
        wanted: "a state dict in safetensors with --weights",
    })?;
    let vocabulary = arguments.vocabulary.as_deref();
    let vocabulary = vocabulary.map(|path| read_text(path, "a file of words, one per line"));
    let vocabulary = vocabulary.transpose()?;
    if arguments.expander {
        return expander(arguments, &state, vocabulary.as_deref());
    }
    let labels = match &arguments.labels_file {
        Some(path) => {
            let text = read_text(path, "a file of the classes' names, one per line")?;
            // An empty line names no class; at the end it is there by mistake.
            text.trim_end_matches(['\n', '\r']).lines().map(str::to_owned).collect()
        }
        None => arguments.labels.clone(),
    };
    let model = model_of(&arguments.model)?.model;
    let verification = Verification::start(&model)?;
    let options = ImportOptions {
        file: file_name(weights),
        labels,
        tokens: tokens(&model, arguments.tokens),
        probabilities: match arguments.sigmoid {
            true => Probabilities::Sigmoid,
            false => Probabilities::Softmax,
        },
        padding: arguments.padding.clone(),
        map: arguments.map.clone(),
        ignore: arguments.ignore.clone(),
    };
    let imported = import(&model, &state, vocabulary.as_deref(), &options)?;
    verification.finish(None)?;
    imported.parts.write(&arguments.out, arguments.replace)?;
    if let Some(padding) = &imported.padding {
        eprintln!(
            "{padding} was left out: texts have no padding here, so answers for short texts may differ from those of padded \
             batches"
        );
    }
    say!("{}: {}", arguments.out.display(), summary(&imported))
}

fn expander(
    arguments: &ImportHeadArguments,
    state: &[u8],
    vocabulary: Option<&str>,
) -> Result<(), CommandError> {
    let model = model_of(&arguments.model)?.model;
    let verification = Verification::start(&model)?;
    let options = ExpanderImportOptions {
        file: file_name(&arguments.weights),
        tokens: tokens(&model, arguments.tokens),
        log1p: !arguments.linear,
        map: arguments.map.clone(),
        ignore: arguments.ignore.clone(),
    };
    let made = import_expander(&model, state, vocabulary, &options)?;
    verification.finish(None)?;
    write_expander(&arguments.out, arguments.replace, &made.description, &made.weights, &model)?;
    say!("{}: {}", arguments.out.display(), made.summary())
}

/// A file's name without its folder, so that a head does not tell where it was made.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// What became of the tensors.
fn summary(imported: &Imported) -> String {
    let Imported { parts, convolutions, layers, .. } = imported;
    let shapes = parts.classifier.convolutions().iter().zip(convolutions);
    let shapes = shapes.map(|(one, name)| {
        format!(
            "{name} (width {}, {} channels, padding {})",
            one.width,
            one.channels(),
            one.padding
        )
    });
    let outputs = parts.classifier.layers().iter().zip(layers);
    let outputs = outputs.map(|(one, name)| format!("{name} ({} outputs)", one.bias.len()));
    let named: Vec<String> = shapes.chain(outputs).collect();
    let (tuned, own) = (parts.tuned.0.len(), parts.description.words.len());
    let unknown = if parts.unknown.is_some() { "a vector" } else { "none" };
    format!(
        "{}; vectors for {tuned} words of the model and {own} others; for unknown words: {unknown}",
        named.join(", ")
    )
}

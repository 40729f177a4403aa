//! `kindred import-head`: heads that were trained in PyTorch or by fastText.

use std::path::Path;

use indicatif::HumanCount;
use kindred::heads::{
    ExpanderImportOptions, FastTextHead, ImportOptions, Imported, Probabilities, import_expander,
    import_head as import, write_expander,
};

use super::beside::Verification;
use super::download::Downloaded;
use super::signals::{Interrupt, REMOVED};
use super::{CommandError, check_is_free, model_of, read_text, tokens};
use crate::arguments::ImportHeadArguments;

/// Makes a head of a file, writes its folder, and prints what was read.
pub(super) fn import_head(arguments: &ImportHeadArguments) -> Result<(), CommandError> {
    let ImportHeadArguments { file, weights, out, replace, sha256, .. } = arguments;
    check_is_free(out, *replace)?;
    let file = file.as_ref().or(weights.as_ref()).expect("clap asks for one");
    let interrupt = Interrupt::watch(REMOVED);
    let downloaded = Downloaded::of_input(file, out, sha256.as_deref(), &interrupt)?;
    import_file(arguments, downloaded.as_ref().map_or(file, |downloaded| &downloaded.path))?;
    downloaded.map_or(Ok(()), Downloaded::remove)
}

fn import_file(arguments: &ImportHeadArguments, weights: &Path) -> Result<(), CommandError> {
    if FastTextHead::is_file(weights) {
        return of_fasttext(arguments, weights);
    }
    let ImportHeadArguments { labels, labels_file, expander: is_expander, .. } = arguments;
    if labels.is_empty() && labels_file.is_none() && !is_expander {
        return Err(CommandError::Usage(format!(
            "{} is no classifier of fastText, so the classes need names: give --labels NAME,NAME or \
             --labels-file FILE; or, for a SPLADE head, --expander",
            weights.display()
        )));
    }
    let state = std::fs::read(weights).map_err(|source| CommandError::Unreadable {
        path: weights.to_owned(),
        source,
        wanted: "a classifier of fastText, or a state dict in safetensors",
    })?;
    let vocabulary = arguments.vocabulary.as_deref();
    let vocabulary = vocabulary.map(|path| read_text(path, "a file of words, one per line"));
    let vocabulary = vocabulary.transpose()?;
    if arguments.expander {
        return expander(arguments, weights, &state, vocabulary.as_deref());
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

/// Makes a head of a file of fastText, which has all that it needs.
fn of_fasttext(arguments: &ImportHeadArguments, file: &Path) -> Result<(), CommandError> {
    let ImportHeadArguments { labels, labels_file, vocabulary, map, ignore, .. } = arguments;
    let given = [
        ("--labels", !labels.is_empty()),
        ("--labels-file", labels_file.is_some()),
        ("--sigmoid", arguments.sigmoid),
        ("--expander", arguments.expander),
        ("--vocabulary", vocabulary.is_some()),
        ("--map", !map.is_empty()),
        ("--ignore", !ignore.is_empty()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(CommandError::Usage(format!(
            "{option} is for models of PyTorch: {} is a classifier of fastText, which has its labels \
             and words in it; leave the option out",
            file.display()
        )));
    }
    let head = FastTextHead::import(file)?;
    head.write(&arguments.out, arguments.replace)?;
    let (training, classifier) = head.training();
    let (labels, words) = (head.description().labels.len() as u64, u64::from(head.words()));
    let subwords = match training.lengths().has_any() {
        true => format!("n-grams of {} to {} characters", training.minn, training.maxn),
        false => "no n-grams of characters".to_owned(),
    };
    let ngrams = match classifier.word_ngrams {
        ..2 => "none of words".to_owned(),
        longest => format!("those of up to {longest} words"),
    };
    say!(
        "{}: {} labels, {} words × {} dimensions, {subwords}, {ngrams}, loss {}",
        arguments.out.display(),
        HumanCount(labels),
        HumanCount(words),
        training.dim,
        classifier.loss.name(),
    )
}

fn expander(
    arguments: &ImportHeadArguments,
    weights: &Path,
    state: &[u8],
    vocabulary: Option<&str>,
) -> Result<(), CommandError> {
    let model = model_of(&arguments.model)?.model;
    let verification = Verification::start(&model)?;
    let options = ExpanderImportOptions {
        file: file_name(weights),
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

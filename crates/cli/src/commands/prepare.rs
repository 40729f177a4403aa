//! `kindred prepare`: converts a vectors file into a model folder, with progress and summary.

use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount};
use kindred::ModelStore;
use kindred::attributes::AttributeDescription;
use kindred::contract::Metric;
use kindred::prepare::{
    AttributesFile, DocumentEncoder, DocumentFields, DocumentVectors, Frequencies, Input,
    PrepareOptions, Progress, Summary, WantedFields, document_attributes, prepare_documents,
    prepare_folder, with_kept_text,
};

use super::download::Downloaded;
use super::progress::{Display, Step, counted};
use super::signals::{Interrupt, REMOVED};
use super::{CommandError, typed};
use crate::arguments::PrepareArguments;

/// Converts a vectors file into a model folder, and shows the progress.
pub(super) fn prepare(arguments: &PrepareArguments) -> Result<(), CommandError> {
    // A folder appears complete or not at all, so one that is there needs no work.
    if arguments.if_missing && arguments.out.exists() && !is_empty(&arguments.out) {
        let model = ModelStore::open(&arguments.out)?;
        let (rows, dim) = (HumanCount(model.rows() as u64), model.dim());
        return say!("{}: kept: {rows} rows × {dim} dimensions", arguments.out.display());
    }
    let (from_stdin, interrupt) = (arguments.input.as_os_str() == "-", Interrupt::watch(REMOVED));
    let PrepareArguments { input, out, sha256, .. } = arguments;
    let downloaded = Downloaded::of_input(input, out, sha256.as_deref(), &interrupt)?;
    let file = downloaded.as_ref().map_or(&arguments.input, |downloaded| &downloaded.path);
    let options = PrepareOptions {
        format: arguments.format,
        words: arguments.words.clone(),
        metric: arguments.metric,
        biases: arguments.bias.clone(),
        attributes: attributes_of(arguments, file)?,
        text_weights: text_weights_of(arguments),
        tensor: arguments.tensor.clone(),
        member: arguments.member.clone(),
        dim: arguments.dim,
        limit: arguments.limit,
        encoding: arguments.encoding,
        separator: arguments.separator,
        allow_numeric_words: arguments.allow_numeric_words,
        skip_bad_rows: arguments.skip_bad_rows,
        replace: arguments.replace,
        discard_changes: arguments.discard_changes,
    };
    let encoder = arguments.encoder.as_deref().map(DocumentEncoder::open).transpose()?;
    let mut display = Display::new();
    let started = Instant::now();
    let input = if from_stdin { Input::Stdin } else { Input::File(file) };
    let mut on_progress = |progress: Progress| {
        display.show(&Step {
            things: "rows",
            count: progress.rows as u64,
            done: progress.bytes_read,
            length: progress.bytes_total,
            ..Step::default()
        });
        interrupt.go_on()
    };
    let documents = match (&encoder, &arguments.vectors) {
        (Some(encoder), _) => Some(DocumentVectors::Encoded(encoder)),
        (None, Some(path)) => Some(DocumentVectors::Array(path)),
        (None, None) => None,
    };
    let result = match documents {
        None => prepare_folder(input, &arguments.out, &options, &mut on_progress),
        Some(_) if from_stdin => {
            let message = "texts are read from a file, not from standard input: save them first";
            return Err(CommandError::Usage(message.to_owned()));
        }
        Some(vectors) => {
            let (text, key) = (arguments.text.clone(), arguments.key.clone());
            let fields = DocumentFields { text, key, parquet: jobs::attributes::PARQUET };
            let out = &arguments.out;
            prepare_documents(file, &fields, vectors, out, &options, &mut on_progress)
        }
    };
    display.finish();
    let summary = result?;
    if let Some(downloaded) = downloaded {
        downloaded.remove()?;
    }
    print_summary(arguments, &summary, started.elapsed())
}

/// The file of attributes, if there is one; `file` is that of the input, wherever it came from.
fn attributes_of(
    arguments: &PrepareArguments,
    file: &Path,
) -> Result<Option<AttributesFile>, CommandError> {
    let PrepareArguments { input, encoder, vectors, text, keep_text, key, attributes, .. } =
        arguments;
    let attributes = attributes.as_ref().map(|path| if path == input { file } else { path });
    let file = match encoder.as_ref().or(vectors.as_ref()) {
        Some(_) => document_attributes(file, attributes, text, *keep_text),
        None if key.is_some() && attributes.is_none() => {
            Err("--key needs --attributes, --encoder or --vectors: it names a field of their file"
                .to_owned())
        }
        None => Ok(attributes.map(|path| (path, WantedFields::All))),
    };
    Ok(file.map_err(CommandError::Usage)?.map(|(path, fields)| AttributesFile {
        path: path.to_owned(),
        key: key.clone(),
        types: with_kept_text(arguments.types.clone(), text, *keep_text),
        fields,
        parquet: jobs::attributes::PARQUET,
    }))
}

/// The source of the counts of words, if words of texts get weights.
fn text_weights_of(arguments: &PrepareArguments) -> Option<Frequencies> {
    arguments.text_weights.as_ref()?;
    Some(arguments.counts.clone().map_or(Frequencies::ByRank, Frequencies::Counts))
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// How a model's size goes on if it is not a usual one.
pub(super) fn under(metric: Metric) -> &'static str {
    match metric {
        Metric::Cosine => "",
        Metric::Dot => " under the metric dot",
    }
}

fn print_summary(
    arguments: &PrepareArguments,
    summary: &Summary,
    took: Duration,
) -> Result<(), CommandError> {
    let seconds = took.as_secs_f64();
    say!(
        "{}: {} rows × {} dimensions{} from {} of {} in {seconds:.1} s",
        arguments.out.display(),
        HumanCount(summary.rows as u64),
        summary.dim,
        under(arguments.metric),
        HumanBytes(summary.provenance.source_bytes),
        summary.provenance.source_format,
    )?;
    if summary.resumed > 0 {
        say!("{} were encoded before", counted(summary.resumed, "document"))?;
    }
    say!(
        "skipped {} and {}",
        counted(summary.provenance.bad_rows_skipped, "invalid row"),
        counted(summary.provenance.duplicate_words_dropped, "repeated word")
    )?;
    if let Some(first) = &summary.first_bad_row {
        say!("the first invalid row is {first}")?;
    }
    for AttributeDescription { name, kind, distinct, missing } in &summary.attributes {
        let distinct = counted(*distinct as u64, "different value");
        let missing = HumanCount(*missing as u64);
        say!("attribute {name}: {kind}, {distinct}, {missing} missing")?;
    }
    if let Some(ngrams) = summary.ngrams {
        let ngrams = HumanCount(ngrams.into());
        say!("{ngrams} vectors of n-grams: words that are no rows have vectors, too")?;
    }
    for warning in &summary.warnings {
        eprintln!("warning: {warning}");
    }
    say!("to serve it: kindred serve --model {}", typed(&arguments.out))
}

//! From a vectors file to a model folder, and what such a folder holds.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use contract::Metric;
use kindred::attributes::{AttributeDescription, AttributeType};
use kindred::prepare::{
    AttributesFile, DocumentEncoder, DocumentFields, DocumentVectors, Frequencies, Input,
    PrepareOptions, Separator, TextEncoding, VectorsFormat, WantedFields, document_attributes,
    prepare_documents, prepare_folder, with_kept_text,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::process::Process;
use crate::waiting::Signals;

/// The metric of this name.
pub(crate) fn metric(name: &str) -> PyResult<Metric> {
    let found = Metric::ALL.into_iter().find(|metric| metric.name() == name);
    found.ok_or_else(|| errors::invalid("metric", "`cosine` or `dot`"))
}

/// The format of this name.
fn format(name: &str) -> PyResult<VectorsFormat> {
    let found = VectorsFormat::ALL.into_iter().find(|format| format.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = VectorsFormat::ALL.iter().map(|format| format.name()).collect();
        errors::invalid("format", &names.join(", "))
    })
}

/// The separator of this name.
fn separator(name: &str) -> PyResult<Separator> {
    Separator::named(name).ok_or_else(|| {
        errors::invalid("separator", &Separator::ALL.map(Separator::name).join(", "))
    })
}

/// The encoding of this name.
fn encoding(name: &str) -> PyResult<TextEncoding> {
    name.parse().map_err(|_| {
        errors::invalid("encoding", "a name of the WHATWG's Encoding Standard, such as `latin1`")
    })
}

/// The source of the counts of words, if words of texts get weights of this name.
fn text_weights(name: Option<&str>, counts: Option<PathBuf>) -> PyResult<Option<Frequencies>> {
    match (name, counts) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(errors::invalid("counts", "left out, or beside `text_weights`")),
        (Some("sif"), None) => Ok(Some(Frequencies::ByRank)),
        (Some("sif"), Some(path)) => Ok(Some(Frequencies::Counts(path))),
        (Some(_), _) => Err(errors::invalid("text_weights", "`sif`")),
    }
}

/// The types of attributes by these names.
pub(crate) fn types(names: Vec<(String, String)>) -> PyResult<Vec<(String, AttributeType)>> {
    let known = AttributeType::ALL.map(AttributeType::name).join(", ");
    let of_name = |(attribute, name): (String, String)| {
        let kind = name.parse().map_err(|_| errors::invalid("types", &known))?;
        Ok((attribute, kind))
    };
    names.into_iter().map(of_name).collect()
}

/// Texts that become rows: the encoder's folder or the file of their vectors, the field with the text,
/// and whether texts are kept.
type Texts = (Option<PathBuf>, Option<PathBuf>, String, bool);

/// The file of attributes, if there is one.
fn attributes_file(
    source: &Path,
    path: Option<&Path>,
    texts: Option<&Texts>,
    key: Option<&str>,
    types: Vec<(String, String)>,
) -> PyResult<Option<AttributesFile>> {
    let mut types = self::types(types)?;
    if let Some((_, _, text, keep_text)) = texts {
        types = with_kept_text(types, text, *keep_text);
    }
    let file = match texts {
        Some((_, _, text, keep_text)) => document_attributes(source, path, text, *keep_text)
            .map_err(|reason| errors::invalid("attributes", &reason))?,
        None => path.map(|path| (path, WantedFields::All)),
    };
    let is_key_needed = texts.is_some() || file.is_some();
    match file {
        Some((path, fields)) => {
            let (path, key) = (path.to_owned(), key.map(str::to_owned));
            let parquet = jobs::attributes::PARQUET;
            Ok(Some(AttributesFile { path, key, types, fields, parquet }))
        }
        None if (key.is_some() && !is_key_needed) || !types.is_empty() => {
            Err(errors::invalid("attributes", "a file, if `key` or `types` is given"))
        }
        None => Ok(None),
    }
}

/// Prepares a model folder. Returns what was read.
#[pyfunction]
#[pyo3(signature = (source, out, *, replace, format, words, metric, biases, attributes, key, types, texts, text_weights, counts, tensor, member, dim, limit, encoding, separator, allow_numeric_words, skip_bad_rows, progress))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn prepare<'py>(
    py: Python<'py>,
    source: PathBuf,
    out: PathBuf,
    replace: bool,
    format: Option<&str>,
    words: Option<PathBuf>,
    metric: &str,
    biases: Option<PathBuf>,
    attributes: Option<PathBuf>,
    key: Option<String>,
    types: Vec<(String, String)>,
    texts: Option<Texts>,
    text_weights: Option<&str>,
    counts: Option<PathBuf>,
    tensor: Option<String>,
    member: Option<String>,
    dim: Option<NonZeroUsize>,
    limit: Option<NonZeroUsize>,
    encoding: Option<&str>,
    separator: &str,
    allow_numeric_words: bool,
    skip_bad_rows: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    Process::that_starts_threads()?;
    match &texts {
        Some((Some(_), Some(_), ..)) => {
            return Err(errors::invalid("vectors", "left out, or `encoder` is"));
        }
        Some(_) if text_weights.is_some() => {
            return Err(errors::invalid(
                "text_weights",
                "left out: texts have no weights of words",
            ));
        }
        _ => {}
    }
    let format = format.map(self::format).transpose()?;
    let metric = self::metric(metric)?;
    let encoding = encoding.map(self::encoding).transpose()?;
    let separator = self::separator(separator)?;
    let attributes =
        attributes_file(&source, attributes.as_deref(), texts.as_ref(), key.as_deref(), types)?;
    let options = PrepareOptions {
        format,
        words,
        metric,
        biases,
        attributes,
        text_weights: self::text_weights(text_weights, counts)?,
        tensor,
        member,
        dim,
        limit,
        encoding,
        separator,
        allow_numeric_words,
        skip_bad_rows,
        replace,
        discard_changes: false,
    };
    let mut signals = Signals::default();
    let mut on_progress = |now: kindred::prepare::Progress| {
        signals.go_on_telling(progress.as_ref(), (now.bytes_read, now.bytes_total))
    };
    let done = py.detach(|| match &texts {
        None => prepare_folder(Input::File(&source), &out, &options, &mut on_progress),
        Some((encoder, vectors, text, _)) => {
            let (text, parquet) = (text.clone(), jobs::attributes::PARQUET);
            let fields = DocumentFields { text, key, parquet };
            let encoder = encoder.as_deref().map(DocumentEncoder::open).transpose()?;
            let vectors = match (&encoder, vectors) {
                (Some(encoder), _) => DocumentVectors::Encoded(encoder),
                (None, Some(path)) => DocumentVectors::Array(path),
                (None, None) => unreachable!("texts have one of them"),
            };
            prepare_documents(&source, &fields, vectors, &out, &options, &mut on_progress)
        }
    });
    let summary = match done {
        Ok(summary) => summary,
        Err(kindred::ModelError::Cancelled | kindred::ModelError::CancelledHalf { .. }) => {
            return Err(signals.raised());
        }
        Err(error) => return Err(errors::model(error)),
    };
    let dict = PyDict::new(py);
    dict.set_item("format", summary.provenance.source_format)?;
    dict.set_item("rows", summary.rows)?;
    dict.set_item("dim", summary.dim)?;
    dict.set_item("bad_rows_skipped", summary.provenance.bad_rows_skipped)?;
    dict.set_item("first_bad_row", summary.first_bad_row)?;
    dict.set_item("duplicate_words_dropped", summary.provenance.duplicate_words_dropped)?;
    let attributes: PyResult<Vec<_>> =
        summary.attributes.iter().map(|attribute| described(py, attribute)).collect();
    dict.set_item("attributes", attributes?)?;
    dict.set_item("warnings", summary.warnings)?;
    Ok(dict)
}

/// An attribute as `/model` tells it.
fn described<'py>(
    py: Python<'py>,
    attribute: &AttributeDescription,
) -> PyResult<Bound<'py, PyDict>> {
    let AttributeDescription { name, kind, distinct, missing } = attribute;
    let dict = PyDict::new(py);
    dict.set_item("name", name)?;
    dict.set_item("type", kind.name())?;
    dict.set_item("distinct", distinct)?;
    dict.set_item("missing", missing)?;
    Ok(dict)
}

/// The version, rows and components of a model folder, or of the built-in model: without an engine,
/// so it is cheap for any size.
#[pyfunction]
#[pyo3(signature = (folder=None))]
pub(crate) fn content(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<(String, usize, usize)> {
    let model = py.detach(|| match folder {
        Some(folder) => kindred::Model::open(folder),
        None => kindred::Model::demo(),
    });
    let model = model.map_err(errors::model)?;
    Ok((model.version().to_owned(), model.rows(), model.dim()))
}

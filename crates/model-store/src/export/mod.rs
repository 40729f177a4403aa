//! Exports a model folder to files that other programs read. The output reads back bit for bit.

mod attributes;

use std::io::{self, Write};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

pub use crate::whole::check_free;

use attributes::Writer;

use crate::format::MODEL_FILES;
use crate::prepare::{MAX_WORD_BYTES, VectorsFormat, ends_in_a_number};
use crate::whole::NewFile;
use crate::{ModelError, ModelStore, npy};
use contract::Row;

impl VectorsFormat {
    /// The formats that models can be written in.
    pub const WRITTEN: [Self; 5] =
        [Self::Glove, Self::Word2vec, Self::Word2vecBinary, Self::Npy, Self::Safetensors];

    /// Whether it can't hold words.
    pub fn needs_words_file(self) -> bool {
        matches!(self, Self::Npy | Self::Safetensors)
    }

    /// Why a word would not read back, and which format can hold it.
    fn refuses(self, row: Row, word: &str) -> Option<&'static str> {
        match self {
            Self::GloveNorm => Some("norms are not written; use glove"),
            Self::Glove | Self::Word2vec
                if ends_in_a_number(word)
                    || word.starts_with(' ')
                    || word.ends_with(' ')
                    || word.contains('\t') =>
            {
                Some(
                    "its spaces can't be told apart from those between numbers; use npy or safetensors",
                )
            }
            Self::Glove
                if row == Row(0) && (word.contains(' ') || word.starts_with('\u{feff}')) =>
            {
                Some(
                    "the first line would not reveal the dimension; use word2vec, npy or safetensors",
                )
            }
            Self::Word2vecBinary if word.contains(|c: char| c == ' ' || c.is_ascii_control()) => {
                Some(
                    "this format allows no spaces or control characters in a word; use word2vec, npy or \
                     safetensors",
                )
            }
            Self::Word2vecBinary | Self::Npy | Self::Safetensors if word.len() > MAX_WORD_BYTES => {
                Some("it is longer than 4096 bytes; use glove or word2vec")
            }
            Self::Npy | Self::Safetensors
                if word.ends_with('\r') || row == Row(0) && word.starts_with('\u{feff}') =>
            {
                Some("it would not read back from a text line; use word2vec")
            }
            _ => None,
        }
    }
}

/// What to write, and where.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The format, one of [`VectorsFormat::WRITTEN`].
    pub format: VectorsFormat,
    /// The file to write; `None` is standard output.
    pub out: Option<PathBuf>,
    /// The file for the words, for formats that can't hold them.
    pub words: Option<PathBuf>,
    /// The file for the biases: a NumPy array, float32 `[rows]`.
    pub biases: Option<PathBuf>,
    /// The file for the attributes, a line for each row: CSV if its name ends in `.csv`, JSON lines
    /// if in `.jsonl` or `.ndjson`.
    pub attributes: Option<PathBuf>,
    /// Replace existing files.
    pub replace: bool,
}

/// Rows converted together, on all cores.
const ROWS_PER_TASK: usize = 256;
const TASKS_PER_WRITE: usize = 64;

/// Writes a model in another format; each file complete or not at all. Calls `on_progress` with the
/// number of rows written from time to time; a break cancels the work.
///
/// # Errors
/// If a word would not read back, a file can't be written or exists, or biases or attributes are
/// asked for that the model lacks.
pub fn export(
    model: &ModelStore,
    options: &ExportOptions,
    on_progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<(), ModelError> {
    let ExportOptions { format, out, words, biases, attributes, replace } = options;
    check_names(model, &[out, words, biases, attributes])?;
    check_words(model, *format)?;
    // All are checked before any is written.
    let new = |path: &Option<PathBuf>| {
        path.as_deref().map(|path| NewFile::beside(path, *replace)).transpose()
    };
    let biases_of_model = match biases {
        Some(_) => npy_of_biases(model)?,
        None => Vec::new(),
    };
    let writer = attributes.as_deref().map(|path| Writer::new(model, path)).transpose()?;
    let (vectors_file, words_file, biases_file) = (new(out)?, new(words)?, new(biases)?);
    let mut attributes_file = new(attributes)?;
    let can_not_write =
        |e| ModelError::io("write", out.as_deref().unwrap_or(Path::new("standard output")))(e);
    let finished = match vectors_file {
        Some(mut file) => {
            let done =
                write_vectors(model, *format, &mut file, on_progress).map_err(can_not_write)?;
            done.is_continue().then_some(Some(file))
        }
        None => {
            let mut stdout = io::stdout().lock();
            let done = write_vectors(model, *format, &mut stdout, on_progress)
                .and_then(|done| stdout.flush().map(|()| done))
                .map_err(can_not_write)?;
            done.is_continue().then_some(None)
        }
    };
    let Some(vectors_file) = finished else { return Err(ModelError::Cancelled) };
    let filled = |file: Option<NewFile>, path: &Option<PathBuf>, content: &[u8]| {
        let Some((mut file, path)) = file.zip(path.as_deref()) else { return Ok(None) };
        file.write_all(content).map_err(ModelError::io("write", path))?;
        Ok(Some(file))
    };
    let words_file = filled(words_file, words, model.words().text())?;
    let biases_file = filled(biases_file, biases, &biases_of_model)?;
    if let (Some(file), Some(writer), Some(path)) = (&mut attributes_file, writer, attributes) {
        writer.write(file).map_err(ModelError::io("write", path))?;
    }
    // All are complete before any is renamed.
    let files = [vectors_file, words_file, biases_file, attributes_file];
    files.into_iter().flatten().try_for_each(NewFile::complete)
}

/// Checks that each file has a name of its own, and is none of the model's.
fn check_names(model: &ModelStore, names: &[&Option<PathBuf>]) -> Result<(), ModelError> {
    let names: Vec<&PathBuf> = names.iter().filter_map(|name| name.as_ref()).collect();
    let of_attributes = model.attributes().into_iter().flat_map(|attributes| attributes.paths());
    let own: Vec<PathBuf> = match model.folder() {
        Some(folder) => MODEL_FILES
            .map(|file| folder.join(file))
            .into_iter()
            .chain(of_attributes.map(Path::to_owned))
            .collect(),
        None => Vec::new(),
    };
    for (i, name) in names.iter().enumerate() {
        if own.iter().any(|own| same_file(own, name)) {
            let reason = "is a file of the model itself; choose another name";
            return Err(ModelError::OutputInTheWay { path: (*name).clone(), reason });
        }
        if names[..i].iter().any(|other| same_file(other, name)) {
            let reason = "is named for two outputs; give each its own name";
            return Err(ModelError::OutputInTheWay { path: (*name).clone(), reason });
        }
    }
    Ok(())
}

/// Whether two names refer to the same file, existing or not.
fn same_file(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    whole(a).is_some_and(|a| Some(a) == whole(b))
}

fn check_words(model: &ModelStore, format: VectorsFormat) -> Result<(), ModelError> {
    for row in (0..model.rows() as u32).map(Row) {
        let word = model.words().word(row);
        if let Some(reason) = format.refuses(row, word) {
            let reason = format!(
                "the word {word:?} of row {row} can't be written as {}: {reason}",
                format.name()
            );
            return Err(ModelError::Unwritable { model: model.name().to_owned(), reason });
        }
    }
    Ok(())
}

fn write_vectors(
    model: &ModelStore,
    format: VectorsFormat,
    out: &mut dyn Write,
    on_progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    out.write_all(&head(model, format))?;
    let (rows, table, words) = (model.rows(), model.table(), model.words());
    let some_rows = |range: Range<usize>| -> Vec<u8> {
        let mut bytes = Vec::new();
        for row in range.map(|row| Row(row as u32)) {
            match format {
                VectorsFormat::Glove | VectorsFormat::GloveNorm | VectorsFormat::Word2vec => {
                    write_line(words.bytes(row), table.row(row), &mut bytes);
                }
                VectorsFormat::Word2vecBinary => {
                    bytes.extend_from_slice(words.bytes(row));
                    bytes.push(b' ');
                    bytes.extend_from_slice(bytemuck::cast_slice(table.row(row)));
                    bytes.push(b'\n');
                }
                VectorsFormat::Npy | VectorsFormat::Safetensors => {
                    bytes.extend_from_slice(bytemuck::cast_slice(table.row(row)));
                }
            }
        }
        bytes
    };
    for first in (0..rows).step_by(ROWS_PER_TASK * TASKS_PER_WRITE) {
        let end = rows.min(first + ROWS_PER_TASK * TASKS_PER_WRITE);
        let tasks: Vec<usize> = (first..end).step_by(ROWS_PER_TASK).collect();
        let parts: Vec<Vec<u8>> = tasks
            .into_par_iter()
            .map(|task| some_rows(task..end.min(task + ROWS_PER_TASK)))
            .collect();
        for part in parts {
            out.write_all(&part)?;
        }
        if on_progress(end).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The bytes before the first row.
fn head(model: &ModelStore, format: VectorsFormat) -> Vec<u8> {
    let (rows, dim) = (model.rows(), model.dim());
    match format {
        VectorsFormat::Glove | VectorsFormat::GloveNorm => Vec::new(),
        VectorsFormat::Word2vec | VectorsFormat::Word2vecBinary => format!("{rows} {dim}\n").into(),
        VectorsFormat::Npy => npy::head("'<f4'", &[rows as u64, dim as u64]),
        VectorsFormat::Safetensors => safetensors_head(rows, dim),
    }
}

/// The biases as a NumPy file; an error if the model has none.
fn npy_of_biases(model: &ModelStore) -> Result<Vec<u8>, ModelError> {
    let Some(biases) = model.table().biases() else {
        let model = model.name().to_owned();
        return Err(ModelError::Unwritable {
            model,
            reason: "it has no biases; omit --bias".into(),
        });
    };
    let mut file = npy::head("'<f4'", &[biases.len() as u64]);
    file.extend_from_slice(bytemuck::cast_slice(biases));
    Ok(file)
}

fn safetensors_head(rows: usize, dim: usize) -> Vec<u8> {
    let vectors = TensorInfo {
        dtype: Dtype::F32,
        shape: vec![rows, dim],
        data_offsets: (0, rows * dim * size_of::<f32>()),
    };
    let metadata =
        Metadata::new(None, vec![("vectors".into(), vectors)]).expect("one tensor, whole");
    let mut json = serde_json::to_vec(&metadata).expect("texts and numbers become JSON");
    json.resize(json.len().next_multiple_of(8), b' ');
    [&(json.len() as u64).to_le_bytes()[..], &json].concat()
}

/// One line of text: the word, then each component in the shortest decimals that read back as the
/// same float32.
fn write_line(word: &[u8], components: &[f32], out: &mut Vec<u8>) {
    let mut buffer = zmij::Buffer::new();
    out.extend_from_slice(word);
    for &component in components {
        out.push(b' ');
        out.extend_from_slice(buffer.format_finite(component).as_bytes());
    }
    out.push(b'\n');
}

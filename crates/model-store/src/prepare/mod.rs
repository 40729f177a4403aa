//! Converts a vectors file into a model, complete or not at all.
//!
//! The steps: `input` opens, counts and hashes the file; `unpack` decompresses gzip, bzip2, zstd,
//! xz or zip; `kind` names files that are something else; `encoding` decodes text that is not
//! UTF-8; `formats` detects the format and how to parse it; `pipeline` parses on all cores;
//! `writer` writes rows into the model's files; `beside` reads the files of attributes, biases and
//! counts; `finished` and `folder` move the finished folder into place. `made` does the same with
//! rows that are computed, and `documents` with records of texts.
//!
//! ```
//! use model_store::ModelStore;
//! use model_store::prepare::{Input, PrepareOptions, prepare_in_memory};
//!
//! let input = Input::Bytes { name: "pond.txt", bytes: b"frog 1 0\ntoad 0.5 1\n" };
//! let files = prepare_in_memory(input, &PrepareOptions::default())?;
//! let model = ModelStore::from_memory("pond", &files)?;
//! assert_eq!((model.rows(), model.dim()), (2, 2));
//!
//! // Errors name invalid rows.
//! let input = Input::Bytes { name: "pond.txt", bytes: b"frog 1 0\ntoad 0.5 x\n" };
//! let error = prepare_in_memory(input, &PrepareOptions::default()).unwrap_err();
//! assert!(error.to_string().contains("pond.txt, line 2"), "{error}");
//! # Ok::<(), model_store::ModelError>(())
//! ```
//!
//! [`prepare_folder`] does the same from a file to a folder.

mod array;
mod attributes;
mod beside;
mod biases;
mod blank_end;
mod document_vectors;
mod documents;
mod empty;
mod encoding;
mod finished;
mod folder;
mod formats;
mod input;
mod kind;
mod lines;
mod made;
mod members;
mod npy_rows;
mod options;
mod partial;
mod pipeline;
mod plain_text;
mod rows;
mod separator;
mod signature;
mod text_weights;
mod unpack;
mod word_signs;
mod words_file;
mod writer;
mod zstd;

use std::io::{self, Cursor, Seek, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub use array::{Array, read_array};
pub use attributes::json_lines as json_fields;
pub use attributes::{Field, TableReader, TakeRow};
use beside::Beside;
pub use document_vectors::{DocumentVectors, TextVectors};
pub use documents::{DocumentFields, prepare_documents};
pub use empty::prepare_empty;
pub use encoding::{NotEncoded, TextEncoding};
use finished::Finished;
pub(crate) use folder::ModelFolder;
pub use formats::VectorsFormat;
use formats::{Expected, MAX_RECORD_BYTES, Plan, RecordUnit, encoding_of_text, plan};
pub(crate) use formats::{MAX_WORD_BYTES, ends_in_a_number};
pub use kind::FileKind;
pub use made::{MadeRows, prepare_made};
pub use options::{
    AttributesFile, Frequencies, Input, PrepareOptions, Progress, Summary, WantedFields,
};
pub use plain_text::{not_plain_reason, other_kind_reason, utf16_cure, utf16_reason};
use rows::Rows;
pub use separator::Separator;
pub use signature::is_safetensors;
pub use unpack::Unpacked;
use word_signs::WordSigns;
use words_file::WordList;
pub use writer::ModelWriter;

use crate::ModelError;
use crate::attributes::AttributeFiles;

/// Maximum number of components per row.
pub const MAX_DIM: usize = 65_536;

/// The files of a model, in memory.
#[derive(Debug)]
pub struct ModelFiles {
    /// `vectors.safetensors`
    pub vectors: Vec<u8>,
    /// `words.txt`
    pub words: Vec<u8>,
    /// `words.fst`
    pub index: Vec<u8>,
    /// The folder `attributes`, if the rows have any.
    pub attributes: Option<AttributeFiles>,
}

/// Called by [`prepare_folder`] several times a second; a break cancels the work.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Reads vectors and writes a model folder. If it fails, nothing is left behind and `out` is
/// unchanged.
///
/// # Errors
/// If the input can't be read, a row is invalid and must not be skipped, or the output can't be
/// written.
pub fn prepare_folder(
    input: Input<'_>,
    out: &Path,
    options: &PrepareOptions,
    on_progress: OnProgress<'_>,
) -> Result<Summary, ModelError> {
    // Check the output before any work, but create folders only after the input is open.
    ModelFolder::check(out, options.replaced())?;
    let can_not_write = |e| ModelError::io("write the model to", out)(e);
    let mut folder = None;
    let create = || folder.insert(ModelFolder::beside(out, options.replaced())?).create_vectors();
    let finished = read_rows(input, create, options, on_progress, can_not_write)?;
    let folder = folder.expect("it was made for the rows");
    finished.complete(folder, None, can_not_write, &mut || true)
}

/// Reads vectors and creates a model in memory, with the same code as for folders.
///
/// # Errors
/// As [`prepare_folder`]; and if words are to have weights, which only folders have.
pub fn prepare_in_memory(
    input: Input<'_>,
    options: &PrepareOptions,
) -> Result<ModelFiles, ModelError> {
    let no_memory = |e| ModelError::io("keep in memory", Path::new("the model"))(e);
    let on_progress = &mut |_| ControlFlow::Continue(());
    let nowhere = || Ok(Cursor::new(Vec::new()));
    if options.text_weights.is_some() {
        let (path, reason) = (PathBuf::from("the model"), "weights of words are kept in a folder");
        return Err(ModelError::BadInput { path, reason: reason.into() });
    }
    let finished = read_rows(input, nowhere, options, on_progress, no_memory)?;
    let Finished { writer, summary, attributes, .. } = finished;
    let (vectors, words, index) = writer.finish(summary.provenance).map_err(no_memory)?;
    Ok(ModelFiles { vectors: vectors.into_inner(), words, index, attributes })
}

/// Lets `f` read any file, decompressed as [`prepare_folder`] does it.
///
/// # Errors
/// If the file can't be opened.
pub fn read_unpacked<T>(
    input: Input<'_>,
    f: impl FnOnce(&mut Unpacked<'_>) -> T,
) -> Result<T, ModelError> {
    unpack::read(input, None, |unpacked| Ok(f(unpacked)))
}

/// The core: reads a vectors file and delivers rows.
fn read_rows<W: Write + Seek>(
    input: Input<'_>,
    out: impl FnOnce() -> Result<W, ModelError>,
    options: &PrepareOptions,
    on_progress: OnProgress<'_>,
    can_not_write: impl Fn(io::Error) -> ModelError + Copy,
) -> Result<Finished<W>, ModelError> {
    let words = options.words.as_deref().map(|path| WordList::read(path, options)).transpose()?;
    let beside = Beside::read(options)?;
    let of_words = words.as_ref().and_then(WordList::warning);
    unpack::read(input, options.member.as_deref(), |unpacked| {
        let so_far = unpacked.progress().clone();
        let (head, mut plan) = begin(unpacked, options, words)?;
        let expected = plan.expected.take();
        let writer = ModelWriter::new(out()?, plan.dim, options.metric).map_err(can_not_write)?;
        let is_text = matches!(plan.records, RecordUnit::Line { .. });
        let has_words = is_text && options.words.is_none();
        let format = (std::mem::take(&mut plan.description), plan.records);
        let mut rows = Rows::new(writer, beside, options, so_far, format);
        rows.warnings.splice(0..0, of_words);
        rows.column = plan.first_column.take();
        rows.signs = has_words.then(WordSigns::new);
        let limit = options.limit.map(|limit| limit.get() as u64);
        let (records, of_end) = pipeline::run(unpacked, head, plan, limit, |position, parsed| {
            rows.take(position, parsed, can_not_write)?;
            if on_progress(rows.progress()).is_break() {
                Err(ModelError::Cancelled)
            } else {
                Ok(())
            }
        })?;
        if limit == Some(records) {
            rows.first_rows = limit;
            // The size and the checksum are those of the whole file.
            while unpacked.skip()? {
                if on_progress(rows.progress()).is_break() {
                    return Err(ModelError::Cancelled);
                }
            }
        }
        rows.warnings.extend(of_end);
        // The first rows do not tell how many there are, unless they are too many.
        let are_some = |expected: &Expected| limit == Some(records) && records <= expected.rows;
        if let Some(expected) = expected.filter(|expected| !are_some(expected)) {
            let of_count = expected.check(records).map_err(|reason| rows.so_far.bad(reason))?;
            rows.warnings.extend(of_count);
        }
        rows.finish(records)
    })
}

/// Reads the first bytes and decides how to read the file.
fn begin(
    unpacked: &mut Unpacked<'_>,
    options: &PrepareOptions,
    words: Option<WordList>,
) -> Result<(Vec<u8>, Plan), ModelError> {
    let mut head = Vec::with_capacity(MAX_RECORD_BYTES);
    unpacked.fill(&mut head, MAX_RECORD_BYTES)?;
    if let Some(encoding) = encoding_of_text(&head, options, words.is_some()) {
        unpacked.decode(encoding, std::mem::take(&mut head));
        unpacked.fill(&mut head, MAX_RECORD_BYTES)?;
    }
    let so_far = unpacked.progress();
    let bytes_total = so_far.bytes_total.filter(|_| so_far.packing.is_none());
    let plan = plan(&head, bytes_total, options, words).map_err(|reason| so_far.bad(reason))?;
    Ok((head, plan))
}

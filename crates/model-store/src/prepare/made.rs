//! Writes a model of rows that are computed from a file, not read from it: those of a fastText
//! model, whose words are the means of their n-grams.

use std::ops::ControlFlow;
use std::path::Path;

use rayon::prelude::*;

use super::attributes::AttributeTable;
use super::biases::Biases;
use super::formats::{MAX_WORD_BYTES, Parsed, RecordUnit, check_finite};
use super::input;
use super::pipeline::Position;
use super::rows::Rows;
use super::{Input, ModelFolder, ModelWriter, OnProgress, PrepareOptions, Progress, Summary};
use crate::ModelError;
use crate::ngrams::NewNgrams;

/// Rows that are computed together, on all cores.
const ROWS_PER_CHUNK: u32 = 8192;

/// Rows that are computed from a file.
pub trait MadeRows: Sync {
    /// The file's format, for the model's provenance.
    fn format(&self) -> String;

    /// Number of rows.
    fn rows(&self) -> u32;

    /// Components in a row.
    fn dim(&self) -> usize;

    /// The word of a row, and the byte of the file where it is.
    fn word(&self, row: u32) -> (&[u8], u64);

    /// Writes the components of a row, `[dim]`.
    fn vector(&self, row: u32, vector: &mut [f32]);

    /// The vectors of n-grams, if words that are no rows get theirs from these.
    fn ngrams(&self) -> Option<NewNgrams<'_>>;
}

/// Writes the rows that are made of the file `input` as a model folder. If it fails, nothing is left
/// behind and `out` is unchanged.
///
/// The model has the n-grams only if all words of the file became rows: a word that is left out has
/// a part in its own vector.
///
/// # Errors
/// As [`prepare_folder`](super::prepare_folder); and if an option does not go with such a file.
pub fn prepare_made(
    input: &Path,
    made: &dyn MadeRows,
    out: &Path,
    options: &PrepareOptions,
    on_progress: OnProgress<'_>,
) -> Result<Summary, ModelError> {
    ModelFolder::check(out, options.replaced())?;
    let can_not_write = |e| ModelError::io("write the model to", out)(e);
    let (so_far, raw) = input::open(Input::File(input))?;
    check_options(made, options).map_err(|reason| so_far.bad(reason))?;
    super::check_biases(options)?;
    let biases = options.biases.as_deref();
    let biases = biases.map(|path| Biases::read(path, options.encoding)).transpose()?;
    let attributes = options.attributes.as_ref();
    let attributes = attributes.map(|file| AttributeTable::read(file, options.encoding));
    let attributes = attributes.transpose()?;
    // Size and checksum are of the whole file, which is read for them beside the work.
    let hashed = raw.seekable(&so_far).map_err(ModelError::io("read", input))?;
    if hashed.is_none() {
        return Err(so_far.bad("it is no file that can be read twice; save it as a file first"));
    }
    let folder = ModelFolder::beside(out, options.replaced())?;
    let writer = ModelWriter::new(folder.create_vectors()?, made.dim(), options.metric);
    let writer = writer.map_err(can_not_write)?;
    let of_biases = biases.as_ref().and_then(Biases::warning);
    let of_attributes = attributes.as_ref().and_then(AttributeTable::warning);
    let mut rows = Rows {
        writer,
        biases,
        options,
        so_far: so_far.clone(),
        description: made.format(),
        unit: RecordUnit::Row,
        column: None,
        signs: None,
        warnings: of_biases.into_iter().chain(of_attributes).collect(),
        first_rows: None,
        first_bad: None,
        bad: 0,
        repeated: 0,
        dropped: attributes.as_ref().map(|_| Vec::new()),
    };
    let limit =
        options.limit.map_or(u32::MAX, |limit| u32::try_from(limit.get()).unwrap_or(u32::MAX));
    let wanted = made.rows().min(limit);
    if wanted < made.rows() {
        rows.first_rows = Some(wanted.into());
    }
    let mut progress = |rows: usize, of: usize| {
        let bytes_total = so_far.bytes_total;
        let bytes_read = bytes_total.unwrap_or_default() * rows as u64 / of.max(1) as u64;
        on_progress(Progress { bytes_read, bytes_total, rows })
    };
    let mut lost_a_word = false;
    for first in (0..wanted).step_by(ROWS_PER_CHUNK as usize) {
        let last = wanted.min(first.saturating_add(ROWS_PER_CHUNK));
        let (parsed, lost) = parse(made, first, last);
        lost_a_word |= lost;
        let bytes = made.word(first).1;
        rows.take(Position { records: first.into(), bytes }, parsed, can_not_write)?;
        if progress(rows.writer.rows(), wanted as usize).is_break() {
            return Err(ModelError::Cancelled);
        }
    }
    if let Some(biases) = rows.biases.as_ref().filter(|_| rows.first_rows.is_none()) {
        biases.check_end(wanted.into(), &so_far.path)?;
    }
    let count = rows.writer.rows();
    let mut goes_on = || progress(count, count) == ControlFlow::Continue(());
    let mut written = None;
    match made.ngrams() {
        Some(_) if wanted < made.rows() || lost_a_word => rows.warnings.push(
            "the model has no vectors for words that are no rows, because it does not have all words \
             of the file: theirs would be others than fastText's"
                .into(),
        ),
        Some(ngrams) => {
            let sum = folder.write_ngrams(&ngrams, made.dim(), &mut goes_on)?;
            rows.writer = rows.writer.with_encoder(sum);
            written = Some(ngrams.lengths.buckets);
        }
        None => {}
    }
    let (writer, mut summary, attributes) = match attributes {
        None => rows.finish().map(|(writer, summary)| (writer, summary, None))?,
        Some(attributes) => rows.finish_with(attributes, wanted.into())?,
    };
    summary.ngrams = written;
    let (vectors, words, index) =
        writer.finish(summary.provenance.clone()).map_err(can_not_write)?;
    folder.complete(vectors, &words, &index, attributes.as_ref())?;
    Ok(summary)
}

/// Refuses options that are about other files.
fn check_options(made: &dyn MadeRows, options: &PrepareOptions) -> Result<(), String> {
    let format = made.format();
    for (option, is_given) in [
        ("--format", options.format.is_some()),
        ("--words", options.words.is_some()),
        ("--tensor", options.tensor.is_some()),
        ("--member", options.member.is_some()),
    ] {
        if is_given {
            return Err(format!("it is a {format}, which is read without {option}; omit it"));
        }
    }
    match options.dim {
        Some(dim) if dim.get() != made.dim() => {
            Err(format!("it is a {format} with {} components, not {dim}; omit --dim", made.dim()))
        }
        _ => Ok(()),
    }
}

/// Makes some rows, and says whether a word is lost that somebody could ask for.
fn parse(made: &dyn MadeRows, first: u32, last: u32) -> (Parsed, bool) {
    let dim = made.dim();
    let mut vectors = vec![0.0; (last - first) as usize * dim];
    let each = vectors.par_chunks_exact_mut(dim).zip(first..last);
    each.for_each(|(vector, row)| made.vector(row, vector));
    let (mut parsed, mut lost) = (Parsed::default(), false);
    let start = made.word(first).1;
    for (vector, row) in vectors.chunks_exact(dim).zip(first..last) {
        let (word, at) = made.word(row);
        let checked = match std::str::from_utf8(word) {
            Err(_) => Err("the word is not UTF-8".to_owned()),
            Ok("") => Err("the word is empty".to_owned()),
            Ok(word) if word.contains('\n') => Err("the word has a line feed".to_owned()),
            Ok(word) if word.len() > MAX_WORD_BYTES => {
                lost = true;
                Err(format!("the word has more than {MAX_WORD_BYTES} bytes"))
            }
            Ok(word) => check_finite(vector).map(|()| word).inspect_err(|_| lost = true),
        };
        parsed.components.extend_from_slice(vector);
        parsed.end_record(checked, dim, (at - start) as usize);
    }
    (parsed, lost)
}

//! Writes a model of rows that are computed from a file, not read from it: those of a fastText
//! model, whose words are the means of their n-grams, or of the tokens of a static model.

use std::path::Path;

use rayon::prelude::*;

use super::beside::Beside;
use super::formats::{MAX_WORD_BYTES, Parsed, RecordUnit, check_finite};
use super::input;
use super::pipeline::Position;
use super::rows::Rows;
use super::{Input, ModelFolder, ModelWriter, OnProgress, PrepareOptions, Progress, Summary};
use crate::ModelError;
use crate::encoder::NewEncoder;

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

    /// The encoder of the model, if it has one beside its rows.
    fn encoder(&self) -> Option<NewEncoder<'_>>;
}

/// Writes the rows that are made of the file `input` as a model folder. If it fails, nothing is left
/// behind and `out` is unchanged.
///
/// The model has vectors of n-grams only if all words of the file became rows: a word that is left
/// out has a part in its own vector.
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
    write_model(input, (made.format(), made.dim()), out, options, on_progress, &Made(made))
}

/// A source of the rows of a model.
pub(super) trait Fill {
    /// What messages call a record.
    fn unit(&self) -> RecordUnit;

    /// Whether the model's texts are sums of its words.
    fn adds_words(&self) -> bool;

    /// Passes all records to `take`, in order, which returns the number of rows so far.
    fn fill(
        &self,
        options: &PrepareOptions,
        bytes_total: Option<u64>,
        take: TakeParsed<'_>,
        on_progress: OnProgress<'_>,
    ) -> Result<Filled<'_>, ModelError>;
}

/// Takes parsed records.
pub(super) type TakeParsed<'a> = &'a mut dyn FnMut(Position, Parsed) -> Result<usize, ModelError>;

/// The end of the records.
pub(super) struct Filled<'a> {
    /// How many were read.
    pub(super) records: u64,
    /// Whether there are more.
    pub(super) is_start: bool,
    /// The encoder that the model gets.
    pub(super) encoder: Option<NewEncoder<'a>>,
    pub(super) warning: Option<String>,
}

/// Writes a model folder of a file's format and dimension, whose rows come from `fill`.
pub(super) fn write_model(
    input: &Path,
    (format, dim): (String, usize),
    out: &Path,
    options: &PrepareOptions,
    on_progress: OnProgress<'_>,
    fill: &dyn Fill,
) -> Result<Summary, ModelError> {
    ModelFolder::check(out, options.replaced())?;
    let can_not_write = |e| ModelError::io("write the model to", out)(e);
    let (so_far, raw) = input::open(Input::File(input))?;
    check_options(&format, dim, options).map_err(|reason| so_far.bad(reason))?;
    if options.text_weights.is_some() && !fill.adds_words() {
        let reason = format!(
            "weights are of words, and texts of {format} are no sums of the model's words; omit \
             --text-weights"
        );
        return Err(so_far.bad(reason));
    }
    let beside = Beside::read(options)?;
    // Size and checksum are of the whole file, which is read for them beside the work.
    let hashed = raw.seekable(&so_far).map_err(ModelError::io("read", input))?;
    if hashed.is_none() {
        return Err(so_far.bad("it is no file that can be read twice; save it as a file first"));
    }
    let folder = ModelFolder::beside(out, options.replaced())?;
    let writer = ModelWriter::new(folder.create_vectors()?, dim, options.metric);
    let writer = writer.map_err(can_not_write)?;
    let mut rows = Rows::new(writer, beside, options, so_far.clone(), (format, fill.unit()));
    let mut take = |position, parsed| {
        rows.take(position, parsed, can_not_write)?;
        Ok(rows.writer.rows())
    };
    let Filled { records, is_start, encoder, warning } =
        fill.fill(options, so_far.bytes_total, &mut take, on_progress)?;
    rows.warnings.extend(warning);
    if is_start {
        rows.first_rows = Some(records);
    }
    let count = rows.writer.rows();
    let (bytes_total, bytes_read) = (so_far.bytes_total, so_far.bytes_total.unwrap_or_default());
    let mut goes_on =
        || on_progress(Progress { bytes_read, bytes_total, rows: count }).is_continue();
    let finished = rows.finish(records)?;
    finished.complete(folder, encoder.as_ref(), can_not_write, &mut goes_on)
}

struct Made<'a>(&'a dyn MadeRows);

impl Fill for Made<'_> {
    fn unit(&self) -> RecordUnit {
        RecordUnit::Row
    }

    fn adds_words(&self) -> bool {
        !matches!(self.0.encoder(), Some(NewEncoder::Files(_)))
    }

    fn fill(
        &self,
        options: &PrepareOptions,
        bytes_total: Option<u64>,
        take: TakeParsed<'_>,
        on_progress: OnProgress<'_>,
    ) -> Result<Filled<'_>, ModelError> {
        let Self(made) = *self;
        let limit =
            options.limit.map_or(u32::MAX, |limit| u32::try_from(limit.get()).unwrap_or(u32::MAX));
        let wanted = made.rows().min(limit);
        let mut lost_a_word = false;
        for first in (0..wanted).step_by(ROWS_PER_CHUNK as usize) {
            let last = wanted.min(first.saturating_add(ROWS_PER_CHUNK));
            let (parsed, lost) = parse(made, first, last);
            lost_a_word |= lost;
            let bytes = made.word(first).1;
            let rows = take(Position { records: first.into(), bytes }, parsed)?;
            let bytes_read = bytes_total.unwrap_or_default() * rows as u64 / u64::from(wanted);
            let progress = Progress { bytes_read, bytes_total, rows };
            if on_progress(progress).is_break() {
                return Err(ModelError::Cancelled);
            }
        }
        let is_start = wanted < made.rows();
        let (encoder, warning) = match made.encoder() {
            Some(NewEncoder::Ngrams(_)) if is_start || lost_a_word => {
                let warning = "the model has no vectors for words that are no rows, because it does \
                               not have all words of the file: theirs would be others than fastText's";
                (None, Some(warning.to_owned()))
            }
            encoder => (encoder, None),
        };
        Ok(Filled { records: wanted.into(), is_start, encoder, warning })
    }
}

/// Refuses options that are about other files.
fn check_options(format: &str, dim: usize, options: &PrepareOptions) -> Result<(), String> {
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
        Some(given) if given.get() != dim => {
            Err(format!("it is a {format} with {dim} components, not {given}; omit --dim"))
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

//! The vectors of documents: made of their texts, or taken from an array that somebody made of them.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender};

use rayon::prelude::*;

use super::formats::{MAX_WORD_BYTES, Parsed, check_finite};
use super::npy_rows::{self, NpyRows};
use super::partial::{Known, Partial, Record};
use super::unpack::file_name;
use crate::ModelError;
use crate::encoder::{NO_ENCODER, NewEncoder, NewFiles};

/// Makes the vectors of texts.
pub trait TextVectors: Sync {
    /// Components of a vector.
    fn dim(&self) -> usize;

    /// Writes the vector of a text, `[dim]`.
    ///
    /// # Errors
    /// The reason why it has none.
    fn encode(&self, text: &str, vector: &mut [f32]) -> Result<(), String>;

    /// The encoder that the model keeps, for the texts that are searched for.
    fn encoder(&self) -> NewEncoder<'_>;

    /// Its name, for the model's provenance.
    fn name(&self) -> String;
}

/// Where the vectors of documents come from.
#[derive(Clone, Copy)]
pub enum DocumentVectors<'a> {
    /// From their texts.
    Encoded(&'a dyn TextVectors),
    /// From a NumPy file, whose row `n` belongs to record `n`, also of those that are skipped or
    /// repeated. The model has no encoder then.
    Array(&'a Path),
}

/// Records that are to get vectors.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    /// Bytes of the file that were read so far.
    pub(super) bytes_read: u64,
}

/// Records with their vectors.
pub(super) struct Ready {
    pub(super) count: u64,
    pub(super) bytes_read: u64,
    pub(super) rows: Parsed,
}

impl<'a> DocumentVectors<'a> {
    /// Whether texts are read.
    pub(super) fn are_of_texts(&self) -> bool {
        matches!(self, Self::Encoded(_))
    }

    /// The model's format, for its provenance, and the components of a vector.
    pub(super) fn shape(&self) -> Result<(String, usize), ModelError> {
        match self {
            Self::Encoded(by) => Ok((format!("documents, encoded by {}", by.name()), by.dim())),
            Self::Array(path) => {
                // It is read again beside the records.
                if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
                    let reason = "it is no file that can be read twice; save it as a file first";
                    let path = path.to_path_buf();
                    return Err(ModelError::BadInput { path, reason: reason.into() });
                }
                let (_, dim) = npy_rows::shape(path)?;
                Ok((format!("documents with vectors in {}", file_name(path)), dim))
            }
        }
    }

    /// The encoder that the model gets.
    pub(super) fn encoder(self) -> NewEncoder<'a> {
        match self {
            Self::Encoded(by) => by.encoder(),
            Self::Array(_) => {
                let settings = serde_json::Value::Object(serde_json::Map::new());
                NewEncoder::Files(NewFiles { kind: NO_ENCODER, settings, files: Vec::new() })
            }
        }
    }

    /// Sends the records of the file `input` on with their vectors. Stops after `limit` records, or
    /// when nobody waits. Keeps vectors of texts in `partial`.
    pub(super) fn give(
        self,
        input: &Path,
        mut partial: Option<&mut Partial>,
        limit: u64,
        batches: Receiver<Batch>,
        ready: &SyncSender<Ready>,
    ) -> Result<(), ModelError> {
        match self {
            Self::Encoded(by) => {
                for (number, Batch { records, bytes_read }) in (0..).zip(batches) {
                    let count = records.len() as u64;
                    let rows = encoded(by, number, &records, partial.as_deref_mut());
                    if ready.send(Ready { count, bytes_read, rows }).is_err() {
                        break;
                    }
                }
                Ok(())
            }
            Self::Array(path) => npy_rows::read(path, |rows| {
                let announced = rows.left();
                match of_array(rows, batches, ready)? {
                    None => Ok(()),
                    Some(records) if records == announced => rows.end(),
                    Some(records) if records == limit && records < announced => Ok(()),
                    Some(records) => Err(wrong_count(path, announced, input, records)),
                }
            }),
        }
    }
}

/// Sends the records on with the rows of an array. Returns how many there were, with those that have
/// no row; `None` if nobody waits.
fn of_array(
    rows: &mut NpyRows<'_, '_>,
    batches: Receiver<Batch>,
    ready: &SyncSender<Ready>,
) -> Result<Option<u64>, ModelError> {
    let (announced, mut all, dim) = (rows.left(), 0, rows.dim());
    for Batch { records, bytes_read } in batches {
        let count = records.len() as u64;
        all += count;
        // Records behind the last row are only counted.
        if all > announced {
            continue;
        }
        let vectors = rows.next(records.len())?;
        let each = vectors.chunks_exact(dim).zip(records);
        let checked: Vec<Result<String, String>> = each
            .map(|(vector, record)| {
                let key = checked_key(record?.0)?;
                check_finite(vector).map(|()| key)
            })
            .collect();
        if ready.send(Ready { count, bytes_read, rows: parsed(&vectors, &checked, dim) }).is_err() {
            return Ok(None);
        }
    }
    Ok(Some(all))
}

fn wrong_count(path: &Path, rows: u64, input: &Path, records: u64) -> ModelError {
    let input = file_name(input);
    let reason = format!(
        "it has {rows} rows, and {input} {records} records; row n belongs to record n, so give a row for each \
         record, in the same order"
    );
    ModelError::BadInput { path: path.to_owned(), reason: reason.into() }
}

/// The rows of a batch, whose vectors are made, or were kept. Those of records that have none are
/// tried again, which tells the fault.
fn encoded(
    by: &dyn TextVectors,
    number: u64,
    records: &[Record],
    mut partial: Option<&mut Partial>,
) -> Parsed {
    let dim = by.dim();
    let known = partial.as_deref_mut().and_then(|partial| partial.take(number, records));
    let mut vectors = vec![0.0; records.len() * dim];
    let mut is_there = vec![false; records.len()];
    if let Some(known) = &known {
        is_there.copy_from_slice(&known.has_vector);
        let places =
            vectors.chunks_exact_mut(dim).zip(&is_there).filter(|(_, is_there)| **is_there);
        let kept = known.vectors.chunks_exact(dim);
        places.zip(kept).for_each(|((place, _), kept)| place.copy_from_slice(kept));
    }
    let each = vectors.par_chunks_exact_mut(dim).zip(records).zip(&is_there);
    let checked: Vec<Result<String, String>> = each
        .map(|((vector, record), is_there)| {
            let (key, text) = record.as_ref().map_err(Clone::clone)?;
            let key = checked_key(key.clone())?;
            if !is_there {
                by.encode(text, vector)?;
            }
            check_finite(vector).map(|()| key)
        })
        .collect();
    if let (None, Some(partial)) = (&known, partial.filter(|partial| partial.keeps())) {
        let has_vector: Vec<bool> = checked.iter().map(Result::is_ok).collect();
        let present = vectors.chunks_exact(dim).zip(&has_vector).filter(|(_, has)| **has);
        let vectors = present.flat_map(|(vector, _)| vector).copied().collect();
        partial.put(number, records, &Known { has_vector, vectors });
    }
    parsed(&vectors, &checked, dim)
}

/// Rows of these vectors, `[keys, dim]`, and keys, or their faults.
fn parsed(vectors: &[f32], keys: &[Result<String, String>], dim: usize) -> Parsed {
    let mut parsed = Parsed::default();
    for (vector, key) in vectors.chunks_exact(dim).zip(keys) {
        parsed.components.extend_from_slice(vector);
        parsed.end_record(key.as_deref().map_err(Clone::clone), dim, 0);
    }
    parsed
}

fn checked_key(key: String) -> Result<String, String> {
    match &*key {
        "" => Err("the key is empty".to_owned()),
        text if text.contains('\n') => Err("the key has a line feed".to_owned()),
        text if text.len() > MAX_WORD_BYTES => {
            Err(format!("the key has more than {MAX_WORD_BYTES} bytes"))
        }
        _ => Ok(key),
    }
}

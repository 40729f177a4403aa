//! Writes a model whose rows are documents: records of a file, each with a key, a text and a vector.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::attributes::{Field, Line, read_wanted};
use super::document_vectors::{Batch, DocumentVectors, Ready};
use super::formats::RecordUnit;
use super::made::{Fill, Filled, TakeParsed, write_model};
use super::partial::{Partial, Record};
use super::pipeline::Position;
use super::{Input, OnProgress, PrepareOptions, Progress, Summary, TableReader};
use crate::ModelError;

/// Records whose texts are encoded together, on all cores.
const TOGETHER: usize = 4096;

/// Batches of them that wait to be encoded.
const BATCHES: usize = 2;

/// The fields of a record.
#[derive(Debug, Clone, Default)]
pub struct DocumentFields {
    /// The field with the text. Where vectors come from an array, it is not read.
    pub text: String,
    /// The field with the key, which becomes the row's word. Without it, keys are the numbers of
    /// the records, from 1.
    pub key: Option<String>,
    /// Reads Parquet, which is refused without it.
    pub parquet: Option<&'static dyn TableReader>,
}

/// Reads the records of the file `input`, which has CSV with a header or JSON lines, compressed or
/// not, or Parquet, and writes a model folder whose rows have their keys and the vectors of their
/// texts. If it fails, `out` is unchanged, and nothing is left behind but the vectors of texts that
/// took more than 10 s to encode: they are in a file beside `out`, `OUT.partial`, and the same call
/// goes on from there.
///
/// # Errors
/// If the file can't be read, a record is bad and must not be skipped, an array has not as many rows
/// as the file has records, or the output can't be written.
pub fn prepare_documents(
    input: &Path,
    fields: &DocumentFields,
    vectors: DocumentVectors<'_>,
    out: &Path,
    options: &PrepareOptions,
    on_progress: OnProgress<'_>,
) -> Result<Summary, ModelError> {
    let documents = Documents { input, fields, vectors };
    let partial = match vectors {
        DocumentVectors::Encoded(by) => Some(Partial::beside(out, &by.encoder(), by.dim())),
        DocumentVectors::Array(_) => None,
    };
    prepare(documents, partial, out, options, on_progress)
}

/// The same, with the vectors that are there.
pub(super) fn prepare(
    documents: Documents<'_>,
    partial: Option<Partial>,
    out: &Path,
    options: &PrepareOptions,
    on_progress: OnProgress<'_>,
) -> Result<Summary, ModelError> {
    let (input, shape) = (documents.input, documents.vectors.shape()?);
    let keeping = Keeping { documents, partial: Mutex::new(partial) };
    let done = write_model(input, shape, out, options, on_progress, &keeping);
    let partial = keeping.partial.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (done, partial) {
        (Ok(mut summary), Some(mut partial)) => {
            partial.remove();
            summary.resumed = partial.found;
            Ok(summary)
        }
        (Err(ModelError::Cancelled), Some(partial)) => Err(match partial.path() {
            Some(path) => ModelError::CancelledHalf { path: path.to_owned() },
            None => ModelError::Cancelled,
        }),
        (done, _) => done,
    }
}

/// Documents that are to be rows.
#[derive(Clone, Copy)]
pub(super) struct Documents<'a> {
    pub(super) input: &'a Path,
    pub(super) fields: &'a DocumentFields,
    pub(super) vectors: DocumentVectors<'a>,
}

/// Documents whose vectors are kept while they are made.
struct Keeping<'a> {
    documents: Documents<'a>,
    /// Of the thread that encodes.
    partial: Mutex<Option<Partial>>,
}

impl Fill for Keeping<'_> {
    fn unit(&self) -> RecordUnit {
        RecordUnit::Record
    }

    fn adds_words(&self) -> bool {
        false
    }

    fn fill(
        &self,
        options: &PrepareOptions,
        bytes_total: Option<u64>,
        take: TakeParsed<'_>,
        on_progress: OnProgress<'_>,
    ) -> Result<Filled<'_>, ModelError> {
        let Documents { input, vectors, .. } = self.documents;
        let limit = options.limit.map_or(u64::MAX, |limit| limit.get() as u64);
        let (batches, to_encode) = sync_channel(BATCHES);
        let (encoded, arriving) = sync_channel(BATCHES);
        // While texts are encoded, the next ones are read, and the ones before are written. If one of
        // them ends, so do the others.
        let records = thread::scope(|scope| {
            let named = |name: &str| thread::Builder::new().name(name.into());
            let reading = named("kindred-read")
                .spawn_scoped(scope, || self.documents.read(limit, options, batches))
                .map_err(ModelError::io("read", input))?;
            let encoding = named("kindred-encode")
                .spawn_scoped(scope, move || {
                    let mut partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
                    vectors.give(input, partial.as_mut(), limit, to_encode, &encoded)
                })
                .map_err(ModelError::io("read", input))?;
            let mut records = 0;
            for Ready { count, bytes_read, rows } in arriving {
                let rows = take(Position { records, bytes: 0 }, rows)?;
                records += count;
                if on_progress(Progress { bytes_read, bytes_total, rows }).is_break() {
                    return Err(ModelError::Cancelled);
                }
            }
            // Of a file that can't be read to its end, the number of records says nothing.
            for thread in [reading, encoding] {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(records)
        })?;
        let (is_start, encoder) = (records == limit, Some(vectors.encoder()));
        Ok(Filled { records, is_start, encoder, warning: None })
    }
}

impl Documents<'_> {
    /// Reads the records, at most `limit`, and sends them on.
    fn read(
        &self,
        limit: u64,
        options: &PrepareOptions,
        batches: SyncSender<Batch>,
    ) -> Result<(), ModelError> {
        let DocumentFields { text, key, parquet } = self.fields;
        let text = self.vectors.are_of_texts().then_some(text);
        let is_wanted =
            |name: &str| text.is_some_and(|text| name == text) || key.as_deref() == Some(name);
        let (mut batch, mut records, mut seen) = (Batch::default(), 0_u64, Vec::new());
        // Whether reading ended before the end of the file: at the limit, because nobody waits, or for
        // this fault.
        let (mut is_over, mut fault) = (false, None);
        let input = Input::File(self.input);
        let take = &mut |line: &Line<'_>, bytes_read: Option<u64>| {
            if is_over || records == limit {
                is_over = true;
                return Err(String::new());
            }
            records += 1;
            if seen.len() < line.names.len() {
                seen = line.names.iter().cloned().collect();
            }
            batch.records.push(self.record(line, records));
            if batch.records.len() == TOGETHER {
                // Otherwise the first record would be told to have no such field.
                if let Err(error) = self.check_names(&seen) {
                    (is_over, fault) = (true, Some(error));
                    return Err(String::new());
                }
                batch.bytes_read = bytes_read.unwrap_or_default();
                is_over = batches.send(std::mem::take(&mut batch)).is_err();
            }
            Ok(())
        };
        let read = read_wanted(input, options.encoding, *parquet, Some(&is_wanted), take);
        match (read, fault) {
            (_, Some(error)) => return Err(error),
            (Err(error), None) if !is_over => return Err(error),
            _ => self.check_names(&seen)?,
        }
        if !batch.records.is_empty() {
            // If nobody waits for it, there is another error.
            let _ = batches.send(batch);
        }
        Ok(())
    }

    /// The key and the text of a record.
    fn record(&self, line: &Line<'_>, number: u64) -> Record {
        let field = |name: &str| {
            let index = line.names.get_index_of(name)?;
            line.fields.iter().find(|(at, _)| *at == index).map(|(_, field)| field)
        };
        let key = match &self.fields.key {
            None => number.to_string(),
            Some(name) => field(name)
                .and_then(Field::key)
                .ok_or_else(|| format!("`{name}` is no key: a text or a whole number"))?
                .into_owned(),
        };
        if !self.vectors.are_of_texts() {
            return Ok((key, String::new()));
        }
        let name = &self.fields.text;
        match field(name).and_then(Field::text) {
            Some(text) => Ok((key, text.to_owned())),
            None => Err(format!("`{name}` is no text")),
        }
    }

    /// Refuses names of fields that no record has.
    fn check_names(&self, seen: &[String]) -> Result<(), ModelError> {
        let DocumentFields { text, key, .. } = self.fields;
        let text = self.vectors.are_of_texts().then_some(text);
        for (flag, name) in [("--text", text), ("--key", key.as_ref())] {
            if let Some(name) = name.filter(|name| !seen.contains(name)) {
                let reason = format!(
                    "it has no `{name}`, which {flag} names; it has {}",
                    if seen.is_empty() { "no records".to_owned() } else { seen.join(", ") }
                );
                let path = self.input.to_owned();
                return Err(ModelError::BadInput { path, reason: reason.into() });
            }
        }
        Ok(())
    }
}

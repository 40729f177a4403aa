//! The logs of a folder and their batches, for those who look at them one by one.

use std::borrow::Cow;
use std::path::Path;

use model_store::ModelStore;

use super::batch::{Payload, RowJson};
use super::error::ChangeError;
use super::replay::{Seen, name_of, open};
use super::schema::Schema;
use super::sources::Sources;
use super::state::Counts;
use super::storage::Disk;

/// The logs of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The number of the base: 1 before the first fold.
    pub generation: u64,
    /// The position at which it has the rows that lived: batches up to it are in no log any more.
    pub base_position: u64,
    /// The logs behind it, in order.
    pub logs: Vec<LogSummary>,
    /// The position of the last batch; 0 if there is none.
    pub position: u64,
    /// The rows that live.
    pub live_rows: usize,
    /// Bytes at the end of the last log that are no whole record, as a process leaves them that
    /// stopped while it wrote.
    pub dropped_bytes: usize,
}

/// A log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSummary {
    /// The name of its file.
    pub name: String,
    /// Its bytes.
    pub bytes: usize,
    /// The positions of its first batch and of its last, if it has any.
    pub positions: Option<(u64, u64)>,
    /// Number of its batches.
    pub batches: usize,
    /// What they did.
    pub counts: Counts,
}

/// A batch of a log.
#[derive(Debug, Clone, Copy)]
pub struct LoggedBatch<'a> {
    schema: &'a Schema,
    payload: &'a Payload<'a>,
    /// Its position.
    pub position: u64,
    /// What it did.
    pub counts: Counts,
}

impl<'a> LoggedBatch<'a> {
    /// The keys of the rows that it deleted, or tried to.
    pub fn deleted(&self) -> impl ExactSizeIterator<Item = &'a str> {
        self.payload.deleted()
    }

    /// Its idempotency key, if it has one.
    pub fn request_key(&self) -> Option<&'a str> {
        self.payload.request().map(|request| request.key)
    }

    /// The positions of other systems that the table has reached by it.
    pub fn sources(&self) -> Sources {
        self.payload.sources()
    }

    /// Hands over the rows that it inserted or replaced, in order.
    ///
    /// # Errors
    /// As `each` says.
    pub fn each_row<E>(&self, mut each: impl FnMut(RowJson<'_>) -> Result<(), E>) -> Result<(), E> {
        let values = self.payload.values(self.schema).expect("they were read before");
        let vectors = self.payload.vectors().chunks_exact(self.schema.dim);
        let rows = self.payload.upserted().zip(vectors).zip(&values).enumerate();
        for (place, ((key, vector), values)) in rows {
            let bias = self.payload.biases().get(place).copied();
            let names = self.schema.columns.iter().map(|(name, _)| name.as_str());
            let attributes =
                names.zip(values).map(|(name, value)| (name, value.as_ref().map(Cow::Borrowed)));
            each(RowJson::new(key, vector, bias, attributes))?;
        }
        Ok(())
    }
}

/// Reads all logs of a model folder and checks every record, beside a process that writes or
/// without one. `each` gets the batches, in order.
///
/// # Errors
/// If the base can't be opened, or a log is damaged in a place that was on disk.
pub fn list(folder: &Path, each: &mut dyn FnMut(LoggedBatch<'_>)) -> Result<Listing, ChangeError> {
    let (model, _) = ModelStore::open_base(folder)?;
    let (schema, mut listing, mut seen_up_to) = (Schema::of(&model), Listing::default(), 0);
    let mut watch = |seen: Seen<'_>| match seen {
        Seen::Again => listing = Listing::default(),
        Seen::Log { number, bytes } => listing.logs.push(LogSummary {
            name: name_of(number),
            bytes,
            positions: None,
            batches: 0,
            counts: Counts::default(),
        }),
        Seen::Dropped { bytes } => listing.dropped_bytes = bytes,
        Seen::Batch { position, payload, counts } => {
            if let Some(log) = listing.logs.last_mut() {
                let first = log.positions.map_or(position, |(first, _)| first);
                log.positions = Some((first, position));
                log.batches += 1;
                log.counts += counts;
            }
            // Those that were seen before a fold are not seen twice.
            if position > seen_up_to {
                seen_up_to = position;
                each(LoggedBatch { schema: &schema, payload, position, counts });
            }
        }
    };
    let (base, replayed) = open(&Disk::new(folder, None), &mut watch)?;
    listing.generation = base.model.generation();
    listing.base_position = base.model.header().folded.as_ref().map_or(0, |one| one.position);
    let snapshot = replayed.state.snapshot();
    (listing.position, listing.live_rows) = (snapshot.position(), snapshot.live_rows());
    Ok(listing)
}

//! Changes of rows beside an immutable base: batches of upserts and deletes, each applied as a
//! whole, in a log that is on disk before anybody is told or shown.
//!
//! ```text
//! callers: BatchBuilder checks rows and encodes them     batch/
//!    │ commit: norms, checksums; each on its own thread
//!    ▼
//! queue: one caller works for all that wait              group.rs
//!    │ positions; one write, one sync                    core.rs, writer.rs
//!    ▼
//! changes/00000001.log: header, then records             log_header.rs, record.rs
//!    │ on disk
//!    ▼
//! state: rows, keys, dead rows ─▶ Snapshot, for readers  state/, generation.rs
//!    │ now and then
//!    ▼
//! a new base, and the rows behind it in its terms        fold/
//! ```
//!
//! A batch's position is that of the batch before plus 1. Rows of the base come first; new and
//! replaced rows follow by position, and no number is given twice. All calls to the system are in
//! `storage/`, and tests stop, fail and forget at each of them. The bytes are in docs/formats.md.
//!
//! Why it is so:
//!
//! - **The first change raises one digit of the base's header, in place.** A table that was moved,
//!   or a file that was renamed over it, would be missed by a copy whose files were listed before;
//!   a copy of a large table would make the first change slow. Whoever reads the header meanwhile
//!   sees one digit or the other, and both are right.
//! - **A record says how much of its log was on disk** when it was written. So records that a power
//!   cut left in any order are told from damage, which is never passed over.
//! - **No byte of a log is written twice.** What could not be written whole is cut off and a new
//!   log begun, so that a copy that is made meanwhile has a beginning of each log, and no mixture.
//! - **A log names the one before and how much of it counts**, so nothing is written to a full log,
//!   and a log that was cut or lost is noticed.
//! - **A fold switches by one rename**, of a small file in the place of the base's table, which says
//!   where the new base is. Logs are not written anew: one begins with the fold, and is the next log
//!   of the old base and the first of the new.
//! - **Old and new base are both kept up to date in memory** until nobody holds the old one, so that
//!   engines change when they like, and nobody waits for another.
//! - **Positions are reserved before batches without durability have them**, as databases do it
//!   with sequences: what a power cut takes away is not given again.

mod base;
mod batch;
mod commit;
mod create;
mod error;
mod fields;
mod fold;
mod generation;
mod group;
mod listing;
mod log_header;
mod record;
mod replay;
mod requests;
mod schema;
mod sources;
mod state;
mod storage;
#[cfg(test)]
mod tests;
mod values;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

pub use batch::{
    BadRow, BadRows, Batch, BatchBuilder, MAX_BATCH_BYTES, MAX_KEY_BYTES, RowJson, RowTexts, Upsert,
};
pub use commit::{Committed, Durability};
pub use create::create;
pub use error::ChangeError;
pub use fold::{FoldProgress, OnFold};
pub use generation::Generation;
pub use listing::{Listing, LogSummary, LoggedBatch, list};
pub use requests::{KEEP_REQUEST_KEYS, MAX_REQUEST_KEY_BYTES, MAX_REQUEST_KEYS};
pub use schema::Schema;
pub use sources::{BadSources, MAX_SOURCE_NAME_BYTES, MAX_SOURCES, SourcePosition, Sources};
pub use state::{Counts, DeadRows, Filled, Snapshot, TableAt, TailPart, TailRow, TailRows};

use base::Base;
use batch::Payload;
use commit::{Core, Job, RequestOf};
use fold::Folding;
use group::Queue;
use model_store::ModelStore;
use state::Prepared;
use storage::{Disk, Storage};
use writer::{Writer, take_lock};

/// Time that old files stay after a fold, unless something else is said.
pub const KEEP_OLD: Duration = Duration::from_secs(60 * 60);
/// Batches of a group are written together up to this size, in bytes.
pub const MAX_GROUP_BYTES: usize = 32 << 20;

/// What a folder is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// To read and to change it. One process may.
    #[default]
    Write,
    /// To read it as it is now, beside a process that changes it.
    Read,
}

/// How a folder of changes is opened.
#[derive(Debug, Clone, Copy)]
pub struct ChangeOptions {
    /// What it is opened for.
    pub access: Access,
    /// A log of at least this size, in bytes, is full: it never changes again.
    pub max_log_bytes: u64,
    /// Time that the files of a base and of logs stay after a fold, but no longer than to the next
    /// one, for those who copy the folder meanwhile. A copy that takes longer is refused when it is opened, or has an earlier position.
    pub keep_old: Duration,
}

impl Default for ChangeOptions {
    fn default() -> Self {
        Self { access: Access::Write, max_log_bytes: 64 << 20, keep_old: KEEP_OLD }
    }
}

/// A batch of one table that only has to be written.
pub struct ReadyBatch(Job);

impl ReadyBatch {
    /// Its size in the log, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.record.bytes().len()
    }
}

impl fmt::Debug for ReadyBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a batch of {} bytes", self.bytes())
    }
}

/// The changes beside a base.
///
/// ```
/// use std::ops::ControlFlow;
/// use model_store::ModelStore;
/// use changes::{BatchBuilder, Changes, ChangeOptions, Durability, Upsert};
/// use model_store::prepare::{Input, PrepareOptions, prepare_folder};
///
/// # let scratch = tempfile::tempdir()?;
/// # let folder = scratch.path().join("animals");
/// let input = Input::Bytes { name: "animals", bytes: b"frog 1 2\ntoad 2 1\n" };
/// let go_on = &mut |_| ControlFlow::Continue(());
/// prepare_folder(input, &folder, &PrepareOptions::default(), go_on)?;
///
/// let changes = Changes::open(&folder, ChangeOptions::default())?;
/// let mut batch = BatchBuilder::new(changes.schema());
/// batch.upsert(Upsert { key: "newt", vector: &[3.0, 4.0], bias: None, attributes: &[] });
/// batch.delete("toad");
/// let batch = batch.finish()?.expect("it has rows");
/// let committed = changes.commit(batch, Durability::Synced, None)?;
/// assert_eq!((committed.position, committed.is_durable), (1, true));
///
/// let now = changes.snapshot();
/// assert_eq!((now.live_rows(), now.row_of("toad")), (2, None));
/// let newt = now.tail_row(now.row_of("newt").unwrap()).unwrap();
/// assert_eq!((newt.row.0, newt.norm), (2, 5.0));
/// assert!(ModelStore::open(&folder).is_err(), "the base alone is no longer the model");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Changes {
    schema: Schema,
    storage: Arc<dyn Storage>,
    queue: Queue<Job, Result<Committed, ChangeError>>,
    core: Mutex<Core>,
    current: RwLock<Arc<Generation>>,
    /// Held by a fold.
    folding: Mutex<()>,
    keep_old: Duration,
    now: fn() -> u64,
}

impl Changes {
    /// Opens a model folder with its changes, if it has any. Reads all logs. A folder without
    /// changes stays as it is until the first batch.
    ///
    /// # Errors
    /// If the base can't be opened, a log is damaged in a place that was on disk, or another
    /// process changes the rows and `access` is to write.
    pub fn open(folder: &Path, options: ChangeOptions) -> Result<Self, ChangeError> {
        Self::open_as(folder, None, options)
    }

    /// As [`open`](Self::open); the base has another name than that of its folder.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_as(
        folder: &Path,
        name: Option<&str>,
        options: ChangeOptions,
    ) -> Result<Self, ChangeError> {
        Self::with(Arc::new(Disk::new(folder, name)), options)
    }

    fn with(storage: Arc<dyn Storage>, options: ChangeOptions) -> Result<Self, ChangeError> {
        let folder = storage.path("");
        let is_there = storage.list().map_err(ChangeError::io("list", &folder))?.is_some();
        let writes = options.access == Access::Write;
        // Before the base is opened, which another process may be folding.
        let lock = (is_there && writes).then(|| take_lock(&*storage)).transpose()?;
        let (base, replayed) = replay::open(&*storage, &mut |_| ())?;
        let replay::Replayed { state, requests, reserved, last } = replayed;
        if let Some(last) = last {
            // What a process has left in the system's memory is not shown before it is on disk.
            let name = replay::name_of(last.number);
            storage.sync(&name).map_err(ChangeError::io("sync", &storage.path(&name)))?;
            if writes {
                storage.sync_names().map_err(ChangeError::io("sync", &folder))?;
            }
        }
        let mut writer = None;
        if writes {
            if lock.is_some() {
                fold::remove_old(&*storage, &base.model, options.keep_old);
            }
            let storage = Arc::clone(&storage);
            let mut new = Writer::new(storage, &base, options.max_log_bytes, lock);
            new.go_on(state.position(), reserved, last)?;
            writer = Some(new);
        }
        let Base { schema, model, .. } = base;
        let current = Generation::new(model, state.snapshot());
        let earlier = Vec::new();
        let core = Core {
            schema: schema.clone(),
            state,
            current: Arc::clone(&current),
            earlier,
            requests,
            writer,
        };
        Ok(Self {
            core: Mutex::new(core),
            current: RwLock::new(current),
            schema,
            storage,
            queue: Queue::new(MAX_GROUP_BYTES),
            folding: Mutex::new(()),
            keep_old: options.keep_old,
            now: commit::now,
        })
    }

    /// The base with the rows behind it, as the last fold has made it.
    pub fn current(&self) -> Arc<Generation> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The base of the last fold, or the one that was prepared.
    pub fn base(&self) -> Arc<ModelStore> {
        Arc::clone(self.current().base())
    }

    /// The shape of the rows, for batches.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The rows after the last batch. Every batch that was acknowledged before the call is in it.
    pub fn snapshot(&self) -> Snapshot {
        self.current().snapshot()
    }

    /// Folds the changes into a new base, on the thread that calls, while others commit and read:
    /// commits wait only while a log begins and while the rows are swapped. `None` if nothing was
    /// committed since the base was made.
    ///
    /// Version, position and the number of every row stay. The generation that is returned is the
    /// current one; those before are up to date for as long as somebody holds them. The files of the
    /// old base and its logs stay for [`ChangeOptions::keep_old`], for those who are copying them.
    ///
    /// # Errors
    /// If the new base can't be written, there is too little room for it, the old base or a log is
    /// damaged, or `on_progress` says break. Nothing has changed then, and commits go on.
    pub fn fold(&self, on_progress: OnFold<'_>) -> Result<Option<Arc<Generation>>, ChangeError> {
        let path = || self.storage.root().path("");
        let _one = self.only_fold()?;
        let folding = {
            let mut core = self.core.lock().map_err(|_| self.panicked())?;
            let base = Arc::clone(core.current.base());
            let begins = base.header().folded.as_ref().map_or(0, |folded| folded.position);
            let Some(writer) = &mut core.writer else {
                return Err(ChangeError::OpenedToRead { path: path() });
            };
            if writer.position() == begins {
                return Ok(None);
            }
            let sealed = writer.seal()?;
            let (snapshot, requests) = (core.state.snapshot(), core.requests.clone());
            Folding { base, snapshot, requests, sealed }
        };
        fold::remove_old(&*self.storage, &folding.base, self.keep_old);
        let (base, mut onto) = folding.run(&*self.storage, on_progress)?;
        onto.advance(&self.snapshot());
        let new = {
            let mut core = self.core.lock().map_err(|_| self.panicked())?;
            let new = core.swap(base, onto);
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            *current = Arc::clone(&new);
            new
        };
        fold::remove_old(&*self.storage, new.base(), self.keep_old);
        Ok(Some(new))
    }

    /// Removes the files of bases before the current one, and their logs, if they have been kept for
    /// long enough: opening the folder and folding do it as well. Returns whether some are left.
    ///
    /// # Errors
    /// If a fold is running, or it was opened to be read.
    pub fn remove_old(&self, keep: Duration) -> Result<bool, ChangeError> {
        let path = || self.storage.root().path("");
        let _one = self.only_fold()?;
        // Who may write has the lock, once there are changes.
        let may = self.core.lock().map_err(|_| self.panicked())?.writer.is_some();
        match may {
            true => Ok(fold::remove_old(&*self.storage, &self.base(), keep)),
            false => Err(ChangeError::OpenedToRead { path: path() }),
        }
    }

    /// Held by one fold at a time.
    fn only_fold(&self) -> Result<MutexGuard<'_, ()>, ChangeError> {
        match self.folding.try_lock() {
            Ok(held) => Ok(held),
            // What a fold has left that panicked is removed by the next.
            Err(TryLockError::Poisoned(held)) => Ok(held.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(ChangeError::Folding { path: self.storage.root().path("") })
            }
        }
    }

    /// Commits a batch, and waits until it is as durable as requested and visible. Callers on other
    /// threads share a sync.
    ///
    /// With an idempotency key, a batch that was committed in the last 24 hours is not committed
    /// again: the answer tells where it was. 100,000 keys are kept.
    ///
    /// # Errors
    /// Nothing of the batch is kept then, and nothing of it is visible. After a failed sync, all
    /// further batches are refused until the folder is opened again; the one of that sync may then
    /// be there or not.
    pub fn commit(
        &self,
        batch: Batch,
        durability: Durability,
        idempotency_key: Option<&str>,
    ) -> Result<Committed, ChangeError> {
        let ReadyBatch(job) = self.ready(batch, durability, idempotency_key)?;
        let weight = job.record.bytes().len();
        let work = |jobs: &mut [Job]| self.run(jobs);
        self.queue.submit(job, weight, work).unwrap_or_else(|| Err(self.panicked()))
    }

    /// Does for a batch what needs no turn: norms and checksums. Then [`commit_all`](Self::commit_all)
    /// only writes it.
    ///
    /// # Errors
    /// If the batch is of a table of another shape, or the idempotency key is empty or too long.
    pub fn ready(
        &self,
        batch: Batch,
        durability: Durability,
        idempotency_key: Option<&str>,
    ) -> Result<ReadyBatch, ChangeError> {
        self.job(batch, durability, idempotency_key).map(ReadyBatch)
    }

    /// Commits several batches of this table, in their order, with one sync if any of them is to be
    /// durable. For callers that are no threads; those that are share a sync by
    /// [`commit`](Self::commit).
    ///
    /// # Errors
    /// Each batch has its own outcome, as that of [`commit`](Self::commit).
    pub fn commit_all(&self, batches: Vec<ReadyBatch>) -> Vec<Result<Committed, ChangeError>> {
        let mut jobs: Vec<Job> = batches.into_iter().map(|ReadyBatch(job)| job).collect();
        self.run(&mut jobs)
    }

    fn run(&self, jobs: &mut [Job]) -> Vec<Result<Committed, ChangeError>> {
        // A panic may have left a batch written and not shown.
        let Ok(mut core) = self.core.lock() else {
            return jobs.iter().map(|_| Err(self.panicked())).collect();
        };
        let outcomes = core.run(jobs, &*self.storage);
        core.publish();
        outcomes
    }

    fn panicked(&self) -> ChangeError {
        let reason = "a thread panicked while it wrote".into();
        ChangeError::ReadOnly { path: self.storage.path(""), reason }
    }

    /// Syncs all batches, those without durability, too, and closes the log. It is done on drop as
    /// well, without the error.
    ///
    /// # Errors
    /// If the log can't be written or synced.
    pub fn close(self) -> Result<(), ChangeError> {
        self.core.lock().map_err(|_| self.panicked())?.close()
    }

    /// Everything that a batch needs before its turn.
    fn job(
        &self,
        batch: Batch,
        durability: Durability,
        key: Option<&str>,
    ) -> Result<Job, ChangeError> {
        if batch.fingerprint != self.schema.fingerprint() {
            return Err(ChangeError::OtherSchema);
        }
        let is_good = |key: &str| (1..=MAX_REQUEST_KEY_BYTES).contains(&key.len());
        if let Some(key) = key.filter(|key| !is_good(key)) {
            return Err(ChangeError::BadRequestKey { bytes: key.len() });
        }
        let Batch { mut record, upserts, sources, only_at, .. } = batch;
        let at = (self.now)();
        if let Some(key) = key {
            batch::add_request(&mut record, key, at);
        }
        if !sources.is_empty() {
            batch::add_sources(&mut record, &sources);
        }
        let payload_crc = record::pad(&mut record);
        let payload = Payload::again(&self.schema, &record.bytes()[record::HEADER_BYTES..]);
        let payload = payload.expect("a builder makes batches of its schema");
        let request = key.map(|key| RequestOf { key: key.into(), at, content: payload.content() });
        let prepared = Prepared::new(&self.schema, &payload);
        let prepared = Some(prepared.expect("a builder checks attributes"));
        Ok(Job { record, payload_crc, prepared, upserts, durability, request, sources, only_at })
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if let Ok(core) = self.core.get_mut() {
            let _ = core.close();
        }
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "changes at {:?}", self.snapshot())
    }
}

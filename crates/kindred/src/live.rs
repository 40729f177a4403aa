//! A table whose rows change while questions are asked about them: one writes, any number read.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub use ::changes;
use changes::{
    Batch, BatchBuilder, ChangeError, ChangeOptions, Changes, Committed, Durability, Generation,
    OnFold, ReadyBatch, RowTexts, Schema,
};
use contract::Engine;
use cpu_core::StartError;
use encoders::text_encoder;
use model_store::ModelStore;
use shards::Segments;

use crate::engines::{Maker, Makers};
use crate::question::{EncodeOptions, encode};
use crate::rows::AtPosition;
use filters::TailFilters;

/// A model folder with its changes, if it has any. Threads share it: batches of several callers are
/// synced together, and each reader has the position that was there when it asked.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use kindred::live::Live;
/// use kindred::{Kindred, Options, Settings};
/// use kindred::prepare::{Input, PrepareOptions, prepare_folder};
/// use changes::{ChangeOptions, Durability, Upsert};
///
/// # let scratch = tempfile::tempdir()?;
/// # let folder = scratch.path().join("animals");
/// let input = Input::Bytes { name: "animals", bytes: b"frog 1 2\ntoad 2 1\n" };
/// let go_on = &mut |_| ControlFlow::Continue(());
/// prepare_folder(input, &folder, &PrepareOptions::default(), go_on)?;
///
/// let table = Live::open(&folder, ChangeOptions::default())?;
/// let kindred = Kindred::start_live(table.into(), Settings::default())?;
/// let live = kindred.live().expect("it was started with one");
/// let mut batch = live.batch();
/// batch.upsert(Upsert { key: "newt", vector: &[2.0, 4.1], bias: None, attributes: &[] });
/// batch.delete("toad");
/// live.commit(batch.finish()?.expect("it has rows"), Durability::Synced, None)?;
///
/// let answer = kindred.nearest("frog", Options::new()).wait()?;
/// assert_eq!(answer.words().collect::<Vec<_>>(), ["newt"]);
/// assert_eq!((answer.neighbors[0].row, answer.position), (2, Some(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Live {
    generation: Arc<Generation>,
    changes: Arc<Changes>,
    filters: Arc<TailFilters>,
    /// The last position that somebody asked for.
    last: Mutex<Option<Arc<AtPosition>>>,
}

impl Live {
    /// Opens a model folder with its changes, if it has any, and reads all of them.
    ///
    /// # Errors
    /// If the base can't be opened, a log is damaged, or another process changes the rows and
    /// `options` are those of one that writes.
    pub fn open(folder: &Path, options: ChangeOptions) -> Result<Self, ChangeError> {
        Self::open_as(folder, None, options)
    }

    /// As [`open`](Self::open), under another name than that of its folder.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_as(
        folder: &Path,
        name: Option<&str>,
        options: ChangeOptions,
    ) -> Result<Self, ChangeError> {
        let changes = Changes::open_as(folder, name, options)?;
        text_encoder(changes.current().base())?;
        Ok(Self::over(changes.current(), Arc::new(changes)))
    }

    fn over(generation: Arc<Generation>, changes: Arc<Changes>) -> Self {
        let filters = Arc::new(TailFilters::new(generation.base()));
        // Otherwise the first text would wait for it; whoever asks for one hears of a fault.
        let _ = text_encoder(generation.base());
        Self { generation, changes, filters, last: Mutex::default() }
    }

    /// The base.
    pub fn base(&self) -> &Arc<ModelStore> {
        self.generation.base()
    }

    /// The number of the base: 1 before the first fold.
    pub fn generation(&self) -> u64 {
        self.generation.number()
    }

    /// Folds the changes into a new base: see [`Changes::fold`]. Returns the same table over that
    /// base, for which an engine can be started while this one answers; `None` if nothing was
    /// committed since the base was made. Both commit, and both see every batch, for as long as
    /// they are held. It blocks the thread for as long as that takes.
    ///
    /// # Errors
    /// As [`Changes::fold`].
    pub fn fold(&self, on_progress: OnFold<'_>) -> Result<Option<Self>, ChangeError> {
        let folded = self.changes.fold(on_progress)?;
        Ok(folded.map(|generation| Self::over(generation, self.changes.clone())))
    }

    /// The same table over the base of the last fold, if that is another one: whoever made it.
    pub fn latest(&self) -> Option<Self> {
        let latest = self.changes.current();
        let is_another = latest.number() != self.generation();
        is_another.then(|| Self::over(latest, self.changes.clone()))
    }

    /// The table and its logs.
    pub fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// The shape of the rows, for batches.
    pub fn schema(&self) -> &Schema {
        self.changes.schema()
    }

    /// An empty batch of changes. Its rows may have texts instead of vectors, which the table's
    /// encoder makes, or its words as they are now.
    pub fn batch(&self) -> BatchBuilder<'_> {
        BatchBuilder::new(self.schema()).with_texts(self)
    }

    /// Commits a batch, and waits until it is as durable as requested and visible: see
    /// [`Changes::commit`]. It blocks the thread, which should not be one that serves others.
    ///
    /// # Errors
    /// As [`Changes::commit`].
    pub fn commit(
        &self,
        batch: Batch,
        durability: Durability,
        idempotency_key: Option<&str>,
    ) -> Result<Committed, ChangeError> {
        self.changes.commit(batch, durability, idempotency_key)
    }

    /// Does for a batch what needs no turn: see [`Changes::ready`].
    ///
    /// # Errors
    /// As [`Changes::ready`].
    pub fn ready(
        &self,
        batch: Batch,
        durability: Durability,
        idempotency_key: Option<&str>,
    ) -> Result<ReadyBatch, ChangeError> {
        self.changes.ready(batch, durability, idempotency_key)
    }

    /// The rows as they are now: with every batch that was acknowledged before the call.
    pub fn now(&self) -> Arc<AtPosition> {
        let snapshot = self.generation.snapshot();
        // Only a complete value is ever there.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && last.position() == snapshot.position()
        {
            return last.clone();
        }
        let filters = self.filters.clone();
        let now = Arc::new(AtPosition::new(self.base().clone(), snapshot, filters));
        // Another thread may have put a later one there.
        if last.as_ref().is_none_or(|last| last.position() < now.position()) {
            *last = Some(now.clone());
        }
        now
    }

    /// Rows for which an engine on a device keeps room behind those of the base: about as many as
    /// come before a fold.
    pub fn room(&self) -> usize {
        /// A fold begins at a tenth by itself.
        const PART: usize = 8;
        const LEAST: usize = 1 << 13;
        let snapshot = self.generation.snapshot();
        let tail = snapshot.rows() - snapshot.base_rows();
        tail + (snapshot.base_rows() / PART).max(LEAST)
    }

    /// Makers of engines for the rows at every position, of those for the base.
    pub fn makers(self: &Arc<Self>, of_base: Makers, threads: usize) -> Makers {
        let with_tail = |mut make: Maker| {
            let live = self.clone();
            let make = move |warm| Ok(live.engine(make(warm)?, threads)?);
            Box::new(make) as Maker
        };
        let Makers { each, placed } = of_base;
        Makers { each: each.into_iter().map(with_tail).collect(), placed }
    }

    /// An engine for the rows at every position, of one for the base. The rows behind the base are
    /// searched by this many threads; 0 means one per core.
    ///
    /// # Errors
    /// If the threads can't be started.
    pub fn engine(
        &self,
        base: Box<dyn Engine>,
        threads: usize,
    ) -> Result<Box<dyn Engine>, StartError> {
        let generation = self.generation.clone();
        let now = Arc::new(move || generation.snapshot());
        let mut engine = Segments::new(base, self.base().clone(), now, threads)?;
        // Now rather than in the first question. If it fails, that one says so.
        let _ = engine.extend();
        Ok(Box::new(engine))
    }
}

impl RowTexts for Live {
    fn vector(&self, text: &str) -> Result<Vec<f32>, String> {
        let encoded = encode(&*self.now(), text, &EncodeOptions::default());
        encoded.map(|text| text.vector).map_err(|error| error.to_string())
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (base, now) = (self.base(), &self.generation);
        write!(f, "{} {} with {now:?}", base.name(), base.version())
    }
}

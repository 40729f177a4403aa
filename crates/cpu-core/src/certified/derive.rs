//! Provides an engine's derived table while the engine already answers: loads it if an earlier
//! start saved it, otherwise derives it on all cores and saves it.
//!
//! Processes that use one model share the memory of its saved table. So of several that start
//! together one derives it, and the others wait for its file; and who has saved it uses the file,
//! too, and frees its own copy.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use contract::certificate::Lift;
use contract::{HasTable, Table};
use rayon::ThreadPool;

use super::cache;
use super::cache::KeepIn;
use super::tables::Tables;
use crate::InstructionSet;
use crate::full_scan::StartError;

/// The outcome for the derived table.
#[derive(Debug)]
pub struct TablesReport {
    /// The time until queries could use it.
    pub took: Duration,
    /// Its size; 0 if there is none.
    pub bytes: usize,
    /// Its origin, or why there is none.
    pub origin: Origin,
}

/// The origin of a derived table.
#[derive(Debug)]
pub enum Origin {
    /// Derived from the model, and saved.
    Built {
        /// The file.
        kept_in: PathBuf,
        /// What was wrong with an older file there.
        instead_of: Option<String>,
    },
    /// Derived from the model, and not saved, because it was not requested or for this reason.
    NotKept(Option<String>),
    /// Loaded from this file, where an earlier start saved it.
    Loaded(PathBuf),
    /// There is none, for this reason, so the full scan answers every query.
    None(String),
    /// Another one, by rows: derived from the first, for the rows of sets.
    ByRows,
    /// There is no table by rows, for this reason.
    NotByRows(String),
}

impl fmt::Display for TablesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (megabytes, seconds) = (self.bytes as f64 / 1e6, self.took.as_secs_f64());
        match &self.origin {
            Origin::Built { kept_in, instead_of } => {
                write!(f, "derived the scan table, {megabytes:.1} MB, in {seconds:.2} s")?;
                write!(f, "; saved in {}", kept_in.display())?;
                instead_of.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason})"))
            }
            Origin::NotKept(reason) => {
                write!(f, "derived the scan table, {megabytes:.1} MB, in {seconds:.2} s")?;
                reason.as_ref().map_or(Ok(()), |reason| write!(f, "; not saved: {reason}"))
            }
            Origin::Loaded(path) => {
                write!(f, "loaded the scan table, {megabytes:.1} MB, in {seconds:.3} s")?;
                write!(f, " from {}", path.display())
            }
            Origin::None(why) => {
                write!(f, "every query runs a full scan, which is slower: {why}")
            }
            Origin::ByRows => {
                write!(f, "derived the table for filters, {megabytes:.1} MB, in {seconds:.2} s")
            }
            Origin::NotByRows(why) => write!(f, "queries with filters are slower: {why}"),
        }
    }
}

/// Where a table is put once it is ready, and a saved one in its place.
#[derive(Debug)]
pub(super) struct Place<T>(RwLock<Option<Arc<T>>>);

impl<T> Place<T> {
    fn get(&self) -> Option<Arc<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whoever still uses the one that was there keeps it until then.
    pub(super) fn put(&self, table: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(table));
    }
}

/// A table as bytes.
pub(crate) struct TableBytes(pub(crate) Arc<Tables>);

impl Deref for TableBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// A table that is ready or being derived.
#[derive(Debug)]
pub(crate) struct Deriving<T> {
    place: Arc<Place<T>>,
    cancelled: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + Sync + 'static> Deriving<T> {
    /// Derives a table on a thread of its own. The work puts it into its place, and ends early if
    /// it is cancelled.
    ///
    /// # Errors
    /// If the system refuses to start the thread.
    pub(super) fn spawn(
        work: impl FnOnce(&Place<T>, &AtomicBool) + Send + 'static,
    ) -> io::Result<Self> {
        let mut deriving = Self::nothing();
        let (place, cancelled) = (deriving.place.clone(), deriving.cancelled.clone());
        let thread = std::thread::Builder::new().name("kindred-derive".into());
        deriving.thread = Some(thread.spawn(move || work(&place, &cancelled))?);
        Ok(deriving)
    }
}

impl<T> Deriving<T> {
    /// There will be no table.
    pub(crate) fn nothing() -> Self {
        let place = Arc::new(Place(RwLock::default()));
        Self { place, cancelled: Arc::default(), thread: None }
    }

    pub(crate) fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            // If it panicked, standard error has the message, and the engine continues without a
            // table.
            let _ = thread.join();
        }
    }

    /// As [`wait`](Self::wait), but not longer than this.
    pub(crate) fn wait_at_most(&self, longest: Duration) {
        const STEP: Duration = Duration::from_millis(1);
        let until = Instant::now() + longest;
        while self.is_under_way() && Instant::now() < until {
            std::thread::sleep(STEP);
        }
    }

    /// Whether there is no table yet, but may be one.
    pub(crate) fn is_under_way(&self) -> bool {
        self.ready().is_none() && self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// The table, once it is ready.
    pub(crate) fn ready(&self) -> Option<Arc<T>> {
        self.place.get()
    }
}

impl Deriving<Tables> {
    /// Loads or derives the planes of `model`'s table.
    ///
    /// # Errors
    /// If the system refuses to start the thread.
    pub(crate) fn start(
        model: &Arc<dyn HasTable>,
        lift: Lift,
        instructions: InstructionSet,
        threads: usize,
        file: Option<KeepIn>,
        before: Option<Box<dyn FnOnce() + Send>>,
        report: Option<Box<dyn FnOnce(TablesReport) + Send>>,
    ) -> Result<Self, StartError> {
        let model = model.clone();
        let started = Self::spawn(move |place, cancelled| {
            if let Some(before) = before {
                before();
            }
            let table = &model.table();
            let done = provide(table, lift, instructions, threads, file, place, cancelled);
            drop(model);
            if let (Some(done), Some(report)) = (done, report) {
                report(done);
            }
        });
        started.map_err(|source| StartError { threads: 1, source: source.into() })
    }
}

/// A stopping service does not wait for its table.
impl<T> Drop for Deriving<T> {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.wait();
    }
}

/// Puts the table of `model` into its place, loaded from the file or derived; `None` if that was
/// cancelled.
fn provide(
    model: &Table<'_>,
    lift: Lift,
    instructions: InstructionSet,
    threads: usize,
    file: Option<KeepIn>,
    place: &Place<Tables>,
    cancelled: &AtomicBool,
) -> Option<TablesReport> {
    let started = Instant::now();
    let (mut doubts, mut _alone) = (None, None);
    if let Some(file) = &file {
        let mut loaded = cache::load(file, model, lift);
        if !matches!(loaded, Ok(Some(_))) {
            // Who waited for another process finds its file. Who finds one at once waits for
            // nobody.
            _alone = file.lock(cancelled);
            loaded = cache::load(file, model, lift);
        }
        match loaded {
            Ok(Some(tables)) => {
                let bytes = tables.bytes().len();
                let origin = Origin::Loaded(file.path.clone());
                place.put(tables);
                return Some(TablesReport { took: started.elapsed(), bytes, origin });
            }
            Ok(None) => {}
            Err(why) => doubts = Some(why),
        }
    }
    let no_table = |why: String| {
        Some(TablesReport { took: started.elapsed(), bytes: 0, origin: Origin::None(why) })
    };
    let pool = match pool(threads) {
        Ok(pool) => pool,
        Err(why) => return no_table(why),
    };
    let tables = match Tables::build(model, lift, instructions, &pool, cancelled) {
        Ok(tables) => tables?,
        Err(e) => return no_table(format!("there is not enough memory for the scan table: {e}")),
    };
    let took = started.elapsed();
    let bytes = tables.bytes().len();
    let derived = tables.clone();
    place.put(tables);
    let Some(file) = file else {
        return Some(TablesReport { took, bytes, origin: Origin::NotKept(None) });
    };
    let origin = match cache::keep(&file, model, &derived, cancelled) {
        Ok(()) => {
            // If it can't be read, the copy in memory is as good.
            if let Ok(Some(kept)) = cache::load(&file, model, lift) {
                place.put(kept);
            }
            Origin::Built { kept_in: file.path, instead_of: doubts }
        }
        Err(why) => Origin::NotKept(Some(why)),
    };
    Some(TablesReport { took, bytes, origin })
}

/// Threads that derive a table, because the search threads are busy.
pub(super) fn pool(threads: usize) -> Result<ThreadPool, String> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("kindred-derive-{i}"))
        .build()
        .map_err(|e| format!("the threads that derive the scan table can't start: {e}"))
}

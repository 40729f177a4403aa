//! The exact graph of nearest neighbours: for each row of a model its k nearest others, in a file.
//!
//! Some threads ask for a range of rows each, and write the answers where they belong in tables of
//! known size; the thread that waits for them keeps the journal and shows the progress. At the end
//! the file is made of the tables. Memory does not grow with the model. What is done survives a
//! kill: it is in a folder beside the file, from which the same call goes on.

mod ask;
mod error;
mod journal;
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
mod partial;
mod tables;

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use model_store::ModelStore;
use serde::{Deserialize, Serialize};

use crate::asking::Asking;
use crate::jobs::{self, Cancellation, Keep, Searches, in_the_way};
use crate::options::MAX_K;
use ask::{Asker, Buffers};
pub use error::GraphError;
use journal::WrittenRange;
use partial::PartialGraph;

/// The form of the file of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFormat {
    /// NumPy's arrays, stored in a zip: `indices` int64 `[rows, k]`, `scores` float64 `[rows, k]`,
    /// `k`, `model`, `version`, `metric`.
    Npz,
    /// Apache Parquet: a line for each edge. Only in builds with the feature `parquet`.
    Parquet,
}

impl GraphFormat {
    /// The form that the name of a file asks for.
    ///
    /// # Errors
    /// [`GraphError::Name`]; [`GraphError::NoParquet`] in builds without it.
    pub fn of(file: &Path) -> Result<Self, GraphError> {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("npz") => Ok(Self::Npz),
            Some("parquet") if cfg!(feature = "parquet") => Ok(Self::Parquet),
            Some("parquet") => Err(GraphError::NoParquet(file.to_owned())),
            _ => Err(GraphError::Name(file.to_owned())),
        }
    }
}

/// Which graph to make, and how.
#[derive(Debug, Clone)]
pub struct GraphOptions {
    /// Neighbours of each row, 1 to [`MAX_K`].
    pub k: usize,
    /// The graph of the first N rows, and among them: the most frequent words. `None`: of all rows.
    pub first_rows: Option<usize>,
    /// Only neighbours with at least this score.
    pub min_score: Option<f64>,
    /// Whether a file that is there is replaced.
    pub replace: bool,
    /// Jobs in flight, each of up to 1,024 rows: two for each replica, and some that are being made
    /// or written.
    pub jobs: usize,
}

impl Default for GraphOptions {
    fn default() -> Self {
        Self { k: 10, first_rows: None, min_score: None, replace: false, jobs: 16 }
    }
}

/// How far a graph is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphProgress {
    /// Rows that are done, those of earlier runs included.
    pub done: u64,
    /// Of how many.
    pub rows: u64,
    /// Rows that earlier runs did.
    pub resumed: u64,
    /// The first row that is not done.
    pub first_open: u64,
}

/// A graph that was made.
#[derive(Debug, Clone, Serialize)]
pub struct GraphSummary {
    /// The file.
    pub file: PathBuf,
    /// The model's name.
    pub model: String,
    /// The version of its content.
    pub version: String,
    /// Number of rows.
    pub rows: u64,
    /// Neighbours of each row, at most.
    pub k: u64,
    /// Neighbours of all rows.
    pub edges: u64,
    /// Rows that earlier runs had done.
    pub resumed_rows: u64,
    /// In which the other rows were asked for and written, in seconds.
    pub asking_seconds: f64,
    /// With what came before and after: the check of what was there, and the making of the file.
    pub seconds: f64,
}

/// What decides every byte of a graph, and of the work on it. Devices do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Identity {
    /// Of the folder of work.
    format: u32,
    model: String,
    version: String,
    metric: String,
    rows: u64,
    k: u64,
    min_score: Option<f64>,
    /// Rows that are asked for in one job, and done or not done together.
    rows_per_range: u64,
}

impl Identity {
    const FORMAT: u32 = 2;

    fn new(model: &ModelStore, options: &GraphOptions) -> Result<Self, GraphError> {
        /// The most rows of a range: one pass of a GPU.
        const ROWS_PER_RANGE: u64 = 1024;
        /// The most neighbours of a range, so that its answers take little memory.
        const NEIGHBOURS_PER_RANGE: u64 = 65_536;
        let wrong = |field, expected| GraphError::Option { field, expected };
        let k = options.k as u64;
        if !(1..=MAX_K).contains(&k) {
            return Err(wrong("k", "a whole number from 1 to 1000"));
        }
        if options.first_rows == Some(0) {
            return Err(wrong("first_rows", "a whole number of at least 1"));
        }
        if options.min_score.is_some_and(|score| !score.is_finite()) {
            return Err(wrong("min_score", "a finite number"));
        }
        Ok(Self {
            format: Self::FORMAT,
            model: model.name().to_owned(),
            version: model.version().to_owned(),
            metric: model.table().metric().name().to_owned(),
            rows: options.first_rows.map_or(model.rows(), |first| first.min(model.rows())) as u64,
            k,
            min_score: options.min_score,
            rows_per_range: (NEIGHBOURS_PER_RANGE / k).clamp(64, ROWS_PER_RANGE),
        })
    }

    fn ranges(&self) -> u64 {
        self.rows.div_ceil(self.rows_per_range)
    }

    /// The rows of a range.
    fn range(&self, number: u64) -> std::ops::Range<u64> {
        let first = number * self.rows_per_range;
        first..self.rows.min(first + self.rows_per_range)
    }
}

/// Checks that a graph could be written here.
///
/// # Errors
/// See [`GraphError`].
pub fn check_file(file: &Path, replace: bool) -> Result<GraphFormat, GraphError> {
    let format = GraphFormat::of(file)?;
    match in_the_way(file, replace) {
        Some(reason) => Err(GraphError::InTheWay { path: file.to_owned(), reason }),
        None => Ok(format),
    }
}

/// Makes the graph of a model and writes it to `file`, complete or not at all. Goes on from what an
/// earlier call left.
///
/// `asking` gives what each job is asked through. `on_progress` is called ten times a second; a
/// break stops the work.
pub(crate) fn write<'a>(
    model: &Arc<ModelStore>,
    asking: &(dyn Fn() -> Asking<'a> + Sync),
    file: &Path,
    options: &GraphOptions,
    on_progress: &mut dyn FnMut(GraphProgress) -> ControlFlow<()>,
) -> Result<GraphSummary, GraphError> {
    let started = Instant::now();
    let format = check_file(file, options.replace)?;
    let identity = Identity::new(model, options)?;
    let mut graph = PartialGraph::open(file, identity)?;
    let resumed_rows = graph.rows_done();
    let asked = Instant::now();
    ask_for_all(model, asking, &mut graph, options.jobs.max(1), on_progress)?;
    let asking_seconds = asked.elapsed().as_secs_f64();
    let (edges, identity) = (graph.edges(), graph.identity().clone());
    // Something may have come there meanwhile.
    check_file(file, options.replace)?;
    graph.finish(file, format, model)?;
    let Identity { model, version, rows, k, .. } = identity;
    let seconds = started.elapsed().as_secs_f64();
    let file = file.to_owned();
    Ok(GraphSummary { file, model, version, rows, k, edges, resumed_rows, asking_seconds, seconds })
}

/// Keeps which ranges are written, on the thread that waits for them.
struct Keeper<'a> {
    graph: &'a mut PartialGraph,
    resumed: u64,
    on_progress: &'a mut dyn FnMut(GraphProgress) -> ControlFlow<()>,
}

impl Keep<WrittenRange, GraphError> for Keeper<'_> {
    const IN_ORDER: bool = false;

    fn keep(&mut self, range: WrittenRange) -> Result<(), GraphError> {
        self.graph.add(range);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), GraphError> {
        Ok(self.graph.journal.commit_beside()?)
    }

    fn tell(&mut self) -> ControlFlow<()> {
        (self.on_progress)(self.graph.progress(self.resumed))
    }

    fn no_thread(&self, source: io::Error) -> GraphError {
        GraphError::io("start a thread for", self.graph.journal.folder())(source)
    }
}

fn ask_for_all<'a>(
    model: &Arc<ModelStore>,
    asking: &(dyn Fn() -> Asking<'a> + Sync),
    graph: &mut PartialGraph,
    in_flight: usize,
    on_progress: &mut dyn FnMut(GraphProgress) -> ControlFlow<()>,
) -> Result<(), GraphError> {
    let (ranges, resumed) = (graph.open_ranges(), graph.rows_done());
    let (cancellation, tables) = (Cancellation::new(), graph.tables.clone());
    let (threads, most) = (in_flight.min(ranges.len()), tables.identity.rows_per_range as usize);
    let mut keeper = Keeper { graph, resumed, on_progress };
    let worker = |number| {
        let searches = Searches::new(asking, &cancellation, most, (number, threads))?;
        let buffers = Buffers::default();
        let mut asker = Asker { model, tables: &tables, searches, buffers };
        Ok::<_, io::Error>(move |range| asker.ask(range))
    };
    let workers: io::Result<Vec<_>> = (0..threads).map(worker).collect();
    let workers = workers.map_err(|source| keeper.no_thread(source))?;
    let ranges = ranges.into_iter();
    let ran = jobs::run("kindred-graph", workers, ranges, &mut keeper, &cancellation);
    ran.and(keeper.graph.journal.commit().map_err(GraphError::from))?;
    let _ = keeper.tell();
    if keeper.graph.is_complete() { Ok(()) } else { Err(keeper.graph.stopped()) }
}

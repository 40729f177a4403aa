//! The exact graph of nearest neighbours: for each row of a model its k nearest others, in a file.
//!
//! Some threads ask for a range of rows each, and write the answers where they belong in tables of
//! known size; the thread that waits for them keeps the journal and shows the progress. At the end
//! the file is made of the tables. Memory does not grow with the model. What is done survives a
//! kill: it is in a folder beside the file, from which the same call goes on.

mod ask;
mod journal;
mod live_rows;
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
mod partial;
mod places;
mod tables;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use contract::RowSet;
use kindred::Kindred;
use kindred::options::MAX_K;
use serde::Serialize;
use serde_json::Value;

use crate::cancellation::Cancellation;
use crate::error::JobError;
use crate::journal::{Description, check_free};
use crate::requests::Searches;
use crate::run::{self, Keep};
use ask::{Asker, Buffers};
use live_rows::LiveRows;
use partial::PartialGraph;

/// The form of the file of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFormat {
    /// NumPy's arrays, stored in a zip: `indices` int64 `[rows, k]`, `scores` float64 `[rows, k]`,
    /// `k`, `model`, `version`, `metric`; of a table that changes, also `position` and `numbers`
    /// int64 `[rows]`, the numbers that answers have for the rows.
    Npz,
    /// Apache Parquet: a line for each edge. Only in builds with the feature `parquet`.
    Parquet,
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
    /// Only neighbours that meet this filter. All rows have neighbours.
    pub filter: Option<String>,
    /// Whether a file that is there is replaced.
    pub replace: bool,
    /// Jobs in flight, each of up to 1,024 rows: two for each replica, and some that are being made
    /// or written.
    pub jobs: usize,
}

impl Default for GraphOptions {
    fn default() -> Self {
        let (first_rows, min_score, filter) = (None, None, None);
        Self { k: 10, first_rows, min_score, filter, replace: false, jobs: 16 }
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
    /// The position of the rows, of a table that changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
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
#[derive(Debug, Clone, Serialize)]
struct Identity {
    /// Of the folder of work.
    format: u32,
    model: String,
    version: String,
    /// Of a table that changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    metric: String,
    rows: u64,
    k: u64,
    min_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    /// Rows that are asked for in one job, and done or not done together.
    rows_per_range: u64,
}

impl Identity {
    const FORMAT: u32 = 3;

    fn new(live: &LiveRows<'_>, options: &GraphOptions) -> Result<Self, JobError> {
        /// The most rows of a range: one pass of a GPU.
        const ROWS_PER_RANGE: u64 = 1024;
        /// The most neighbours of a range, so that its answers take little memory.
        const NEIGHBOURS_PER_RANGE: u64 = 65_536;
        let k = options.k as u64;
        let must_be = [
            (!(1..=MAX_K).contains(&k), "`k` must be a whole number from 1 to 1000"),
            (options.first_rows == Some(0), "`first_rows` must be a whole number of at least 1"),
            (
                options.min_score.is_some_and(|score| !score.is_finite()),
                "`min_score` must be a finite number",
            ),
        ];
        if let Some((_, must_be)) = must_be.into_iter().find(|(is_wrong, _)| *is_wrong) {
            return Err(JobError::Refused(must_be.to_owned()));
        }
        let (model, count) = (live.rows(), live.count());
        if count == 0 {
            return Err(JobError::Refused("the table has no rows".to_owned()));
        }
        Ok(Self {
            format: Self::FORMAT,
            model: model.base().name().to_owned(),
            version: model.version().to_owned(),
            position: model.snapshot().map(|snapshot| snapshot.position()),
            metric: model.metric().name().to_owned(),
            rows: options.first_rows.map_or(count, |first| first.min(count)) as u64,
            k,
            min_score: options.min_score,
            filter: options.filter.clone(),
            rows_per_range: (NEIGHBOURS_PER_RANGE / k).clamp(64, ROWS_PER_RANGE),
        })
    }

    /// As the journal has it.
    fn description(&self) -> Description {
        match serde_json::to_value(self) {
            Ok(Value::Object(description)) => description,
            _ => unreachable!("numbers and texts by name"),
        }
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

/// Checks that a graph could be written here, and returns the form that the file's name asks for.
///
/// # Errors
/// If the name asks for none, or for Parquet in a build without it, or something is in the way.
pub fn check_file(file: &Path, replace: bool) -> Result<GraphFormat, JobError> {
    let name = file.display();
    let format = match file.extension().and_then(|extension| extension.to_str()) {
        Some("npz") => GraphFormat::Npz,
        Some("parquet") if cfg!(feature = "parquet") => GraphFormat::Parquet,
        Some("parquet") => {
            return Err(JobError::no_parquet(&name.to_string(), "a name that ends in .npz"));
        }
        _ => {
            let reason = format!("{name}: the name must end in .npz or .parquet");
            return Err(JobError::Refused(reason));
        }
    };
    check_free(file, replace).map(|()| format)
}

/// Writes the exact graph of nearest neighbours to `file`: for each row its `k` nearest others,
/// with the rows and score bits that [`Kindred::nearest`] gives. Waits until the file is complete.
///
/// The name says the form, [`.npz` or `.parquet`](GraphFormat). Rows without `k` neighbours are
/// filled up with index −1 and score NaN. Work that was killed or stopped is in a folder beside the
/// file, and the same call goes on from there. `on_progress` is called ten times a second; a break
/// stops the work.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use jobs::graph::{self, GraphOptions};
/// use kindred::{Kindred, Model, Settings};
///
/// let folder = tempfile::tempdir()?;
/// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
/// let options = GraphOptions { k: 5, first_rows: Some(1000), ..GraphOptions::default() };
/// let file = folder.path().join("graph.npz");
/// let made = graph::make(&kindred, &file, &options, |_| ControlFlow::Continue(()))?;
/// assert_eq!((made.rows, made.edges), (1000, 5000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`JobError`].
pub fn make(
    kindred: &Kindred,
    file: &Path,
    options: &GraphOptions,
    mut on_progress: impl FnMut(GraphProgress) -> ControlFlow<()>,
) -> Result<GraphSummary, JobError> {
    let started = Instant::now();
    let format = check_file(file, options.replace)?;
    // Of a table that changes, all rows are those of one position.
    let (kindred, at) = (&kindred.for_long_work(), kindred.at());
    let rows = LiveRows::new(match &at {
        Some(at) => &**at,
        None => kindred.model().store(),
    });
    let identity = Identity::new(&rows, options)?;
    let within = rows.within(kindred, options.filter.as_deref(), identity.rows)?;
    let mut graph = PartialGraph::open(file, identity, &mut on_progress)?;
    let resumed_rows = graph.resumed;
    let asked = Instant::now();
    ask_for_all(kindred, (&rows, &within), &mut graph, options.jobs.max(1))?;
    let asking_seconds = asked.elapsed().as_secs_f64();
    let (edges, identity) = (graph.edges(), graph.tables.identity.clone());
    // Something may have come there meanwhile.
    check_file(file, options.replace)?;
    graph.finish(file, format, &rows)?;
    let Identity { model, version, position, rows, k, .. } = identity;
    let seconds = started.elapsed().as_secs_f64();
    let file = file.to_owned();
    Ok(GraphSummary {
        file,
        model,
        version,
        position,
        rows,
        k,
        edges,
        resumed_rows,
        asking_seconds,
        seconds,
    })
}

fn ask_for_all(
    kindred: &Kindred,
    (rows, within): (&LiveRows<'_>, &RowSet),
    graph: &mut PartialGraph<'_>,
    in_flight: usize,
) -> Result<(), JobError> {
    let asking = || kindred.asking(None);
    let (ranges, cancellation) = (graph.open_ranges(), Cancellation::new());
    let tables = graph.tables.clone();
    let (threads, most) = (in_flight.min(ranges.len()), tables.identity.rows_per_range as usize);
    let worker = |number| {
        let searches = Searches::new(&asking, &cancellation, most, (number, threads))?;
        let buffers = Buffers::default();
        let mut asker = Asker { rows, within, tables: &tables, searches, buffers };
        Ok::<_, JobError>(move |range| asker.ask(range))
    };
    let workers = (0..threads).map(worker).collect::<Result<Vec<_>, _>>()?;
    let ran = run::run("kindred-graph", workers, ranges.into_iter(), graph, &cancellation);
    ran.and(graph.journal.commit())?;
    let _ = graph.tell();
    let (done, rows) = (graph.rows_done, tables.identity.rows);
    if done == rows {
        return Ok(());
    }
    let done = format!("{} % of {rows}", done * 100 / rows);
    Err(JobError::Stopped { done, folder: tables.folder.clone() })
}

//! The search: the engine, what it is made of and how it starts.

mod answer;
mod exchange;
mod kernels;
mod pace;
mod pass;
mod plan;
mod workspace;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use contract::{Engine, EngineDescription, EngineError, Hit, Query, QueryBatch};
use cust::event::{Event, EventFlags};
use cust::stream::{Stream, StreamFlags};
use model_store::ModelStore;

use crate::driver::{Doing, Gpu, Graph};
use crate::resident::{Tables, fit, int4_bytes, int8_bytes, table_bytes};
use crate::{GpuError, Options};
pub(crate) use kernels::Kernels;
use pace::Pace;
use pass::Pass;
use plan::Class;
pub(crate) use workspace::Sizes;
use workspace::{MAX_BATCH, Workspace};

/// Which ways to an answer the engine may take; tests and benchmarks choose, everyone else takes
/// [`Paths::default`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paths {
    /// Only what every supported device can run.
    pub portable: bool,
    /// Build and scan the 8-bit table. Without it each query reads the float32 table.
    pub int8: bool,
    /// Build the 4-bit table and scan it for queries that come alone.
    pub int4: bool,
    /// Where the float32 table is read, score rows in float32 first, and in float64 only those that may
    /// be an answer. Without it every row is scored in float64.
    pub float32: bool,
    /// The derived tables are not scanned for tables of fewer rows.
    pub certified_from_rows: usize,
}

impl Default for Paths {
    fn default() -> Self {
        Self { portable: false, int8: true, int4: true, float32: true, certified_from_rows: 16_384 }
    }
}

/// What the certificates cost, since the engine started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Passes over a table.
    pub passes: u64,
    /// Queries answered by a certified pass.
    pub certified: u64,
    /// Queries for which the float32 table was read, because they asked for few rows or very many hits.
    pub exact: u64,
    /// Queries that the 4-bit scan left with too many rows in doubt, so that the 8-bit scan took them.
    pub retried: u64,
    /// Queries of a certified pass that had to be asked again, since too many rows stayed in doubt.
    pub fallbacks: u64,
    /// Rows that scans could not rule out.
    pub candidates: u64,
    /// Rows that were scored in float64 after a scan.
    pub survivors: u64,
}

/// Searches a model's table in the memory of an NVIDIA GPU.
pub struct CudaEngine {
    // In the order in which they must go: what the device has, then the device.
    graphs: HashMap<GraphKey, Graph>,
    timing: Option<[Event; 2]>,
    workspace: Workspace,
    tables: Tables,
    kernels: Kernels,
    stream: Stream,
    gpu: Gpu,
    model: Arc<ModelStore>,
    paths: Paths,
    counters: Counters,
    device_time: Duration,
    pace: Pace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GraphKey {
    Int4,
    Int8(usize, Class),
}

impl GraphKey {
    fn width_and_class(self) -> (usize, Class) {
        match self {
            Self::Int4 => (1, Class::Small),
            Self::Int8(width, class) => (width, class),
        }
    }
}

impl CudaEngine {
    /// Opens the GPU, uploads the table and derives from it what the scans need.
    ///
    /// # Errors
    /// If there is no such GPU, or the table does not fit.
    pub fn new(model: &Arc<ModelStore>, options: Options<'_>) -> Result<Self, GpuError> {
        Self::with_paths(model, options, Paths::default())
    }

    /// The same with these ways to an answer only.
    ///
    /// # Errors
    /// As [`CudaEngine::new`].
    pub fn with_paths(
        model: &Arc<ModelStore>,
        options: Options<'_>,
        paths: Paths,
    ) -> Result<Self, GpuError> {
        let gpu = Gpu::open(options.ordinal)?;
        let table = model.table();
        let (rows, dim) = (table.rows(), table.dim());
        let kernels = Kernels::load(&gpu, dim, paths.portable)?;
        let sizes = Sizes::new(rows, dim, kernels.int8.padded);
        let derived = fit(&gpu, rows, dim, &sizes, paths)?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None).doing("making a stream")?;
        let total = table_bytes(rows, dim) as u64;
        let mut progress = options.progress;
        let tables = Tables::upload(model, &kernels, &stream, derived, |done| {
            if let Some(progress) = &mut progress {
                progress(done, total);
            }
        })?;
        let workspace = Workspace::new(sizes)?;
        let (graphs, counters) = (HashMap::new(), Counters::default());
        let model = model.clone();
        let (device_time, pace) = (Duration::ZERO, Pace::new(kernels.int8.widths));
        let mut engine = Self {
            graphs,
            timing: None,
            workspace,
            tables,
            kernels,
            stream,
            gpu,
            model,
            paths,
            counters,
            device_time,
            pace,
        };
        engine.record_graphs()?;
        Ok(engine)
    }

    /// Measures the device's time of each pass from now on, for [`CudaEngine::device_time`].
    ///
    /// # Errors
    /// If the device has no more events.
    pub fn measure(&mut self) -> Result<(), GpuError> {
        let event = || Event::new(EventFlags::DEFAULT).doing("making an event");
        self.timing = Some([event()?, event()?]);
        Ok(())
    }

    /// From the first byte uploaded to the last byte downloaded, in the last call of `search`.
    pub fn device_time(&self) -> Duration {
        self.device_time
    }

    /// What the certificates cost.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Device memory in use beyond the float32 table, as a share of it.
    pub fn extra_memory(&self) -> f64 {
        let (rows, dim) = (self.tables.rows, self.tables.dim);
        let quantised = self.tables.quantised.as_ref();
        let bytes = 8 * rows
            + quantised.map_or(0, |_| int8_bytes(rows, dim))
            + quantised.and_then(|q| q.int4.as_ref()).map_or(0, |_| int4_bytes(rows, dim))
            + Sizes::new(rows, dim, self.kernels.int8.padded).bytes();
        bytes as f64 / (4 * rows * dim) as f64
    }

    fn pass(&self) -> Pass<'_> {
        Pass {
            tables: &self.tables,
            kernels: &self.kernels,
            workspace: &self.workspace,
            stream: &self.stream,
            multiprocessors: self.gpu.multiprocessors as usize,
            early: self.gpu.capability >= 90 && self.kernels.wait,
        }
    }

    fn record_graphs(&mut self) -> Result<(), GpuError> {
        let Some(quantised) = &self.tables.quantised else { return Ok(()) };
        let pass = self.pass();
        let mut graphs = HashMap::new();
        if let Some(int4) = &quantised.int4 {
            let graph = Graph::record(&self.stream, || pass.int4(quantised, int4))?;
            graphs.insert(GraphKey::Int4, graph);
        }
        for &width in self.kernels.int8.widths {
            for class in Class::ALL {
                if width <= class.max_batch() {
                    let graph = Graph::record(&self.stream, || pass.int8(quantised, width, class))?;
                    graphs.insert(GraphKey::Int8(width, class), graph);
                }
            }
        }
        self.stream.synchronize().doing("preparing the passes")?;
        self.graphs = graphs;
        Ok(())
    }
}

impl Engine for CudaEngine {
    fn description(&self) -> EngineDescription {
        let Gpu { name, ordinal, capability, .. } = &self.gpu;
        let how = match (&self.tables.quantised, self.kernels.int8.ring) {
            (None, _) if self.paths.float32 => "certified float32 scan",
            (None, _) => "float64 scan",
            (Some(q), ring) => match (q.int4.is_some(), ring.is_some()) {
                (true, true) => "certified 4-bit and 8-bit scans (wgmma)",
                (true, false) => "certified 4-bit and 8-bit scans (mma)",
                (false, true) => "certified 8-bit scan (wgmma)",
                (false, false) => "certified 8-bit scan (mma)",
            },
        };
        let detail = format!(
            "{name} (cuda:{ordinal}, compute capability {}.{}), {how}",
            capability / 10,
            capability % 10
        );
        EngineDescription { name: "cuda", detail }
    }

    fn preferred_batch(&self, waiting: usize) -> usize {
        self.pace.best(waiting).min(MAX_BATCH)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let Counters { passes, certified, exact, retried, fallbacks, candidates, survivors } =
            self.counters;
        vec![
            ("passes", passes),
            ("certified", certified),
            ("exact", exact),
            ("retried", retried),
            ("fallbacks", fallbacks),
            ("candidates", candidates),
            ("survivors", survivors),
        ]
    }

    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
        let found = self.search_meanwhile(batch, &mut || ())?;
        let answers = found.into_iter().zip(batch.queries()).map(|(hits, query)| match hits {
            Some(hits) => Ok(hits),
            None => self.ranked_on_the_host(query).map_err(failed),
        });
        answers.collect()
    }

    fn search_meanwhile(
        &mut self,
        batch: &QueryBatch<'_>,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        if !batch.fits(&self.model.table()) {
            return Err(EngineError::ForeignQuery);
        }
        self.device_time = Duration::ZERO;
        self.answer(batch.queries(), meanwhile).map_err(failed)
    }

    fn search_cost(&self, query: &Query) -> usize {
        self.cost(query)
    }
}

fn failed(error: GpuError) -> EngineError {
    EngineError::Device(error.to_string())
}

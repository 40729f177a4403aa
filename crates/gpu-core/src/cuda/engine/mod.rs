//! The search: which pass takes which query, and what becomes of those without a certificate.

mod kernels;
mod pass;
mod plan;
mod tables;
mod wire;
mod workspace;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cust::event::{Event, EventFlags};
use cust::stream::{Stream, StreamFlags};
use model_store::{
    Engine, EngineDescription, EngineError, Hit, ModelStore, Query, QueryBatch, QueryVector, Row,
    TopK,
};

use super::Gpu;
use super::device::Doing;
use super::launch::Graph;
use super::memory::start_upload;
use crate::{GpuError, Options};
use kernels::{Kernels, MAX_K};
use pass::Pass;
use plan::Class;
use tables::{Derived, Tables, int4_bytes, int8_bytes, table_bytes};
use wire::{ANSWERED, NOT_A_ROW, QueryHeader};
use workspace::{MAX_BATCH, MAX_EXCLUDED, Sizes, Workspace};

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GraphKey {
    Int4,
    Int8(usize, Class),
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
        let device_time = Duration::ZERO;
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
            early: self.gpu.capability >= 90,
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
        for width in Pass::widths(&self.kernels.int8) {
            for class in [Class::Small, Class::Medium, Class::Large] {
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

    /// The class of the certified pass that takes this query, if one does.
    fn certified_class(&self, query: &Query) -> Option<Class> {
        let rows = self.tables.rows;
        let filter = query.filter();
        let all_rows = filter.row_limit(rows) == rows;
        let large = rows >= self.paths.certified_from_rows;
        if self.tables.quantised.is_some() && all_rows && large {
            Class::of(query.k(), filter.excluded().len())
        } else {
            None
        }
    }

    fn answer(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, GpuError> {
        let mut answers: Vec<Vec<Hit>> = vec![Vec::new(); batch.len()];
        let mut certified: [Vec<usize>; 3] = Default::default();
        let mut exact = Vec::new();
        for (place, query) in batch.iter().enumerate() {
            match self.certified_class(query) {
                _ if query.k() == 0 => {}
                Some(class) => certified[class as usize].push(place),
                None => exact.push(place),
            }
        }
        self.counters.exact += exact.len() as u64;
        for (class, places) in
            [Class::Small, Class::Medium, Class::Large].into_iter().zip(certified)
        {
            for places in self.pieces(batch, &places, class.max_batch()) {
                let doubtful = self.certified(batch, &places, class, &mut answers)?;
                self.counters.fallbacks += doubtful.len() as u64;
                exact.extend(doubtful);
            }
        }
        let (listed, unlisted): (Vec<_>, Vec<_>) =
            exact.into_iter().partition(|&place| is_listed(batch[place]));
        for places in self.pieces(batch, &listed, 64) {
            self.exact(batch, &places, &mut answers)?;
        }
        for place in unlisted {
            answers[place] = self.ranked_on_the_host(batch[place])?;
        }
        Ok(answers)
    }

    /// Cuts a batch into pieces that one pass takes: so many queries, so many excluded rows.
    fn pieces(&self, batch: &[&Query], places: &[usize], max: usize) -> Vec<Vec<usize>> {
        let mut pieces: Vec<Vec<usize>> = Vec::new();
        let mut excluded = usize::MAX;
        for &place in places {
            let more = batch[place].filter().excluded().len();
            match pieces.last_mut() {
                Some(piece) if piece.len() < max && excluded + more <= MAX_EXCLUDED => {
                    piece.push(place);
                    excluded += more;
                }
                _ => {
                    pieces.push(vec![place]);
                    excluded = more;
                }
            }
        }
        pieces
    }

    /// One certified pass; returns the places of the queries that have no certificate.
    fn certified(
        &mut self,
        batch: &[&Query],
        places: &[usize],
        class: Class,
        answers: &mut [Vec<Hit>],
    ) -> Result<Vec<usize>, GpuError> {
        let alone =
            places.len() == 1 && class == Class::Small && self.graphs.contains_key(&GraphKey::Int4);
        if alone {
            let doubtful = self.run(batch, places, GraphKey::Int4, 1, class, answers)?;
            if doubtful.is_empty() {
                return Ok(doubtful);
            }
        }
        let width = Pass::widths(&self.kernels.int8)
            .into_iter()
            .find(|&width| width >= places.len())
            .unwrap_or(MAX_BATCH);
        self.run(batch, places, GraphKey::Int8(width, class), width, class, answers)
    }

    fn run(
        &mut self,
        batch: &[&Query],
        places: &[usize],
        key: GraphKey,
        width: usize,
        class: Class,
        answers: &mut [Vec<Hit>],
    ) -> Result<Vec<usize>, GpuError> {
        self.begin()?;
        self.upload_queries(batch, places, width)?;
        self.graphs[&key].launch(&self.stream)?;
        self.end()?;
        let doubtful = self.collect(batch, places, class.stride(), answers);
        self.counters.certified += (places.len() - doubtful.len()) as u64;
        Ok(doubtful)
    }

    fn exact(
        &mut self,
        batch: &[&Query],
        places: &[usize],
        answers: &mut [Vec<Hit>],
    ) -> Result<(), GpuError> {
        let most = places.iter().map(|&place| batch[place].k()).max().unwrap_or(0);
        let class = Class::of(most, 0).unwrap_or(Class::Large);
        self.begin()?;
        self.upload_queries(batch, places, places.len())?;
        self.pass().exact(places.len(), class, self.paths.float32)?;
        self.end()?;
        self.collect(batch, places, class.stride(), answers);
        Ok(())
    }

    /// For more hits or excluded rows than the device's lists hold: the device scores, the host ranks.
    fn ranked_on_the_host(&mut self, query: &Query) -> Result<Vec<Hit>, GpuError> {
        self.begin()?;
        self.upload_queries(&[query], &[0], 1)?;
        let headers = &self.workspace.headers;
        start_upload(&headers.host, &headers.device, 1, &self.stream)?;
        let limit = query.filter().row_limit(self.tables.rows);
        let step = self.workspace.scratch.len();
        let mut best = TopK::new(query.k());
        for first in (0..limit).step_by(step) {
            let count = step.min(limit - first);
            self.pass().score_rows(first, count)?;
            self.stream.synchronize().doing("scoring rows")?;
            for (i, bits) in self.workspace.scratch.read()?[..count].iter().enumerate() {
                let hit = Hit { row: Row((first + i) as u32), score: f64::from_bits(*bits) };
                // Rows of norm zero come as -2.
                if hit.score >= -1.0
                    && best.admits(hit)
                    && query.filter().admits(hit.row, hit.score)
                {
                    best.push(hit);
                }
            }
        }
        self.end()?;
        Ok(best.into_sorted())
    }

    fn begin(&mut self) -> Result<(), GpuError> {
        self.counters.passes += 1;
        if let Some([start, _]) = &self.timing {
            start.record(&self.stream).doing("recording an event")?;
        }
        Ok(())
    }

    /// The one wait of a pass.
    fn end(&mut self) -> Result<(), GpuError> {
        if let Some([_, end]) = &self.timing {
            end.record(&self.stream).doing("recording an event")?;
        }
        self.stream.synchronize().doing("searching")?;
        if let Some([start, end]) = &self.timing {
            let milliseconds = end.elapsed_time_f32(start).doing("reading an event")?;
            self.device_time += Duration::from_secs_f64(f64::from(milliseconds) / 1e3);
        }
        Ok(())
    }

    /// Fills the pinned headers, and starts the upload of what only some queries have: vectors and
    /// lists of excluded rows.
    fn upload_queries(
        &mut self,
        batch: &[&Query],
        places: &[usize],
        width: usize,
    ) -> Result<(), GpuError> {
        let (dim, rows) = (self.tables.dim, self.tables.rows as u32);
        let Workspace { headers, vectors, excluded, .. } = &mut self.workspace;
        let (mut vector_count, mut excluded_count) = (0, 0);
        for (header, &place) in headers.host.iter_mut().zip(places) {
            let query = batch[place];
            let filter = query.filter();
            *header = QueryHeader {
                norm: query.norm(),
                min_score: filter.min_score.unwrap_or(f64::NEG_INFINITY),
                row: NOT_A_ROW,
                vector: vector_count,
                k: query.k() as u32,
                first_rows: filter.row_limit(rows as usize) as u32,
                excluded: excluded_count as u32,
                excluded_count: filter.excluded().len() as u32,
            };
            match query.vector() {
                QueryVector::Row(row) => header.row = row.0,
                QueryVector::Components(components) => {
                    vectors.host[vector_count as usize * dim..][..dim].copy_from_slice(components);
                    vector_count += 1;
                }
            }
            match filter.excluded() {
                [] => {}
                [row] => header.excluded = row.0,
                // Longer ones are the host's affair.
                list if list.len() > MAX_EXCLUDED => header.excluded_count = 0,
                list => {
                    for (to, row) in excluded.host[excluded_count..].iter_mut().zip(list) {
                        *to = row.0;
                    }
                    excluded_count += list.len();
                }
            }
        }
        headers.host[places.len()..width.max(places.len())].fill(bytemuck::Zeroable::zeroed());
        if vector_count > 0 {
            let count = vector_count as usize * dim;
            start_upload(&vectors.host, &vectors.device, count, &self.stream)?;
        }
        if excluded_count > 0 {
            start_upload(&excluded.host, &excluded.device, excluded_count, &self.stream)?;
        }
        Ok(())
    }

    /// Takes the answers out of the pinned results; returns the places of queries without one.
    fn collect(
        &mut self,
        batch: &[&Query],
        places: &[usize],
        stride: usize,
        answers: &mut [Vec<Hit>],
    ) -> Vec<usize> {
        let mut doubtful = Vec::new();
        let answered = self.workspace.answers.host.chunks(1 + stride);
        for (answer, &place) in answered.zip(places) {
            let result = answer[0].result();
            self.counters.candidates += u64::from(result.candidates);
            self.counters.survivors += u64::from(result.survivors);
            if result.status == ANSWERED {
                debug_assert!(result.count as usize <= batch[place].k());
                let hits = answer[1..=result.count as usize].iter().map(|answer| answer.hit());
                answers[place] =
                    hits.map(|hit| Hit { row: Row(hit.row), score: hit.score }).collect();
            } else {
                doubtful.push(place);
            }
        }
        doubtful
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

    fn preferred_batch(&self) -> usize {
        MAX_BATCH
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let Counters { passes, certified, exact, fallbacks, candidates, survivors } = self.counters;
        vec![
            ("passes", passes),
            ("certified", certified),
            ("exact", exact),
            ("fallbacks", fallbacks),
            ("candidates", candidates),
            ("survivors", survivors),
        ]
    }

    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
        if !batch.fits(&self.model.table()) {
            return Err(EngineError::ForeignQuery);
        }
        self.device_time = Duration::ZERO;
        self.answer(batch.queries()).map_err(|e| EngineError::Device(e.to_string()))
    }
}

/// Whether the device's lists take what a query asks and excludes.
fn is_listed(query: &Query) -> bool {
    query.k() <= MAX_K && query.filter().excluded().len() <= MAX_EXCLUDED
}

/// Which derived tables fit the device's free memory, beside the table.
fn fit(
    gpu: &Gpu,
    rows: usize,
    dim: usize,
    sizes: &Sizes,
    paths: Paths,
) -> Result<Derived, GpuError> {
    /// Left to the driver, to modules and to allocation's rounding.
    const RESERVE: u64 = 256 << 20;
    let free = gpu.free_memory()?;
    let (table, workspace) = (table_bytes(rows, dim) as u64, sizes.bytes() as u64);
    let int8 = (int8_bytes(rows, dim) + 4 * rows) as u64;
    let int4 = int4_bytes(rows, dim) as u64;
    let needed = table + workspace + RESERVE;
    if needed > free {
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        let parts = format!(
            "table {:.2}, buffers {:.2}, reserve {:.2}",
            gigabytes(table),
            gigabytes(workspace),
            gigabytes(RESERVE)
        );
        let (name, total) = (gpu.name.clone(), gpu.total_memory);
        return Err(GpuError::DoesNotFit { name, parts, needed, free, total });
    }
    let with_int8 = paths.int8 && needed + int8 <= free;
    let with_int4 = with_int8 && paths.int4 && needed + int8 + int4 <= free;
    Ok(Derived { int8: with_int8, int4: with_int4 })
}

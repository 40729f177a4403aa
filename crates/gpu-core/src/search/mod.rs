//! Certified search over resident tables: the engine and its parts.
//!
//! # Algorithm
//!
//! As on the CPU, rounded copies of rows and queries bound each score, and only rows whose upper
//! bound reaches a query's floor are scored. The table is in tiles of rows that share a step. The
//! steps of a pass are kernels of one stream, and the host waits at its end. Those of a certified
//! pass are recorded once, as a graph.
//!
//! ```text
//! each query → certified, by its k | every row from a minimum score on | exact
//! certified, in pieces that fit one pass:
//!     prepare     round the queries to 8 bits, with their errors
//!     sample      bounds of one tile in 8 to 32; thresholds ← a lower bound of the k-th best
//!     scan        the tiles, in one to three phases:
//!                     candidates += rows whose upper bound reaches the query's threshold
//!                     between phases: raise the thresholds by the candidates so far
//!     rescore     candidates that reach the last floor, by the formula; keep the best k
//! one query alone, of a small k: the 4-bit table is scanned; without a certificate, the 8-bit one
//! every row from a minimum on: the threshold is known, so there is no sample
//! a few queries with sets of few rows: each member is scored, and no other row is read
//! without a certificate: every row is scored for a cosine; a formula, and what does not fit the
//!     lists, is left to a full pass
//! ```
//!
//! # Why the answer is exact
//!
//! A threshold is computed from `k` lower bounds of different rows, so a row below it has `k` rows
//! above it. Tiles are scanned once each, in any order: thresholds only rise, and one that is late
//! only leaves more candidates. A query whose candidates overflow its part of the list has no
//! certificate, and is answered in another way. The rest is scored by the formula
//! (docs/certificate.md).
//!
//! # Cost
//!
//! A pass reads `rows · dim` bytes once for all of its queries, half of that with 4 bits, and
//! multiplies `rows · dim · queries` integers. The host's part is to write queries and to read
//! answers, while another pass runs (`overlap`).
//!
//! # Files
//!
//! - `start`: making the engine; `graphs`: recorded passes;
//! - `answer`: which pass takes which query; `overlap`: passes that start before the last one is
//!   over; `exchange`: queries in, answers out; `pace`: how many queries to take;
//! - `every_hit`: queries for every row from a minimum score on; `expand`: texts as searches for
//!   their tokens; `expanders`: whose terms;
//! - `borrowed`: forward and sums of rows for an expander in another library's memory;
//! - `cost`: what requests cost; `demand`: the slots and lists that a query needs;
//! - `plan`: the sizes of a pass; `pass`: its kernels in order; `launches`: each kernel's
//!   parameters and grid;
//! - `kernels`: the kernels for this device; `workspace`: every buffer; `abi`: what is shared with
//!   CUDA.

pub(crate) mod abi;
mod answer;
mod borrowed;
mod cost;
mod demand;
mod every_hit;
mod exchange;
pub(crate) mod expand;
mod expanders;
mod formula;
mod graphs;
mod kernels;
mod launches;
mod overlap;
mod pace;
mod pass;
mod paths;
mod plan;
mod start;
mod workspace;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::{
    Device, EngineDescription, EngineError, Expansion, FullPassEngine, FullPassPart, FullPassQuery,
    HeadEngine, Hit, Metric, PartOfExpansion, Query, QueryVector, SearchEngine, Table, TokenText,
    UsualCosts, complete,
};
use cust::event::{Event, EventFlags};
use cust::stream::Stream;

use crate::GpuError;
use crate::driver::{Doing, Gpu, Graph, Registered};
use crate::full_pass::{self, Done, FullPasses, Place};
use crate::heads::Classifiers;
use crate::ranks::{self, Ranks};
use crate::resident::{Appending, Resident};
use crate::sets::DeviceSets;
pub(crate) use abi::{PassView, QueryHeader, ScoredRow};
pub use borrowed::{BorrowedTerms, SumsOfRows};
use cost::DeviceCosts;
use expand::TokenPasses;
pub use expand::Touched;
use expanders::Expanding;
use graphs::{GraphKey, Path};
use kernels::{Int8Scans, Kernels};
use pace::Pace;
use pass::Pass;
pub use paths::{Counters, Paths};
pub(crate) use start::memory;
use workspace::{EXCHANGES, Exchange, MAX_BATCH, Workspace};

/// Searches a model's table in the memory of an NVIDIA GPU.
///
/// Between calls its stream is idle, but for passes that were started and are not finished.
pub struct CudaEngine {
    // In the order in which they must be dropped: what is on the device, then the device, which the
    // tables own.
    graphs: HashMap<GraphKey, Graph>,
    timing: Option<[Event; 2]>,
    workspace: Workspace,
    /// Two, so that the host can write the next pass's queries, and read the last one's answers,
    /// while the device works.
    exchanges: [Exchange; EXCHANGES],
    registered: Option<Registered>,
    full_passes: FullPasses,
    classifiers: Classifiers,
    expanders: Vec<Expanding>,
    /// Made when they are needed first.
    token_passes: Option<TokenPasses>,
    /// The sets of rows that queries have.
    sets: DeviceSets,
    /// If there is room for more rows.
    appending: Option<Appending>,
    /// Counts ranks, if the device can.
    ranks: Option<Ranks>,
    kernels: Kernels,
    stream: Stream,
    resident: Rc<Resident>,
    paths: Paths,
    costs: DeviceCosts,
    counters: Counters,
    /// Whether a pass has begun and has not been waited for.
    under_way: bool,
    /// Passes that were started and are not finished, first in, first out.
    started: VecDeque<Started>,
    /// When the device was last seen to have finished a pass.
    finished: Instant,
    device_time: Duration,
    pace: Pace,
}

/// A pass that was started.
struct Started {
    work: Work,
    began: Instant,
    /// After the pass in the stream.
    done: Event,
}

/// What was started: one certified pass, or a counting of ranks or a classification of texts with
/// one set of buffers.
enum Work {
    Search(GraphKey),
    Ranks {
        set: usize,
        parts: Vec<FullPassPart>,
    },
    /// Texts of the classifier with this index.
    Texts {
        set: usize,
        index: usize,
    },
}

/// The most vectors of a full pass. A query for ranks that a device counts is worth two, because
/// its scan takes three products.
const FULL_PASS_VECTORS: usize = full_pass::VECTORS;
const _: () = assert!(FULL_PASS_VECTORS == 2 * ranks::QUERIES);

/// Tokens of a pass of texts: with the largest heads, it takes about as long as the largest search.
const TOKENS_PER_PASS: usize = 1 << 16;

impl CudaEngine {
    /// Measures the device time of each pass from now on, for [`CudaEngine::device_time`].
    ///
    /// # Errors
    /// If the device has no more events.
    pub fn measure(&mut self) -> Result<(), GpuError> {
        let event = || Event::new(EventFlags::DEFAULT).doing("making an event");
        self.timing = Some([event()?, event()?]);
        Ok(())
    }

    /// The device time of the passes of the last call of `search`, from the first byte uploaded to
    /// the last byte downloaded.
    pub fn device_time(&self) -> Duration {
        self.device_time
    }

    /// The counters since the engine started, with those of its expanders.
    pub fn counters(&self) -> Counters {
        let each = self.expanders.iter().map(|one| one.engine.counters());
        each.fold(self.counters, |sum, own| sum + own)
    }

    /// Whether a float32 score is computed of each row before the exact one: its bound is one of
    /// cosines.
    fn scans_float32(&self) -> bool {
        self.paths.float32 && self.resident.lift.metric == Metric::Cosine
    }

    /// Whether the device counts the ranks of a query on tensor cores.
    fn counts(&self, part: &FullPassPart) -> bool {
        self.ranks.is_some() && Ranks::takes(part.query(), part.distinct_ranked().len())
    }

    /// Whether a query is one of the rows that searches see.
    fn takes(&self, query: &Query) -> bool {
        let (of_table, rows) = (self.resident.rows, self.resident.searched());
        let set = query.filter.rows.bitmap();
        set.is_none_or(|set| (of_table..=rows).contains(&set.rows()))
            && query.vectors().iter().all(|vector| match &vector.vector {
                QueryVector::Row(row) => row.index() < rows,
                QueryVector::Components(components) => components.len() == self.resident.dim,
            })
    }

    /// Before any work: the calling thread may have used an engine on another GPU.
    fn on_its_gpu(&mut self) -> Result<(), EngineError> {
        self.resident.gpu.make_current().map_err(|error| self.failed(error))
    }

    fn failed(&mut self, error: GpuError) -> EngineError {
        self.abandon();
        EngineError::Device(error.into())
    }

    fn pass(&self, exchange: usize) -> Pass<'_> {
        Pass {
            exchange: &self.exchanges[exchange],
            resident: &self.resident,
            kernels: &self.kernels,
            workspace: &self.workspace,
            stream: &self.stream,
            early: self.resident.gpu.capability >= 90 && self.kernels.wait,
        }
    }
}

impl Device for CudaEngine {
    fn description(&self) -> EngineDescription {
        let Gpu { name, ordinal, capability, .. } = &self.resident.gpu;
        let wgmma = matches!(self.kernels.int8.scans, Int8Scans::Hopper(..));
        let how = match &self.resident.quantised {
            None if self.scans_float32() => "certified float32 scan",
            None => "float64 scan",
            Some(quantised) => match (quantised.int4.is_some(), wgmma) {
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

    fn counters(&self) -> Vec<(&'static str, u64)> {
        CudaEngine::counters(self).named()
    }

    fn overlaps(&self) -> bool {
        // Measured times are those of one pass after the other.
        self.timing.is_none()
    }

    fn wait_until_almost_over(&mut self) -> Result<(), EngineError> {
        self.on_its_gpu()?;
        self.wait_for_last_kernel().map_err(|error| self.failed(error))
    }
}

impl SearchEngine for CudaEngine {
    fn preferred_batch(&self, waiting: usize) -> usize {
        self.pace.best(waiting).min(MAX_BATCH)
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let resident = &self.resident;
        assert_eq!(resident.searched(), resident.rows, "full passes see no appended rows");
        let found = self.search_overlapped(batch, &mut || ())?;
        complete(batch, found, |rest| self.search_in_full_pass(rest))
    }

    fn search_overlapped(
        &mut self,
        batch: &[&Query],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        self.on_its_gpu()?;
        if !batch.iter().all(|query| self.takes(query)) {
            return Err(EngineError::ForeignQuery);
        }
        assert!(self.started.is_empty(), "a search was started and not finished");
        self.device_time = Duration::ZERO;
        self.answer(batch, meanwhile).map_err(|error| self.failed(error))
    }

    fn start_search(&mut self, batch: &[&Query]) -> Result<bool, EngineError> {
        self.on_its_gpu()?;
        if !batch.iter().all(|query| self.takes(query)) {
            return Err(EngineError::ForeignQuery);
        }
        self.start(batch).map_err(|error| self.failed(error))
    }

    fn finish_search(&mut self, batch: &[&Query]) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        self.on_its_gpu()?;
        self.finish(batch).map_err(|error| self.failed(error))
    }

    #[allow(unsafe_code)]
    fn append(&mut self, rows: &Table<'_>) -> Result<usize, EngineError> {
        self.on_its_gpu()?;
        let Some(appending) = &mut self.appending else { return Ok(0) };
        // SAFETY: all work of the engine with its tables is in this stream; it is synchronised
        // before they are dropped.
        let appended = unsafe { self.resident.append(rows, appending, &self.stream) };
        appended.map_err(|error| self.failed(error))
    }

    fn search_cost(&self, query: &Query) -> usize {
        self.costs.search(query)
    }

    fn usual_costs(&self) -> Option<Arc<dyn UsualCosts>> {
        Some(Arc::new(self.costs))
    }
}

impl FullPassEngine for CudaEngine {
    #[allow(unsafe_code)]
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        self.on_its_gpu()?;
        let table = self.resident.of.table();
        if !parts.iter().all(|part| part.fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        let candidates = &self.workspace.candidates;
        let place = Place {
            resident: &self.resident,
            stream: &self.stream,
            scratch: candidates.pointer_mut().cast(),
            scratch_len: candidates.bytes() / size_of::<f64>(),
        };
        let set = self.free_set();
        let counting = self.ranks.as_mut().zip(set);
        // SAFETY: only passes in the stream use the candidates and the sets.
        let done =
            unsafe { self.full_passes.part(place, &mut self.sets, counting, parts, from, go_on) };
        let Done { next, fallbacks } = done.map_err(|error| self.failed(error))?;
        self.counters.fallbacks += fallbacks as u64;
        if next.is_none() {
            let over = parts.iter().filter(|part| !part.is_answered());
            let (ranked, scored): (Vec<_>, Vec<_>) = over.partition(|part| self.counts(part));
            self.counters.ranked += ranked.len() as u64;
            self.counters.full_passes += scored.len() as u64;
        }
        Ok(next)
    }

    fn full_pass_vectors(&self) -> usize {
        FULL_PASS_VECTORS
    }

    fn full_pass_cost(&self, query: &FullPassQuery) -> usize {
        self.costs.full_pass_components(query)
    }

    fn start_ranks(&mut self, queries: &[&FullPassQuery]) -> Result<bool, EngineError> {
        self.on_its_gpu()?;
        let table = self.resident.of.table();
        if !queries.iter().all(|query| query.fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        let parts = queries.iter().map(|&query| FullPassPart::new(query.clone())).collect();
        self.start_counting(parts).map_err(|error| self.failed(error))
    }

    fn finish_ranks(&mut self, _: &[&FullPassQuery]) -> Result<Vec<FullPassPart>, EngineError> {
        self.on_its_gpu()?;
        self.finish_counting().map_err(|error| self.failed(error))
    }
}

impl HeadEngine for CudaEngine {
    fn classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        self.on_its_gpu()?;
        assert!(self.started.is_empty(), "a pass was started and not finished");
        let scores = self.classifiers.scores(texts).map_err(|error| self.failed(error))?;
        self.counters.classified += texts.len() as u64;
        Ok(scores)
    }

    fn tokens_per_pass(&self) -> usize {
        TOKENS_PER_PASS
    }

    fn start_classify(&mut self, texts: &[&TokenText]) -> Result<bool, EngineError> {
        self.on_its_gpu()?;
        self.start_texts(texts).map_err(|error| self.failed(error))
    }

    fn finish_classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        self.on_its_gpu()?;
        self.finish_texts(texts).map_err(|error| self.failed(error))
    }

    fn expand_part(
        &mut self,
        parts: &mut [PartOfExpansion],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), EngineError> {
        self.on_its_gpu()?;
        self.expand_pieces(parts, go_on)
    }

    fn expansion_cost(&self, text: &Expansion) -> usize {
        self.costs.token(text).saturating_mul(text.tokens())
    }
}

impl Drop for CudaEngine {
    fn drop(&mut self) {
        // What fails here has failed before.
        let _ = self.resident.gpu.make_current();
        // A pass may still be under way after a panic.
        self.abandon();
    }
}

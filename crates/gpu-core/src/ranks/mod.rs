//! Counts the rows that rank before given rows of the table: `/rank` on a device.
//!
//! A pass scans the float32 table for up to [`RANK_QUERIES`] queries. With few, reading the table
//! is what limits it, and with many, arithmetic. The certified scans of rounded tables would leave
//! a tenth of all rows in doubt, because a rank can be anywhere.

#![allow(unsafe_code)]

pub(crate) mod abi;
mod scan;

use std::ops::Range;

use contract::{Filter, FullPassPart, FullPassQuery, QueryVector, Row, RowSetParts};
use cust::stream::Stream;

use crate::GpuError;
use crate::driver::{
    Doing, Gpu, Kernel, Modules, Pinned, Shape, device_arrays, start_download, start_upload,
};
use crate::resident::{NOT_A_ROW, Resident};
use crate::sets::{DeviceSet, DeviceSets};
use abi::entries::rank_scan;
use abi::{
    CountDoubtfulParams, ProbeParams, RANK_CAPACITY, RANK_CHUNK, RANK_MAX_NORM, RANK_MAXIMUM,
    RANK_PROBES, RANK_QUERIES, RANK_STAGE, RANK_THRESHOLDS, RANK_TILE, RankQuery, RankScanParams,
    RankView,
};
use scan::Scan;

/// The most queries of a pass.
pub(crate) const QUERIES: usize = RANK_QUERIES;
/// Rows of a tile: passes over some rows begin at a multiple.
pub(crate) const TILE: usize = RANK_TILE;
/// Sets of what the host writes and reads. Each pass that is under way uses one.
pub(crate) const SETS: usize = 2;
/// Ranked rows of a query.
const MAX_RANKED: usize = RANK_MAXIMUM;
/// Excluded rows of a query.
const MAX_EXCLUDED: usize = RANK_PROBES - RANK_THRESHOLDS;
/// Registers of operand A that a stage of one query fills: two float16 each, upper and lower
/// halves.
const REGISTERS_PER_STAGE: usize = RANK_STAGE;
/// Blocks for each query that score rows in doubt.
const DOUBTFUL_BLOCKS: usize = 8;

/// How far a score of the scan may be from the contract's (docs/certificate.md, theorem 6).
fn error(dim: usize) -> f32 {
    let unit = 2f64.powi(-24);
    // Tensor cores may truncate each of the terms that they add together, and their sum. A chunk
    // has at most 40, for which twice their accuracy is taken.
    let products = 40.0 * 4.0 * unit * 1.02;
    let sums = dim.div_ceil(RANK_CHUNK) as f64 * unit * 1.02;
    // Unit vectors, their halves, and the product of the lower halves.
    let halves = 40.0 * unit;
    // The threshold and its two ends.
    let thresholds = 4.0 * unit;
    (products + sums + halves + thresholds) as f32
}

/// The tables and the sets that a pass reads, and the stream that it runs in.
pub(crate) struct OnDevice<'a> {
    pub(crate) resident: &'a Resident,
    pub(crate) sets: &'a mut DeviceSets,
    pub(crate) stream: &'a Stream,
}

/// The kernels and the buffers of such passes.
pub(crate) struct Ranks {
    // In the order in which they must be dropped: buffers, then kernels, then their module.
    device: Buffers,
    hosts: [Host; SETS],
    probe: Kernel<ProbeParams>,
    /// Narrowest first.
    scans: Vec<Scan>,
    count: Kernel<CountDoubtfulParams>,
    _modules: Modules,
}

device_arrays! {
    /// What is on the device, for rows of so many components.
    struct Buffers(dim: usize) {
        /// `[RANK_QUERIES]`.
        queries: [RankQuery; RANK_QUERIES],
        /// `[RANK_QUERIES, dim]`.
        vectors: [f32; RANK_QUERIES * dim],
        /// `[RANK_QUERIES, RANK_PROBES]`, as the following.
        probes: [u32; RANK_QUERIES * RANK_PROBES],
        scores: [f64; RANK_QUERIES * RANK_PROBES],
        /// `[RANK_QUERIES, RANK_THRESHOLDS]`, as the following.
        thresholds: [f32; RANK_QUERIES * RANK_THRESHOLDS],
        bins: [u32; RANK_QUERIES * RANK_THRESHOLDS],
        fragments: [u32; RANK_QUERIES * dim.div_ceil(RANK_STAGE) * REGISTERS_PER_STAGE],
        /// `[RANK_QUERIES]`.
        doubtful_counts: [u32; RANK_QUERIES],
        /// `[RANK_QUERIES, RANK_CAPACITY]`.
        doubtful: [u32; RANK_QUERIES * RANK_CAPACITY],
    }
}

/// The host's side of those that are copied.
struct Host {
    queries: Pinned<RankQuery>,
    vectors: Pinned<f32>,
    probes: Pinned<u32>,
    scores: Pinned<f64>,
    bins: Pinned<u32>,
    doubtful_counts: Pinned<u32>,
    /// `[1]`: not 0 once the last kernel of a pass has started.
    almost_over: Pinned<u32>,
}

impl Host {
    fn new(dim: usize) -> Result<Self, GpuError> {
        let (thresholds, probes) = (RANK_QUERIES * RANK_THRESHOLDS, RANK_QUERIES * RANK_PROBES);
        Ok(Self {
            queries: Pinned::zeroed(RANK_QUERIES)?,
            vectors: Pinned::zeroed(RANK_QUERIES * dim)?,
            probes: Pinned::zeroed(probes)?,
            scores: Pinned::zeroed(probes)?,
            bins: Pinned::zeroed(thresholds)?,
            doubtful_counts: Pinned::zeroed(RANK_QUERIES)?,
            almost_over: Pinned::zeroed(1)?,
        })
    }

    /// Puts the queries of a pass over rows before `end` together, with the addresses of their
    /// sets. Returns the number of their vectors that are no rows.
    fn upload(
        &mut self,
        resident: &Resident,
        parts: &[&FullPassPart],
        sets: &[DeviceSet],
        end: usize,
    ) -> usize {
        let dim = resident.dim;
        self.queries.fill(bytemuck::Zeroable::zeroed());
        self.probes.fill(NOT_A_ROW);
        self.almost_over[0] = 0;
        let mut vectors = 0;
        for (index, part) in parts.iter().enumerate() {
            let query = part.query();
            let filter = &query.filter;
            let vector = query.scoring.single_vector().expect("only such queries get here");
            let row = match &vector.vector {
                QueryVector::Row(row) => row.0,
                QueryVector::Components(components) => {
                    self.vectors[vectors * dim..][..dim].copy_from_slice(components);
                    vectors += 1;
                    NOT_A_ROW
                }
            };
            self.queries[index] = RankQuery {
                norm: vector.norm,
                max_score: filter.max_score.unwrap_or(f64::INFINITY),
                set: sets[index].of_rows,
                row,
                vector: vectors.saturating_sub(1) as u32,
                first_rows: filter.row_limit(end) as u32,
                targets: (part.distinct_ranked().len() + query.above.len()) as u32,
            };
            // Rows below a minimum do not pass the filter.
            let least = filter.min_score.map_or(f64::NEG_INFINITY, f64::next_down);
            let given =
                self.scores[index * RANK_PROBES..][part.distinct_ranked().len()..].iter_mut();
            given.zip(&query.above).for_each(|(to, score)| *to = score.max(least).clamp(-2.0, 2.0));
            let probes = &mut self.probes[index * RANK_PROBES..][..RANK_PROBES];
            let (ranked, excluded) = probes.split_at_mut(RANK_THRESHOLDS);
            let put = |to: &mut [u32], rows: &[Row]| {
                to.iter_mut().zip(rows).for_each(|(to, row)| *to = row.0);
            };
            put(ranked, part.distinct_ranked());
            put(excluded, filter.rows.excluded());
        }
        vectors
    }
}

impl Ranks {
    /// For tables of this dimension; only kernels that every device can run if `portable`. `None`
    /// if the device has too little shared memory for them.
    ///
    /// # Errors
    /// If the device lacks the memory, or can't run the kernels.
    pub(crate) fn new(gpu: &Gpu, dim: usize, portable: bool) -> Result<Option<Self>, GpuError> {
        let mut modules = Modules::default();
        let scans = Scan::all(&mut modules, gpu, dim, portable)?;
        if scans.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            device: Buffers::new(dim)?,
            hosts: [Host::new(dim)?, Host::new(dim)?],
            probe: modules.kernel(rank_scan::score_probes)?,
            scans,
            count: modules.kernel(rank_scan::count_doubtful)?,
            _modules: modules,
        }))
    }

    /// Bytes of device memory for tables of this dimension.
    pub(crate) fn bytes(dim: usize) -> usize {
        Buffers::bytes(dim)
    }

    /// Whether a pass can answer this query.
    pub(crate) fn takes(query: &FullPassQuery, distinct_ranked: usize) -> bool {
        // Without `..`, so that a new field does not compile until it is decided whether passes
        // support it.
        let Filter { ref rows, min_score: _, max_score: _ } = query.filter;
        let RowSetParts { limit: _, bitmap: _, excluded } = rows.parts();
        let inverted = 1.0 / RANK_MAX_NORM..=RANK_MAX_NORM;
        query.k == 0
            && query.scoring.single_vector().is_some_and(|one| inverted.contains(&one.norm))
            && (1..=MAX_RANKED).contains(&(distinct_ranked + query.above.len()))
            && excluded.len() <= MAX_EXCLUDED
    }

    /// Counts some rows, the first of which begins a tile, for queries that a pass
    /// [takes](Self::takes), that fit the table and are prepared. No pass that is under way uses
    /// the set. Ends the stream's work. Returns the indices of those with more rows in doubt than
    /// there is room for: for them nothing is counted.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn count(
        &mut self,
        set: usize,
        OnDevice { resident, sets, stream }: OnDevice<'_>,
        parts: &mut [FullPassPart],
        indices: &[usize],
        rows: Range<usize>,
    ) -> Result<Vec<usize>, GpuError> {
        let mut without = Vec::new();
        for indices in indices.chunks(self.widest()) {
            let queries: Vec<&FullPassPart> = indices.iter().map(|&part| &parts[part]).collect();
            // SAFETY: the stream is synchronised before anything else accesses the buffers: this
            // function has them by exclusive reference. After an error the engine is not used
            // again.
            unsafe { self.start(set, resident, sets, stream, &queries, rows.clone())? };
            stream.synchronize().doing("counting ranks")?;
            for (slot, &part) in indices.iter().enumerate() {
                match self.counted(set, slot, &parts[part], &rows) {
                    Some((_, before)) => parts[part].merge_counted(&before),
                    None => without.push(part),
                }
            }
        }
        Ok(without)
    }

    /// The most queries of a pass on this device.
    pub(crate) fn widest(&self) -> usize {
        self.scans.last().map_or(1, |scan| scan.queries)
    }

    /// Not 0 once the last kernel of the pass with this set has started.
    pub(crate) fn almost_over(&self, set: usize) -> &Pinned<u32> {
        &self.hosts[set].almost_over
    }

    /// Starts a pass over some rows, the first of which begins a tile, for at most
    /// [`widest`](Self::widest) queries, all of which it takes, and which fit the table.
    ///
    /// # Safety
    /// - Nothing else uses the set until the stream has gone past the pass.
    /// - Only passes in the same stream use this until then.
    /// - The tables, the sets and this stay alive until then.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) unsafe fn start(
        &mut self,
        set: usize,
        resident: &Resident,
        sets: &mut DeviceSets,
        stream: &Stream,
        parts: &[&FullPassPart],
        rows: Range<usize>,
    ) -> Result<(), GpuError> {
        assert!(rows.start.is_multiple_of(RANK_TILE) && rows.end <= resident.rows, "{rows:?}");
        sets.begin_pass();
        let all = DeviceSet::default();
        let of_part = |part: &&FullPassPart| {
            // SAFETY: the caller's promise.
            unsafe { sets.of_query(&part.query().filter.rows, all, resident, stream) }
        };
        let of_parts = parts.iter().map(of_part).collect::<Result<Vec<_>, _>>()?;
        let uploaded = self.hosts[set].upload(resident, parts, &of_parts, rows.end);
        let (host, device) = (&self.hosts[set], &self.device);
        let is_wide = |scan: &&Scan| scan.queries >= parts.len();
        let scan = self.scans.iter().find(is_wide).expect("a chunk fits the widest");
        let width = scan.queries;
        let most_rows = parts.iter().map(|part| part.query().filter.row_limit(rows.end));
        let first_tile = rows.start / RANK_TILE;
        let tiles = most_rows.max().unwrap_or(0).div_ceil(RANK_TILE);
        let pass = RankView {
            table: resident.view(),
            queries: device.queries.pointer(),
            vectors: device.vectors.pointer(),
            probes: device.probes.pointer(),
            scores: device.scores.pointer_mut(),
            thresholds: device.thresholds.pointer_mut(),
            fragments: device.fragments.pointer_mut(),
            bins: device.bins.pointer_mut(),
            doubtful_counts: device.doubtful_counts.pointer_mut(),
            doubtful: device.doubtful.pointer_mut(),
            stages: resident.dim.div_ceil(RANK_STAGE) as i32,
            groups: width.div_ceil(64) as i32,
        };
        let probe = ProbeParams { pass, layout: scan.layout };
        let scan_params = RankScanParams {
            pass,
            error: error(resident.dim),
            first_tile: first_tile as u32,
            tiles: tiles as u32,
        };
        let count = CountDoubtfulParams { pass, almost_over: host.almost_over.pointer_mut()? };
        let blocks =
            resident.gpu.multiprocessors as usize * scan.kernel.resident_blocks(scan.shared)?;
        let shape =
            Shape::grid(blocks.min(tiles.saturating_sub(first_tile).max(1)), 1).shared(scan.shared);
        // SAFETY: `upload` has filled the first queries, and cleared the others up to the width;
        // each names rows and vectors that exist. All buffers have room for RANK_QUERIES queries of
        // this dimension, and the width is at most that. The caller promises the rest.
        unsafe {
            start_upload(&host.queries[..width], &device.queries, stream)?;
            if uploaded > 0 {
                start_upload(&host.vectors[..uploaded * resident.dim], &device.vectors, stream)?;
            }
            start_upload(&host.probes[..width * RANK_PROBES], &device.probes, stream)?;
            if parts.iter().any(|part| !part.query().above.is_empty()) {
                start_upload(&host.scores[..width * RANK_PROBES], &device.scores, stream)?;
            }
            self.probe.launch(stream, Shape::grid(width, 1), &probe)?;
            scan.kernel.launch(stream, shape, &scan_params)?;
            self.count.launch(stream, Shape::grid(parts.len(), DOUBTFUL_BLOCKS), &count)?;
            start_download(&device.scores, &host.scores, width * RANK_PROBES, stream)?;
            start_download(&device.bins, &host.bins, width * RANK_THRESHOLDS, stream)?;
            start_download(&device.doubtful_counts, &host.doubtful_counts, width, stream)
        }
    }

    /// Answers the queries of a pass over all rows that is over. Returns the number of those
    /// without an answer.
    pub(crate) fn collect(
        &self,
        set: usize,
        resident: &Resident,
        parts: &mut [FullPassPart],
    ) -> usize {
        let (table, rows) = (resident.of.table(), 0..resident.rows);
        let mut without = 0;
        for (slot, part) in parts.iter_mut().enumerate() {
            match self.counted(set, slot, part, &rows) {
                Some((scores, before)) => part.answer_ranks(&table, scores, &before),
                None => without += 1,
            }
        }
        without
    }

    /// What a pass over these rows has counted for a query: the scores of its ranked rows; and for
    /// each of them, and for each given score, the number of rows that pass the filter and rank
    /// before it. `None` if too many rows were in doubt.
    fn counted(
        &self,
        set: usize,
        slot: usize,
        part: &FullPassPart,
        rows: &Range<usize>,
    ) -> Option<(&[f64], Vec<u32>)> {
        let host = &self.hosts[set];
        if host.doubtful_counts[slot] as usize > RANK_CAPACITY {
            return None;
        }
        let scores = &host.scores[slot * RANK_PROBES..][..RANK_PROBES];
        let bins = &host.bins[slot * RANK_THRESHOLDS..][..RANK_THRESHOLDS];
        let before = before(part, scores, bins, rows);
        Some((&scores[..part.distinct_ranked().len()], before))
    }
}

/// For each ranked row of a query, and then for each given score, how many of these rows pass the
/// filter and rank before it. `scores` are those of its probes, and the n-th bin has the number of
/// rows that rank before n thresholds.
fn before(part: &FullPassPart, scores: &[f64], bins: &[u32], rows: &Range<usize>) -> Vec<u32> {
    let filter = &part.query().filter;
    let above = part.query().above.iter().map(|_| Row(0));
    let targets = part.distinct_ranked().iter().copied().chain(above);
    let maximum = (scores[RANK_MAXIMUM], Row(0));
    let of_targets = scores.iter().copied().zip(targets);
    let thresholds: Vec<(f64, Row)> =
        of_targets.clone().chain([maximum]).filter(|(score, _)| !score.is_nan()).collect();
    let ranks_before = |a: &(f64, Row), b: &(f64, Row)| a.0 > b.0 || (a.0 == b.0 && a.1 < b.1);
    // Rows before a threshold are before all those that are after it. Equal thresholds are before
    // none of each other, so the last of them in the device's order has the same rows.
    let all_before = |one: &(f64, Row)| -> u32 {
        let after = thresholds.iter().filter(|other| ranks_before(one, other)).count();
        bins[after + 1..].iter().sum()
    };
    let above_maximum = if scores[RANK_MAXIMUM].is_nan() { 0 } else { all_before(&maximum) };
    let excluded = filter.rows.excluded().iter().copied();
    let excluded: Vec<(f64, Row)> =
        scores[RANK_THRESHOLDS..].iter().copied().zip(excluded).collect();
    let left_out = |one: &(f64, Row)| {
        let is_counted = |other: &&(f64, Row)| {
            rows.contains(&other.1.index())
                && filter.rows.limit().is_none_or(|n| other.1.0 < n)
                && filter.rows.bitmap().is_none_or(|bitmap| bitmap.contains(other.1))
                && filter.max_score.is_none_or(|maximum| other.0 <= maximum)
                && ranks_before(other, one)
        };
        excluded.iter().filter(is_counted).count() as u32
    };
    // The counts of rows that do not pass the filter mean nothing; they are not used.
    let of = |one: (f64, Row)| {
        all_before(&one).saturating_sub(above_maximum).saturating_sub(left_out(&one))
    };
    of_targets.map(of).collect()
}

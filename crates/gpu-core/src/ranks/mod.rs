//! Counts the rows that rank before given rows of the table: `/rank` on a device.
//!
//! A pass scans the float32 table for up to [`RANK_QUERIES`] queries. What limits it is arithmetic; the certified
//! scans of rounded tables would leave a tenth of all rows in doubt, because a rank can be anywhere.

#![allow(unsafe_code)]

pub(crate) mod abi;

use contract::{FilterParts, FullPassPart, FullPassQuery, QueryVector, Row, ScoringVector};
use cust::stream::Stream;

use crate::GpuError;
use crate::driver::{Array, Doing, Kernel, Modules, Pinned, Shape, start_download, start_upload};
use crate::resident::{NOT_A_ROW, Resident};
use abi::{
    CountDoubtfulParams, Doubtful, ProbeParams, RANK_CAPACITY, RANK_CHUNK, RANK_MAX_NORM,
    RANK_PROBES, RANK_QUERIES, RANK_THRESHOLDS, RANK_TILE, RankQuery, RankScanParams, entries,
};

/// The most queries of a pass.
pub(crate) const QUERIES: usize = RANK_QUERIES;
/// Ranked rows of a query. One more threshold is for the maximum score.
const MAX_RANKED: usize = RANK_THRESHOLDS - 1;
/// Excluded rows of a query.
const MAX_EXCLUDED: usize = RANK_PROBES - RANK_THRESHOLDS;
/// Registers of operand A that a chunk of one query fills: two float16 each, upper and lower halves.
const REGISTERS_PER_CHUNK: usize = RANK_CHUNK;
/// Blocks for each query that score rows in doubt.
const DOUBTFUL_BLOCKS: usize = 8;

/// How far a score of the scan may be from the contract's (docs/certificate.md, theorem 7).
fn error(dim: usize) -> f32 {
    let unit = 2f64.powi(-24);
    // Tensor cores may truncate each of the terms that they add together, and their sum. A chunk has at most 40, for
    // which twice their accuracy is taken.
    let products = 40.0 * 4.0 * unit * 1.02;
    let sums = dim.div_ceil(RANK_CHUNK) as f64 * unit * 1.02;
    // Unit vectors, their halves, and the product of the lower halves.
    let halves = 40.0 * unit;
    // The threshold and its two ends.
    let thresholds = 4.0 * unit;
    (products + sums + halves + thresholds) as f32
}

/// The kernels and the buffers of such passes.
pub(crate) struct Ranks {
    // In the order in which they must be dropped: buffers, then kernels, then their module.
    device: Buffers,
    host: Host,
    probe: Kernel<ProbeParams>,
    scans: [(usize, Kernel<RankScanParams>); 3],
    count: Kernel<CountDoubtfulParams>,
    _modules: Modules,
}

struct Buffers {
    /// `[RANK_QUERIES]`.
    queries: Array<RankQuery>,
    /// `[RANK_QUERIES, dim]`.
    vectors: Array<f32>,
    /// `[RANK_QUERIES, RANK_PROBES]`, as the following.
    probes: Array<u32>,
    scores: Array<f64>,
    /// `[RANK_QUERIES, RANK_THRESHOLDS]`, as the following.
    thresholds: Array<f32>,
    before: Array<u32>,
    fragments: Array<u32>,
    /// `[RANK_QUERIES]`.
    doubtful_counts: Array<u32>,
    /// `[RANK_QUERIES, RANK_CAPACITY]`.
    doubtful: Array<Doubtful>,
}

/// The host's side of those that are copied.
struct Host {
    queries: Pinned<RankQuery>,
    vectors: Pinned<f32>,
    probes: Pinned<u32>,
    scores: Pinned<f64>,
    before: Pinned<u32>,
    doubtful_counts: Pinned<u32>,
}

impl Ranks {
    /// For tables of this dimension.
    ///
    /// # Errors
    /// If the device lacks the memory, or can't run the kernels.
    pub(crate) fn new(dim: usize) -> Result<Self, GpuError> {
        use entries::rank_scan;
        let mut modules = Modules::default();
        let chunks = dim.div_ceil(RANK_CHUNK);
        let (thresholds, probes) = (RANK_QUERIES * RANK_THRESHOLDS, RANK_QUERIES * RANK_PROBES);
        Ok(Self {
            device: Buffers {
                queries: Array::zeroed(RANK_QUERIES)?,
                vectors: Array::zeroed(RANK_QUERIES * dim)?,
                probes: Array::zeroed(probes)?,
                scores: Array::zeroed(probes)?,
                thresholds: Array::zeroed(thresholds)?,
                before: Array::zeroed(thresholds)?,
                fragments: Array::zeroed(RANK_QUERIES * chunks * REGISTERS_PER_CHUNK)?,
                doubtful_counts: Array::zeroed(RANK_QUERIES)?,
                doubtful: Array::zeroed(RANK_QUERIES * RANK_CAPACITY)?,
            },
            host: Host {
                queries: Pinned::zeroed(RANK_QUERIES)?,
                vectors: Pinned::zeroed(RANK_QUERIES * dim)?,
                probes: Pinned::zeroed(probes)?,
                scores: Pinned::zeroed(probes)?,
                before: Pinned::zeroed(thresholds)?,
                doubtful_counts: Pinned::zeroed(RANK_QUERIES)?,
            },
            probe: modules.kernel(rank_scan::score_probes)?,
            scans: [
                (32, modules.kernel(rank_scan::rank_scan_32)?),
                (64, modules.kernel(rank_scan::rank_scan_64)?),
                (128, modules.kernel(rank_scan::rank_scan_128)?),
            ],
            count: modules.kernel(rank_scan::count_doubtful)?,
            _modules: modules,
        })
    }

    /// Bytes of device memory for tables of this dimension.
    pub(crate) fn bytes(dim: usize) -> usize {
        let of_a_query = size_of::<RankQuery>()
            + dim * size_of::<f32>()
            + RANK_PROBES * (size_of::<u32>() + size_of::<f64>())
            + RANK_THRESHOLDS * (size_of::<f32>() + size_of::<u32>())
            + dim.div_ceil(RANK_CHUNK) * REGISTERS_PER_CHUNK * size_of::<u32>()
            + size_of::<u32>()
            + RANK_CAPACITY * size_of::<Doubtful>();
        RANK_QUERIES * of_a_query
    }

    /// Whether a pass can answer this query.
    pub(crate) fn takes(query: &FullPassQuery, distinct_ranked: usize) -> bool {
        // Without `..`, so that a new field does not compile until it is decided whether passes support it.
        let FilterParts { excluded, first_rows: _, min_score: _, max_score: _ } =
            query.filter().parts();
        query.k() == 0
            && query.scoring().cosine_vector().is_some_and(has_inverse)
            && (1..=MAX_RANKED).contains(&distinct_ranked)
            && excluded.len() <= MAX_EXCLUDED
    }

    /// Answers the queries among `parts` that a pass [takes](Self::takes) and that fit the table. A query with more rows in
    /// doubt than there is room for stays as it is. Returns how many did.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn answer(
        &mut self,
        resident: &Resident,
        stream: &Stream,
        parts: &mut [&mut FullPassPart],
    ) -> Result<usize, GpuError> {
        let mut without = 0;
        for parts in parts.chunks_mut(RANK_QUERIES) {
            self.upload(resident, parts);
            // SAFETY: `upload` has filled the first queries, and cleared the others up to the width; each names rows and
            // vectors that exist. The stream is synchronised before anything else accesses the buffers: this function has
            // them by exclusive reference. After an error the engine is not used again.
            unsafe { self.launch(resident, stream, parts)? };
            stream.synchronize().doing("counting ranks")?;
            without += self.collect(resident, parts);
        }
        Ok(without)
    }

    /// Puts the queries of a pass together.
    fn upload(&mut self, resident: &Resident, parts: &[&mut FullPassPart]) {
        let dim = resident.dim;
        self.host.queries.fill(bytemuck::Zeroable::zeroed());
        self.host.probes.fill(NOT_A_ROW);
        let mut vectors = 0;
        for (index, part) in parts.iter().enumerate() {
            let query = part.query();
            let filter = query.filter();
            let vector = query.scoring().cosine_vector().expect("only such queries get here");
            let row = match &vector.vector {
                QueryVector::Row(row) => row.0,
                QueryVector::Components(components) => {
                    self.host.vectors[vectors * dim..][..dim].copy_from_slice(components);
                    vectors += 1;
                    NOT_A_ROW
                }
            };
            self.host.queries[index] = RankQuery {
                norm: vector.norm,
                max_score: filter.max_score.unwrap_or(f64::INFINITY),
                row,
                vector: vectors.saturating_sub(1) as u32,
                first_rows: filter.row_limit(resident.rows) as u32,
                unused: 0,
            };
            let probes = &mut self.host.probes[index * RANK_PROBES..][..RANK_PROBES];
            let (ranked, excluded) = probes.split_at_mut(RANK_THRESHOLDS);
            let put = |to: &mut [u32], rows: &[Row]| {
                to.iter_mut().zip(rows).for_each(|(to, row)| *to = row.0);
            };
            put(ranked, part.distinct_ranked());
            put(excluded, filter.excluded());
        }
    }

    /// # Safety
    /// - The host's queries up to the width are such that `upload` wrote, for this table, or zero.
    /// - Nothing else accesses the buffers until the stream has been synchronised.
    unsafe fn launch(
        &self,
        resident: &Resident,
        stream: &Stream,
        parts: &[&mut FullPassPart],
    ) -> Result<(), GpuError> {
        let Buffers { queries, vectors, probes, scores, thresholds, before, .. } = &self.device;
        let Buffers { fragments, doubtful_counts, doubtful, .. } = &self.device;
        let is_wide = |&&(width, _): &&(usize, _)| width >= parts.len();
        let &(width, scan) = self.scans.iter().find(is_wide).expect("a chunk fits the widest");
        let chunks = resident.dim.div_ceil(RANK_CHUNK);
        let most_rows = parts.iter().map(|part| part.query().filter().row_limit(resident.rows));
        let tiles = most_rows.max().unwrap_or(0).div_ceil(RANK_TILE);
        let (table, error) = (resident.view(), error(resident.dim));
        let probe = ProbeParams {
            table,
            queries: queries.pointer(),
            vectors: vectors.pointer(),
            probes: probes.pointer(),
            scores: scores.pointer_mut(),
            thresholds: thresholds.pointer_mut(),
            fragments: fragments.pointer_mut(),
            before: before.pointer_mut(),
            doubtful_counts: doubtful_counts.pointer_mut(),
            chunks: chunks as i32,
        };
        let scan_params = RankScanParams {
            table,
            queries: queries.pointer(),
            fragments: fragments.pointer(),
            thresholds: thresholds.pointer(),
            before: before.pointer_mut(),
            doubtful_counts: doubtful_counts.pointer_mut(),
            doubtful: doubtful.pointer_mut(),
            error,
            chunks: chunks as i32,
            tiles: tiles as u32,
        };
        let count = CountDoubtfulParams {
            table,
            queries: queries.pointer(),
            vectors: vectors.pointer(),
            probes: probes.pointer(),
            scores: scores.pointer(),
            thresholds: thresholds.pointer(),
            doubtful_counts: doubtful_counts.pointer(),
            doubtful: doubtful.pointer(),
            before: before.pointer_mut(),
            error,
        };
        let blocks = resident.gpu.multiprocessors as usize * scan.resident_blocks(0)?;
        // SAFETY: the caller's promise; all buffers have room for RANK_QUERIES queries of this dimension, and the width is at
        // most that.
        unsafe {
            start_upload(&self.host.queries, queries, width, stream)?;
            start_upload(
                &self.host.vectors,
                vectors,
                vectors.len().min(width * resident.dim),
                stream,
            )?;
            start_upload(&self.host.probes, probes, width * RANK_PROBES, stream)?;
            self.probe.launch(stream, Shape::grid(width, 1), &probe)?;
            scan.launch(stream, Shape::grid(blocks.min(tiles.max(1)), 1), &scan_params)?;
            self.count.launch(stream, Shape::grid(parts.len(), DOUBTFUL_BLOCKS), &count)?;
            start_download(scores, &self.host.scores, width * RANK_PROBES, stream)?;
            start_download(before, &self.host.before, width * RANK_THRESHOLDS, stream)?;
            start_download(doubtful_counts, &self.host.doubtful_counts, width, stream)
        }
    }

    /// Reads the answers of a pass. Returns the number of queries without one.
    fn collect(&self, resident: &Resident, parts: &mut [&mut FullPassPart]) -> usize {
        let table = resident.model.table();
        let mut without = 0;
        for (index, part) in parts.iter_mut().enumerate() {
            if self.host.doubtful_counts[index] as usize > RANK_CAPACITY {
                without += 1;
                continue;
            }
            let scores = &self.host.scores[index * RANK_PROBES..][..RANK_PROBES];
            let counts = &self.host.before[index * RANK_THRESHOLDS..][..RANK_THRESHOLDS];
            let (ranked, excluded) = scores.split_at(RANK_THRESHOLDS);
            let before = before(part, ranked, excluded, counts);
            let ranked = &ranked[..before.len()];
            part.answer_ranks(&table, ranked, &before);
        }
        without
    }
}

fn has_inverse(vector: &ScoringVector) -> bool {
    (1.0 / RANK_MAX_NORM..=RANK_MAX_NORM).contains(&vector.norm)
}

/// For each ranked row of a query, the number of rows that pass the filter and rank before it. `ranked` and `excluded` are
/// the scores of such rows, and `counts` the number of rows before each of the former, excluded or not.
fn before(part: &FullPassPart, ranked: &[f64], excluded: &[f64], counts: &[u32]) -> Vec<u32> {
    let filter = part.query().filter();
    let above_maximum = filter.max_score.map_or(0, |_| counts[RANK_THRESHOLDS - 1]);
    let one = |((&row, &score), &count): ((&Row, &f64), &u32)| {
        let ranks_before = |(other, at): (&Row, &f64)| {
            let counts = other.index() < filter.first_rows.map_or(usize::MAX, |n| n as usize);
            let is_before = *at > score || (*at == score && *other < row);
            counts && is_before && filter.max_score.is_none_or(|maximum| *at <= maximum)
        };
        let left_out = filter.excluded().iter().zip(excluded).filter(|&one| ranks_before(one));
        // A row above the maximum has no rank; neither has one without a score.
        count.saturating_sub(above_maximum).saturating_sub(left_out.count() as u32)
    };
    part.distinct_ranked().iter().zip(ranked).zip(counts).map(one).collect()
}

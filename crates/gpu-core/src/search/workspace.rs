//! Every buffer of a pass, allocated once.

use contract::{Components, MAX_SCORING_WORDS};

use super::abi::{
    Answer, COUNTER_STRIDE, Candidate, FORMULA_WORDS, Formula, FormulaColumn, INT4_MAX_BLOCKS,
    QueriesView, QueryHeader, QueryScale, ScanOutput, ScoredRow, Threshold,
};
use crate::GpuError;
use crate::abi::DevicePointerMut;
use crate::driver::{Pinned, device_arrays};
use crate::resident::TILE_ROWS;

/// Maximum number of queries in a pass.
pub(crate) const MAX_BATCH: usize = 1024;

/// Maximum number of excluded rows in a pass, over all queries that exclude more than one. Slots
/// and words of formulas are in the same list.
pub(crate) const MAX_EXCLUDED: usize = 1 << 18;

/// Elements of that list. Words of a formula are read together, however few there are.
const LISTED: usize = MAX_EXCLUDED + FORMULA_WORDS;

/// Passes that may be under way at the same time.
pub(crate) const EXCHANGES: usize = 2;

/// Maximum number of parts of a float32 scan, over all queries.
pub(crate) const PART_COUNTS: usize = 1 << 16;

/// Hits of a pass for every row from a minimum score on, over all of its queries.
pub(crate) const LISTED_HITS: usize = 1 << 18;

/// Elements of the largest download of answers: 1024 queries with 16 hits each, 512 with 128, or 64
/// with 1024.
const ANSWERS: usize = 512 * 129;

device_arrays! {
    /// The buffers of the search on the device.
    struct Workspace(sizes: Sizes) {
        /// These four are what an [`Exchange`] has in the host's memory.
        headers: [QueryHeader; MAX_BATCH],
        excluded: [u32; LISTED],
        vectors: [f32; MAX_BATCH * sizes.dim],
        answers: [Answer; ANSWERS],
        formulas: [Formula; MAX_BATCH],
        formula_count: [u32; 1],
        listed_count: [u32; 1],
        formula_floors: [f64; MAX_BATCH],
        columns: [FormulaColumn; MAX_BATCH],
        query_bytes: [u8; MAX_BATCH * sizes.padded],
        scales: [QueryScale; MAX_BATCH],
        thresholds: [Threshold; MAX_BATCH],
        floors: [f32; MAX_BATCH],
        /// The tiles at which the queries' scans end.
        ends: [u32; MAX_BATCH],
        /// The addresses of the queries' sets.
        sets: [u64; MAX_BATCH],
        /// The floors of a float32 scan; cleared before each scan.
        scan_floors: [u32; MAX_BATCH],
        candidate_counts: [u32; MAX_BATCH * COUNTER_STRIDE],
        survivor_counts: [u32; MAX_BATCH * COUNTER_STRIDE],
        tickets: [u32; MAX_BATCH * COUNTER_STRIDE],
        /// Divided among the queries of a pass, as the survivors.
        candidates: [Candidate; sizes.candidates],
        survivors: [ScoredRow; sizes.survivors],
        /// Scratch memory, which each kind of pass uses in its own way: see
        /// [`Workspace::group_bounds`] and the functions after it.
        scratch: [u64; sizes.scratch],
        best_of_blocks: [u64; INT4_MAX_BLOCKS],
        part_counts: [u32; PART_COUNTS],
    }
}

/// What a pass reads from, and writes to, the host's memory.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// `[MAX_BATCH]`.
    pub(crate) headers: Pinned<QueryHeader>,
    /// Lists of excluded rows, of their slots, and of words.
    pub(crate) excluded: Pinned<u32>,
    /// `[MAX_BATCH, dim]`: queries that are not rows of the table.
    pub(crate) vectors: Pinned<f32>,
    /// `[MAX_BATCH]`.
    pub(crate) formulas: Pinned<Formula>,
    /// `[1]`.
    pub(crate) formula_count: Pinned<u32>,
    /// `[batch, 1 + stride]`.
    pub(crate) answers: Pinned<Answer>,
    /// `[LISTED_HITS]`: written in place, because passes that list hits find few.
    pub(crate) listed: Pinned<ScoredRow>,
    /// `[1]`: their number, which may be higher.
    pub(crate) listed_count: Pinned<u32>,
    /// `[MAX_BATCH]`: not 0 for queries of which no hits are listed.
    pub(crate) overflowed: Pinned<u32>,
    /// `[1]`: not 0 once the last kernel of a pass has started.
    pub(crate) almost_over: Pinned<u32>,
    pub(crate) uploads: Uploads,
    /// Instead of `vectors`: the first of vectors that lie one after another in registered memory,
    /// which this keeps in use.
    pub(crate) staged: Option<Components>,
}

impl Exchange {
    pub(crate) fn new(dim: usize) -> Result<Self, GpuError> {
        Ok(Self {
            headers: Pinned::zeroed(MAX_BATCH)?,
            excluded: Pinned::zeroed(LISTED)?,
            vectors: Pinned::zeroed(MAX_BATCH * dim)?,
            formulas: Pinned::zeroed(MAX_BATCH)?,
            formula_count: Pinned::zeroed(1)?,
            answers: Pinned::zeroed(ANSWERS)?,
            listed: Pinned::zeroed(LISTED_HITS)?,
            listed_count: Pinned::zeroed(1)?,
            overflowed: Pinned::zeroed(MAX_BATCH)?,
            almost_over: Pinned::zeroed(1)?,
            uploads: Uploads::default(),
            staged: None,
        })
    }
}

/// How much of the buffers that only some queries need is in use.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Uploads {
    /// Components of vectors.
    pub(crate) components: usize,
    /// Elements of the list of excluded rows.
    pub(crate) listed: usize,
}

/// The lengths of the buffers that depend on the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    dim: usize,
    padded: usize,
    candidates: usize,
    survivors: usize,
    scratch: usize,
}

impl Sizes {
    pub(crate) fn new(rows: usize, dim: usize, padded: usize) -> Self {
        let tiles = rows.div_ceil(TILE_ROWS);
        // Full passes keep the vectors of a query and rows' cosines there.
        let candidates = (8 * rows).clamp(1 << 20, 8 << 20).max(2 * MAX_SCORING_WORDS * dim);
        let survivors = rows.clamp(1 << 18, 1 << 20);
        // An int32 dot product for each slot, or float32 bounds: 2048 groups for each of 1024
        // queries.
        let scratch = (tiles * TILE_ROWS / 2).max(1 << 20);
        Self { dim, padded: padded.max(dim.next_multiple_of(64)), candidates, survivors, scratch }
    }
}

impl Workspace {
    /// The queries, for kernels that read them on the device.
    pub(crate) fn queries(&self) -> QueriesView {
        QueriesView {
            vectors: self.vectors.pointer(),
            headers: self.headers.pointer(),
            excluded: self.excluded.pointer(),
        }
    }

    /// The output of a scan for `batch` queries that samples `groups` groups.
    pub(crate) fn scan_output(&self, batch: usize, groups: usize) -> ScanOutput {
        ScanOutput {
            ends: self.ends.pointer(),
            thresholds: self.thresholds.pointer(),
            scales: self.scales.pointer(),
            sets: self.sets.pointer(),
            group_bounds: self.group_bounds(batch, groups),
            candidate_counts: self.candidate_counts.pointer_mut(),
            candidates: self.candidates.pointer_mut(),
            capacity: (self.candidates.len() / batch) as u32,
            groups: groups as u32,
        }
    }

    /// Maximum number of groups in a sample for `batch` queries.
    pub(crate) fn max_groups(&self, batch: usize) -> usize {
        2 * self.scratch.len() / batch
    }

    /// The bounds of a sample, `[batch, groups]`, in the scratch.
    pub(crate) fn group_bounds(&self, batch: usize, groups: usize) -> DevicePointerMut<f32> {
        self.in_scratch(batch * groups)
    }

    /// The 4-bit scan's dot products, `[slots]`, in the scratch.
    pub(crate) fn dots(&self, slots: usize) -> DevicePointerMut<i32> {
        self.in_scratch(slots)
    }

    fn in_scratch<T: bytemuck::Pod>(&self, count: usize) -> DevicePointerMut<T> {
        let bytes = self.scratch.bytes();
        assert!(count * size_of::<T>() <= bytes, "{count} values in {bytes} bytes of scratch");
        self.scratch.pointer_mut().cast()
    }

    /// Maximum number of hits of all parts of a float32 scan.
    pub(crate) fn max_part_hits(&self) -> usize {
        self.candidates.bytes() / size_of::<ScoredRow>()
    }

    /// The hits of all parts of a float32 scan, in the memory where other passes keep candidates.
    pub(crate) fn part_hits(&self, count: usize) -> DevicePointerMut<ScoredRow> {
        assert!(count <= self.max_part_hits(), "{count} hits of parts");
        self.candidates.pointer_mut().cast()
    }
}

//! Every buffer of a pass, allocated once.

use super::abi::{
    Answer, COUNTER_STRIDE, Candidate, FORMULA_WORDS, Formula, FormulaColumn, INT4_MAX_BLOCKS,
    QueriesView, QueryHeader, QueryScale, ScanOutput, ScoredRow, Threshold,
};
use crate::GpuError;
use crate::abi::DevicePointerMut;
use crate::driver::{Array, Pinned};
use crate::resident::TILE_ROWS;

/// Maximum number of queries in a pass.
pub(crate) const MAX_BATCH: usize = 1024;

/// Maximum number of excluded rows in a pass, over all queries that exclude more than one. Slots and words of formulas
/// are in the same list.
pub(crate) const MAX_EXCLUDED: usize = 1 << 18;

/// Maximum number of parts of a float32 scan, over all queries.
pub(crate) const PART_COUNTS: usize = 1 << 16;

/// Elements of the largest download of answers: 1024 queries with 16 hits each, 512 with 128, or 64 with 1024.
const ANSWERS: usize = 512 * 129;

/// The buffers of the search.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) headers: Both<QueryHeader>,
    pub(crate) excluded: Both<u32>,
    /// `[MAX_BATCH, dim]`: queries that are not rows of the table.
    pub(crate) vectors: Both<f32>,
    /// `[MAX_BATCH]`.
    pub(crate) uploaded_formulas: Pinned<Formula>,
    /// `[1]`.
    pub(crate) uploaded_formula_count: Pinned<u32>,
    pub(crate) uploads: Uploads,
    pub(crate) formulas: Array<Formula>,
    /// `[1]`.
    pub(crate) formula_count: Array<u32>,
    /// `[MAX_BATCH]`.
    pub(crate) formula_floors: Array<f64>,
    /// `[MAX_BATCH]`.
    pub(crate) columns: Array<FormulaColumn>,
    /// `[batch, 1 + stride]`.
    pub(crate) answers: Both<Answer>,

    pub(crate) query_bytes: Array<u8>,
    pub(crate) scales: Array<QueryScale>,
    pub(crate) thresholds: Array<Threshold>,
    pub(crate) floors: Array<f32>,
    /// The tiles at which the queries' scans end.
    pub(crate) ends: Array<u32>,
    /// The floors of a float32 scan; cleared before each scan.
    pub(crate) scan_floors: Array<u32>,
    pub(crate) candidate_counts: Array<u32>,
    pub(crate) survivor_counts: Array<u32>,
    pub(crate) tickets: Array<u32>,
    /// Divided among the queries of a pass.
    pub(crate) candidates: Array<Candidate>,
    /// Divided among the queries of a pass.
    pub(crate) survivors: Array<ScoredRow>,
    /// Scratch memory, which each kind of pass uses in its own way: see [`Workspace::group_bounds`] and the
    /// functions after it.
    pub(crate) scratch: Array<u64>,
    /// `[INT4_MAX_BLOCKS]`.
    pub(crate) best_of_blocks: Array<u64>,
    pub(crate) part_counts: Array<u32>,
}

/// How much of the buffers that only some queries need is in use.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Uploads {
    /// Components of vectors.
    pub(crate) components: usize,
    /// Elements of the list of excluded rows.
    pub(crate) listed: usize,
}

/// The same values on the host and on the device.
#[derive(Debug)]
pub(crate) struct Both<T> {
    pub(crate) host: Pinned<T>,
    pub(crate) device: Array<T>,
}

impl<T: bytemuck::Pod> Both<T> {
    fn zeroed(len: usize) -> Result<Self, GpuError> {
        Ok(Self { host: Pinned::zeroed(len)?, device: Array::zeroed(len)? })
    }
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
        let candidates = (8 * rows).clamp(1 << 18, 8 << 20);
        let survivors = rows.clamp(1 << 17, 1 << 20);
        // An int32 dot product for each slot, or float32 bounds: 2048 groups for each of 1024 queries.
        let scratch = (tiles * TILE_ROWS / 2).max(1 << 20);
        Self { dim, padded: padded.max(dim.next_multiple_of(64)), candidates, survivors, scratch }
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        let a_query = size_of::<QueryHeader>()
            + size_of::<Formula>()
            + size_of::<f64>()
            + size_of::<FormulaColumn>()
            + size_of::<f32>() * self.dim
            + self.padded
            + size_of::<QueryScale>()
            + size_of::<Threshold>()
            + size_of::<f32>()
            + 2 * size_of::<u32>()
            + 3 * size_of::<u32>() * COUNTER_STRIDE;
        MAX_BATCH * a_query
            + size_of::<u32>() * MAX_EXCLUDED
            + size_of::<Answer>() * ANSWERS
            + size_of::<Candidate>() * self.candidates
            + size_of::<ScoredRow>() * self.survivors
            + size_of::<u64>() * self.scratch
            + size_of::<u64>() * INT4_MAX_BLOCKS
            + size_of::<u32>() * PART_COUNTS
    }
}

impl Workspace {
    pub(crate) fn new(sizes: Sizes) -> Result<Self, GpuError> {
        Ok(Self {
            headers: Both::zeroed(MAX_BATCH)?,
            // Words of a formula are read together, however few there are.
            excluded: Both::zeroed(MAX_EXCLUDED + FORMULA_WORDS)?,
            vectors: Both::zeroed(MAX_BATCH * sizes.dim)?,
            uploaded_formulas: Pinned::zeroed(MAX_BATCH)?,
            uploaded_formula_count: Pinned::zeroed(1)?,
            uploads: Uploads::default(),
            formula_count: Array::zeroed(1)?,
            formulas: Array::zeroed(MAX_BATCH)?,
            formula_floors: Array::zeroed(MAX_BATCH)?,
            columns: Array::zeroed(MAX_BATCH)?,
            answers: Both::zeroed(ANSWERS)?,
            query_bytes: Array::zeroed(MAX_BATCH * sizes.padded)?,
            scales: Array::zeroed(MAX_BATCH)?,
            thresholds: Array::zeroed(MAX_BATCH)?,
            floors: Array::zeroed(MAX_BATCH)?,
            ends: Array::zeroed(MAX_BATCH)?,
            scan_floors: Array::zeroed(MAX_BATCH)?,
            candidate_counts: Array::zeroed(MAX_BATCH * COUNTER_STRIDE)?,
            survivor_counts: Array::zeroed(MAX_BATCH * COUNTER_STRIDE)?,
            tickets: Array::zeroed(MAX_BATCH * COUNTER_STRIDE)?,
            candidates: Array::zeroed(sizes.candidates)?,
            survivors: Array::zeroed(sizes.survivors)?,
            scratch: Array::zeroed(sizes.scratch)?,
            best_of_blocks: Array::zeroed(INT4_MAX_BLOCKS)?,
            part_counts: Array::zeroed(PART_COUNTS)?,
        })
    }

    /// The queries, for kernels that read them on the device.
    pub(crate) fn queries(&self) -> QueriesView {
        QueriesView {
            vectors: self.vectors.device.pointer(),
            headers: self.headers.device.pointer(),
            excluded: self.excluded.device.pointer(),
        }
    }

    /// The output of a scan for `batch` queries that samples `groups` groups.
    pub(crate) fn scan_output(&self, batch: usize, groups: usize) -> ScanOutput {
        ScanOutput {
            ends: self.ends.pointer(),
            thresholds: self.thresholds.pointer(),
            scales: self.scales.pointer(),
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

    /// The scores of some rows, `[count]`, in the scratch.
    pub(crate) fn row_scores(&self, count: usize) -> DevicePointerMut<f64> {
        self.in_scratch(count)
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

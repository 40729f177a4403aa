//! Every buffer of a pass, allocated once.

use crate::GpuError;
use crate::driver::{Array, Pinned};
use crate::resident::constants::{COUNTER_STRIDE, TILE_ROWS};
use crate::resident::wire::{
    Answer, Candidate, DeviceHit, QueryHeader, QueryScale, ScanOutput, Threshold,
};

/// The most queries of one pass.
pub(crate) const MAX_BATCH: usize = 1024;

/// The most excluded rows of one pass together, where a query excludes more than one.
pub(crate) const MAX_EXCLUDED: usize = 1 << 18;

#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) headers: Both<QueryHeader>,
    pub(crate) excluded: Both<u32>,
    /// `[MAX_BATCH, dim]`: queries that are no rows.
    pub(crate) vectors: Both<f32>,
    /// `[batch, 1 + stride]`.
    pub(crate) answers: Both<Answer>,

    pub(crate) query_bytes: Array<u8>,
    pub(crate) scales: Array<QueryScale>,
    pub(crate) thresholds: Array<Threshold>,
    pub(crate) floors: Array<f32>,
    /// Of the float32 scan; cleared before each.
    pub(crate) scan_floors: Array<u32>,
    pub(crate) candidate_counts: Array<u32>,
    pub(crate) survivor_counts: Array<u32>,
    pub(crate) tickets: Array<u32>,
    /// Shared out among a pass's queries; the exact scan keeps its parts' hits here.
    pub(crate) candidates: Array<Candidate>,
    pub(crate) survivors: Array<DeviceHit>,
    /// The bounds of the sample's groups (float32), or the 4-bit scan's dot products (int32), or the
    /// scores of some rows (float64).
    pub(crate) scratch: Array<u64>,
    /// `[MAX_BLOCKS4]`.
    pub(crate) best_of_blocks: Array<u64>,
    pub(crate) part_counts: Array<u32>,
}

/// The same values on both sides.
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

/// How long the buffers are that depend on the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    dim: usize,
    padded: usize,
    candidates: usize,
    survivors: usize,
    scratch: usize,
}

/// Of the largest download: 1024 queries with 16 hits each, 512 with 128, 64 with 1024.
const ANSWERS: usize = 512 * 129;

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
        MAX_BATCH * (40 + 4 * self.dim + self.padded + 16 + 8 + 8 + 12 * COUNTER_STRIDE)
            + 4 * MAX_EXCLUDED
            + 16 * ANSWERS
            + 8 * self.candidates
            + 16 * self.survivors
            + 8 * self.scratch
            + 8 * MAX_BLOCKS4
            + 4 * PART_COUNTS
    }
}

/// Blocks of the 4-bit scan: one block sorts their best rows.
pub(crate) const MAX_BLOCKS4: usize = 2048;

/// Parts of the exact scan, all queries together.
pub(crate) const PART_COUNTS: usize = 1 << 16;

impl Workspace {
    pub(crate) fn new(sizes: Sizes) -> Result<Self, GpuError> {
        Ok(Self {
            headers: Both::zeroed(MAX_BATCH)?,
            excluded: Both::zeroed(MAX_EXCLUDED)?,
            vectors: Both::zeroed(MAX_BATCH * sizes.dim)?,
            answers: Both::zeroed(ANSWERS)?,
            query_bytes: Array::zeroed(MAX_BATCH * sizes.padded)?,
            scales: Array::zeroed(MAX_BATCH)?,
            thresholds: Array::zeroed(MAX_BATCH)?,
            floors: Array::zeroed(MAX_BATCH)?,
            scan_floors: Array::zeroed(MAX_BATCH)?,
            candidate_counts: Array::zeroed(MAX_BATCH * COUNTER_STRIDE)?,
            survivor_counts: Array::zeroed(MAX_BATCH * COUNTER_STRIDE)?,
            tickets: Array::zeroed(MAX_BATCH * COUNTER_STRIDE)?,
            candidates: Array::zeroed(sizes.candidates)?,
            survivors: Array::zeroed(sizes.survivors)?,
            scratch: Array::zeroed(sizes.scratch)?,
            best_of_blocks: Array::zeroed(MAX_BLOCKS4)?,
            part_counts: Array::zeroed(PART_COUNTS)?,
        })
    }

    /// Where a scan for `batch` queries, sampling so many groups, writes.
    pub(crate) fn scan_output(&self, batch: usize, groups: usize) -> ScanOutput {
        assert!(
            batch * groups <= 2 * self.scratch.len(),
            "{batch} x {groups} bounds fit the scratch"
        );
        ScanOutput {
            thresholds: self.thresholds.address(),
            scales: self.scales.address(),
            group_bounds: self.scratch.address(),
            candidate_counts: self.candidate_counts.address(),
            candidates: self.candidates.address(),
            capacity: (self.candidates.len() / batch) as u32,
            groups: groups as u32,
        }
    }

    /// The most groups that a sample for `batch` queries may have.
    pub(crate) fn max_groups(&self, batch: usize) -> usize {
        2 * self.scratch.len() / batch
    }
}

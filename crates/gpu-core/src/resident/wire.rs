//! What the host and the kernels tell each other: the structures of `kernels/include/query.cuh` and
//! `bounds.cuh`, byte for byte.

use bytemuck::{Pod, Zeroable};

/// In place of a row: there is none.
pub(crate) const NOT_A_ROW: u32 = u32::MAX;

/// One query. A norm of 0 marks a place of the batch that is empty.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct QueryHeader {
    pub(crate) norm: f64,
    pub(crate) min_score: f64,
    pub(crate) row: u32,
    pub(crate) vector: u32,
    pub(crate) k: u32,
    pub(crate) first_rows: u32,
    pub(crate) excluded: u32,
    pub(crate) excluded_count: u32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct QueryScale {
    step: f32,
    residual: f32,
    norm: f32,
    sum: i32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TileScale {
    inverse_step: f32,
    residual_over_step: f32,
    step: f32,
    pub(crate) residual: f32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Threshold {
    offset: f32,
    slope: f32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Candidate {
    slot: u32,
    score: f32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct DeviceHit {
    pub(crate) score: f64,
    pub(crate) row: u32,
    unused: u32,
}

/// A query's answer is `1 + stride` of these: its result, then its hits. The kernels' union `Answer`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(8))]
pub(crate) struct Answer([u32; 4]);

impl Answer {
    pub(crate) fn result(self) -> QueryResult {
        bytemuck::cast(self.0)
    }

    pub(crate) fn hit(self) -> DeviceHit {
        bytemuck::cast(self.0)
    }
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct QueryResult {
    pub(crate) count: u32,
    pub(crate) status: u32,
    pub(crate) candidates: u32,
    pub(crate) survivors: u32,
}

/// The status of a query that has its answer.
pub(crate) const ANSWERED: u32 = 0;

/// `ScanOutput`: addresses on the device.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ScanOutput {
    pub(crate) thresholds: u64,
    pub(crate) scales: u64,
    pub(crate) group_bounds: u64,
    pub(crate) candidate_counts: u64,
    pub(crate) candidates: u64,
    pub(crate) capacity: u32,
    pub(crate) groups: u32,
}

const _: () = {
    assert!(size_of::<QueryHeader>() == 40);
    assert!(size_of::<QueryResult>() == 16);
    assert!(size_of::<DeviceHit>() == 16 && size_of::<Answer>() == 16);
    assert!(size_of::<ScanOutput>() == 48);
};

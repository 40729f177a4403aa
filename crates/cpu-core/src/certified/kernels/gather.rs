//! Products of rows from anywhere in the table by rows, and the way into that table.

#![allow(clippy::needless_range_loop)] // One index for several arrays.

use contract::Row;

use super::scan::unfold;
use super::{Asked, Block, Flagged, Space, compare};
use crate::certified::layout::{BLOCK_ROWS, Line, STRIP_BLOCKS, STRIP_ROWS, ZERO_LEVEL};
use crate::instruction_set::{Kernel, Vectors, Work};
use crate::prefetch::{Cache, prefetch};

/// Rows whose products are computed side by side.
const TOGETHER: usize = 4;

/// The prefetch distance, in rows: memory serves so many at once.
const ROWS_AHEAD: usize = 16;

/// Rows as they are in the table by rows, `[rows, row_lines]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowLines<'a> {
    pub(crate) lines: &'a [Line],
    pub(crate) row_lines: usize,
}

impl<'a> RowLines<'a> {
    /// One row: its levels, zeros, and in the last four bytes its scale.
    #[inline(always)]
    pub(crate) fn row(self, row: Row) -> &'a [Line] {
        &self.lines[row.index() * self.row_lines..][..self.row_lines]
    }
}

/// The four bytes of a row's scale.
#[inline(always)]
pub(crate) fn scale_of(row: &[Line]) -> [u8; 4] {
    *row[row.len() - 1].0.last_chunk().expect("a line is longer")
}

/// Multiplies some rows by all queries, and appends those that may be among a query's best: 32 at a
/// time, as if they were a strip. Bits past the last row stand for nothing.
pub(crate) struct Gather<'a> {
    pub(crate) rows: RowLines<'a>,
    pub(crate) members: &'a [Row],
    pub(crate) asked: Asked<'a>,
    pub(crate) space: &'a mut Space,
    pub(crate) found: &'a mut Vec<Flagged>,
}

impl Kernel for Gather<'_> {
    const WORK: Work = Work::Products;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let Self { rows, members, asked, space, found } = self;
        let (queries, query_lines) = (asked.thresholds.len(), asked.query_lines);
        let sums = &mut space.sums[..queries * STRIP_BLOCKS];
        let Some(last) = members.len().checked_sub(1) else { return };
        for &member in &members[..ROWS_AHEAD.min(last)] {
            prefetch(rows.row(member), Cache::First);
        }
        for (strip, first_of_strip) in (0..members.len()).step_by(STRIP_ROWS).enumerate() {
            let mut scales = [Line::ZERO; STRIP_BLOCKS];
            let end = members.len().min(first_of_strip + STRIP_ROWS);
            for first in (first_of_strip..end).step_by(TOGETHER) {
                let (b, r) =
                    ((first - first_of_strip) / BLOCK_ROWS, (first - first_of_strip) % BLOCK_ROWS);
                let mut some: [&[Line]; TOGETHER] = [&[]; TOGETHER];
                for i in 0..TOGETHER {
                    prefetch(rows.row(members[last.min(first + ROWS_AHEAD + i)]), Cache::First);
                    let row = rows.row(members[last.min(first + i)]);
                    // The last row is repeated; its copies have a scale of zero.
                    if first + i < end {
                        scales[b].0.as_chunks_mut().0[r + i] = scale_of(row);
                    }
                    some[i] = row;
                }
                for q in 0..queries {
                    let query = &asked.queries[q * query_lines..][..query_lines];
                    let of_rows = &mut sums[q * STRIP_BLOCKS + b].0.as_chunks_mut().0[r / TOGETHER];
                    *of_rows = sums_of_rows(vectors, some, query);
                }
            }
            let block = |b: usize| Block { high: &[], low: None, scales: &scales[b] };
            compare::find(vectors, strip, &[block(0), block(1)], sums, asked, found);
        }
    }
}

/// The sums of some rows with both planes of a query, `[2, query_lines]`. They count levels of rows
/// from 0 in any set.
pub(crate) struct BothPlanesOfRows<'a> {
    pub(crate) rows: RowLines<'a>,
    pub(crate) members: &'a [Row],
    pub(crate) planes: &'a [Line],
    /// Becomes `[members]`.
    pub(crate) sums: &'a mut Vec<[i32; 2]>,
}

impl Kernel for BothPlanesOfRows<'_> {
    const WORK: Work = Work::Products;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let Self { rows, members, planes, sums } = self;
        sums.clear();
        sums.resize(members.len(), [0; 2]);
        let query_lines = planes.len() / 2;
        let last = members.len().saturating_sub(1);
        for first in (0..members.len()).step_by(TOGETHER) {
            let mut some: [&[Line]; TOGETHER] = [&[]; TOGETHER];
            for i in 0..TOGETHER {
                some[i] = rows.row(members[last.min(first + i)]);
            }
            for plane in 0..2 {
                let query = &planes[plane * query_lines..][..query_lines];
                let bias = if V::SIGNED { bias_of(query) } else { 0 };
                let of_rows = sums_of_rows(vectors, some, query);
                for (sums, sum) in sums[first..].iter_mut().zip(of_rows) {
                    sums[plane] = sum + bias;
                }
            }
        }
    }
}

/// The sums of some rows with a plane of a query.
#[inline(always)]
fn sums_of_rows<V: Vectors>(
    vectors: V,
    mut rows: [&[Line]; TOGETHER],
    query: &[Line],
) -> [i32; TOGETHER] {
    // Sliced once, so that the loop has no bounds checks.
    for i in 0..TOGETHER {
        rows[i] = &rows[i][..query.len()];
    }
    let mut lanes = [vectors.splat(0); TOGETHER];
    for j in 0..query.len() {
        let levels = vectors.load(&query[j]);
        for i in 0..TOGETHER {
            lanes[i] = vectors.accumulate_row(lanes[i], vectors.load(&rows[i][j]), levels);
        }
    }
    vectors.totals(lanes)
}

/// The sum of a plane's levels, times the level of zero.
#[inline(always)]
fn bias_of(plane: &[Line]) -> i32 {
    let mut levels = 0;
    for &level in bytemuck::cast_slice::<_, i8>(plane) {
        levels += i32::from(level);
    }
    ZERO_LEVEL * levels
}

/// Brings the bytes of each row of a block together, `[BLOCK_ROWS, row_lines]`, with the scale for
/// all 8 bits.
pub(crate) struct BringTogether<'a> {
    pub(crate) block: Block<'a>,
    pub(crate) space: &'a mut Space,
    pub(crate) rows: &'a mut [Line],
}

impl Kernel for BringTogether<'_> {
    const WORK: Work = Work::Products;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let Self { block, space, rows } = self;
        unfold::<V, false>(vectors, &block, &mut space.unfolded);
        let unfolded = &space.unfolded[..2 * block.high.len()];
        let row_lines = rows.len() / BLOCK_ROWS;
        // `join` counts from −128 in some sets.
        let flip = if V::SIGNED { 0x80 } else { 0 };
        for r in 0..BLOCK_ROWS {
            let row = &mut rows[r * row_lines..][..row_lines];
            let fours: &mut [[u8; 4]] = bytemuck::cast_slice_mut(row);
            for i in 0..unfolded.len() {
                let [a, b, c, d] = unfolded[i].0.as_chunks::<4>().0[r];
                fours[i] = [a ^ flip, b ^ flip, c ^ flip, d ^ flip];
            }
            let scale = block.scales.0.as_chunks::<4>().0[r];
            *row[row_lines - 1].0.last_chunk_mut().expect("a line is longer") = scale;
        }
    }
}

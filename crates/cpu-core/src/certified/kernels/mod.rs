//! The scan's inner loops. They rule rows out; the pass checks the rows that they find.
//!
//! ```text
//! for each strip of 32 rows:
//!     if there are few queries:
//!         sums = products of the planes' halves with one or two queries at a time     few.rs
//!     else:
//!         unfold the strip: a byte for each component, in memory                      scan.rs
//!         sums = products with tiles of queries, or with matrices                     tile.rs
//!     for each query:                                                                 compare.rs
//!         bound = (sum − bias) · step + slope · residual, in float32, for each row
//!         flag the rows of which bound < offset does not hold
//! ```
//!
//! Rows of a set are not in strips: those from anywhere in the table by rows are multiplied one by
//! one, and compared 32 at a time (gather.rs).
//!
//! `sum` adds the products of a row's levels, counted from 0, with the query's. A set that
//! multiplies signed bytes counts a row's levels from −128 instead; then the bias is already
//! absent.

mod compare;
mod few;
mod gather;
mod scan;
mod tile;

#[cfg(test)]
mod tests;

use super::bounds::Threshold;
use super::layout::{Layout, Line, STRIP_BLOCKS, STRIP_ROWS, Sums};
use crate::prefetch::{Cache, prefetch_line};
pub(crate) use gather::{BothPlanesOfRows, BringTogether, Gather, RowLines, scale_of};
pub(crate) use scan::{BothPlanes, Scan};

/// Up to this many queries, unpacking a strip to memory for all queries does not pay.
pub(crate) const FEW_QUERIES: usize = 4;

/// Buffers are padded to a multiple of this many queries, because some instructions multiply groups
/// of them.
pub(crate) const GROUP_QUERIES: usize = 32;

/// Consecutive strips of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strips<'a> {
    /// Whole blocks of the plane of high halves.
    pub(crate) high: &'a [Line],
    /// The same blocks of the plane of low halves; without it, low halves count as their middle.
    pub(crate) low: Option<&'a [Line]>,
    pub(crate) layout: Layout,
}

impl<'a> Strips<'a> {
    /// Each strip's blocks: high halves, low halves, row scales.
    #[inline(always)]
    pub(crate) fn iter(self) -> impl Iterator<Item = [Block<'a>; STRIP_BLOCKS]> {
        let (lines, block_lines) = (self.layout.lines(), self.layout.block_lines());
        let strip_lines = STRIP_BLOCKS * block_lines;
        (0..self.high.len() / strip_lines).map(move |strip| {
            let block = |b: usize| {
                let range = strip * strip_lines + b * block_lines..;
                let (high, high_scales) = self.high[range.clone()][..block_lines].split_at(lines);
                match self.low {
                    Some(low) => {
                        let (low, scales) = low[range][..block_lines].split_at(lines);
                        Block { high, low: Some(low), scales: &scales[0] }
                    }
                    None => Block { high, low: None, scales: &high_scales[0] },
                }
            };
            [block(0), block(1)]
        })
    }

    /// Prefetches the strip after `strip`, part by part; otherwise memory would be idle during the
    /// products.
    #[inline(always)]
    fn prefetch_next(self, strip: usize, parts: std::ops::Range<usize>, of: usize) {
        let strip_lines = STRIP_BLOCKS * self.layout.block_lines();
        let [from, to] =
            [parts.start, parts.end].map(|part| strip * strip_lines + part * strip_lines / of);
        for plane in [Some(self.high), self.low].into_iter().flatten() {
            plane[from..to].iter().for_each(|line| prefetch_ahead(line, strip_lines));
        }
    }
}

/// A block as read: with all 8 bits, or only the high ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    /// `[lines]`.
    pub(crate) high: &'a [Line],
    /// `[lines]`.
    pub(crate) low: Option<&'a [Line]>,
    /// Steps, and residuals of what is read.
    pub(crate) scales: &'a Line,
}

/// The input of a scan: first planes of queries, and the thresholds for their sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// `[queries, query_lines]`: signed levels, one byte per component, padded with zeros to whole
    /// lines, and with arbitrary queries to whole groups of [`GROUP_QUERIES`].
    pub(crate) queries: &'a [Line],
    pub(crate) query_lines: usize,
    /// `[queries]`.
    pub(crate) thresholds: &'a [Threshold],
}

/// Prefetches a line that is needed a little later. The hardware prefetcher stops at page
/// boundaries.
#[inline(always)]
fn prefetch_ahead(line: &Line, lines: usize) {
    prefetch_line((&raw const *line).wrapping_add(lines), Cache::Second);
}

/// A thread's buffers for the loops.
#[derive(Debug)]
pub(crate) struct Space {
    /// A strip, `[STRIP_BLOCKS, unfolded_lines]`.
    pub(crate) unfolded: Vec<Line>,
    /// `[queries, STRIP_BLOCKS]`, padded to whole groups.
    pub(crate) sums: Vec<Sums>,
    /// The queries in another order, for sets that need one.
    pub(crate) arranged: Vec<Line>,
}

impl Space {
    pub(crate) fn new(layout: Layout, queries: usize) -> Self {
        Self {
            unfolded: vec![Line::ZERO; STRIP_BLOCKS * layout.unfolded_lines()],
            sums: vec![Sums::ZERO; queries.next_multiple_of(GROUP_QUERIES) * STRIP_BLOCKS],
            arranged: Vec::new(),
        }
    }
}

/// The purpose of a scan.
#[derive(Debug)]
pub(crate) enum Purpose<'a> {
    /// Appends the rows of each strip that may be among a query's best.
    Find(&'a mut Vec<Flagged>),
    /// Raises the best lower bounds `[queries]` to `(sum − bias) · step − slope · residual` where
    /// that is higher. The bounds at position i belong to row i of every strip. NaN raises nothing.
    Sample(&'a mut [[f32; STRIP_ROWS]]),
}

/// Rows of a strip that may be among a query's best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Flagged {
    /// The strip, counted from the first one scanned.
    pub(crate) strip: u32,
    pub(crate) query: u32,
    /// A bit for each row.
    pub(crate) rows: u32,
    /// For each row of the strip, found or not, the value that was compared with the query's
    /// offset.
    pub(crate) bounds: [f32; STRIP_ROWS],
}

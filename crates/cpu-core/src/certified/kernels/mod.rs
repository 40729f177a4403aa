//! The scan's inner loops, for each instruction set. They rule rows out; the pass checks the rows
//! that they find.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

#[cfg(test)]
mod tests;

use super::bounds::Threshold;
use super::layout::{Layout, Line, STRIP_BLOCKS, STRIP_ROWS, Sums};
use crate::instruction_set::{InstructionSet, Kind, dispatched};
#[cfg(target_arch = "x86_64")]
use crate::prefetch::{Cache, prefetch_line};

impl InstructionSet {
    /// The largest level of a query's plane for which [`scan`](Self::scan) adds products exactly.
    pub(crate) fn largest_level(self) -> i32 {
        match self.kind() {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 | Kind::Avx2 => x86::LARGEST_LEVEL_AVX2,
            _ => 127,
        }
    }
}

dispatched! {
    /// See [`portable::scan`].
    fn scan(strips: Strips<'_>, asked: Asked<'_>, space: &mut Space, purpose: Purpose<'_>) =
        amx amx::scan, vnni512 x86::avx512vnni::scan, avx512 x86::avx2::scan,
        vnni x86::avxvnni::scan, avx2 x86::avx2::scan, portable portable::scan;

    /// See [`portable::both_planes`].
    fn both_planes(block: Block<'_>, planes: &[Line], space: &mut Space, sums: &mut [Sums; 2]) =
        amx x86::avx512vnni::both_planes, vnni512 x86::avx512vnni::both_planes,
        avx512 x86::avx2::both_planes, vnni x86::avxvnni::both_planes,
        avx2 x86::avx2::both_planes, portable portable::both_planes;
}

/// Up to this many queries, unpacking a strip to memory for all queries does not pay.
pub(crate) const FEW_QUERIES: usize = 4;

/// Buffers are padded to a multiple of this many queries, because some instructions process them in
/// groups.
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
    #[cfg(target_arch = "x86_64")]
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
#[cfg(target_arch = "x86_64")]
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
}

impl Space {
    pub(crate) fn new(layout: Layout, queries: usize) -> Self {
        Self {
            unfolded: vec![Line::ZERO; STRIP_BLOCKS * layout.unfolded_lines()],
            sums: vec![Sums::ZERO; queries.next_multiple_of(GROUP_QUERIES) * STRIP_BLOCKS],
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

//! The scan's inner loops, for each instruction set. They rule rows out; what they find is looked at again by
//! the pass.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
mod prefetch;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

#[cfg(test)]
mod tests;

use super::bounds::Threshold;
use super::layout::{Layout, Line, STRIP_BLOCKS, STRIP_ROWS, Sums};

/// Up to so many queries it does not pay to unfold a strip to memory, from where all queries could use it.
pub(crate) const FEW_QUERIES: usize = 4;

/// There is a place for so many queries, or a multiple: some instructions take them in groups.
pub(crate) const GROUP_QUERIES: usize = 32;

/// Asks for numbers that are read a little later, where that is known how.
pub(crate) fn prefetch<T>(numbers: &[T]) {
    #[cfg(target_arch = "x86_64")]
    prefetch::prefetch_all(numbers);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers;
}

/// Successive strips of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strips<'a> {
    /// Of the plane of high halves, whole blocks.
    pub(crate) high: &'a [Line],
    /// Of the plane of low halves, as many; without it they are taken for their middle.
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
}

/// A block as it is read: with all 8 bits or with the high ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    /// `[lines]`.
    pub(crate) high: &'a [Line],
    /// `[lines]`.
    pub(crate) low: Option<&'a [Line]>,
    /// Steps, and residuals of what is read.
    pub(crate) scales: &'a Line,
}

/// What is asked: first planes of queries, and what their sums must reach.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// `[queries, query_lines]`: signed levels, a byte a component, with zeros up to whole lines; and up to whole
    /// groups of [`GROUP_QUERIES`], queries that do not matter.
    pub(crate) queries: &'a [Line],
    pub(crate) query_lines: usize,
    /// `[queries]`.
    pub(crate) thresholds: &'a [Threshold],
}

/// Memory of a thread for the loops.
#[derive(Debug)]
pub(crate) struct Space {
    /// A strip, `[STRIP_BLOCKS, unfolded_lines]`.
    pub(crate) unfolded: Vec<Line>,
    /// `[queries, STRIP_BLOCKS]`, with place for whole groups.
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

/// What a scan is for.
#[derive(Debug)]
pub(crate) enum Purpose<'a> {
    /// Appends which rows of which strip may be among a query's best.
    Find(&'a mut Vec<Found>),
    /// Raises `[queries]` best lower bounds, those of all strips' first rows in the first place and so on, to
    /// `(sum − bias) · step − slope · residual` where that is higher. NaN raises nothing.
    Sample(&'a mut [[f32; STRIP_ROWS]]),
}

/// Rows of a strip that may be among a query's best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    /// Counted from the first that was scanned.
    pub(crate) strip: u32,
    pub(crate) query: u32,
    /// A bit for each row.
    pub(crate) rows: u32,
    /// For each row of the strip, found or not, what was compared with the query's offset.
    pub(crate) bounds: [f32; STRIP_ROWS],
}

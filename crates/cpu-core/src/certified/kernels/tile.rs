//! Products of an unfolded strip with many queries.

#![allow(clippy::needless_range_loop)] // One index for several arrays.

use super::{Asked, Strips};
use crate::certified::layout::{Line, STRIP_BLOCKS, Sums};
use crate::instruction_set::{Kernel, Vectors, Work};

/// Sums `[queries, STRIP_BLOCKS]` of an unfolded strip with all queries.
#[inline(always)]
pub(super) fn products<V: Vectors>(
    vectors: V,
    rows: [&[Line]; STRIP_BLOCKS],
    asked: Asked<'_>,
    sums: &mut [Sums],
    strips: Strips<'_>,
    strip: usize,
) {
    const { assert!(matches!(V::TILE, [1 | 2, 2] | [2, 8]), "these tiles are below") };
    let (number, query_lines) = (asked.thresholds.len(), asked.query_lines);
    let mut query = 0;
    while query < number {
        let queries = &asked.queries[query * query_lines..];
        let left = number - query;
        let mut width = 0;
        let mut block = 0;
        while block < STRIP_BLOCKS {
            let sums = &mut sums[query * STRIP_BLOCKS + block..];
            let few = Queries { queries, query_lines, sums, stride: STRIP_BLOCKS };
            width = if V::TILE[0] == 1 && left >= 2 {
                vectors.run(Tile::<1, 2, 1>([rows[block]], few))
            } else if V::TILE[0] == 1 {
                vectors.run(Tile::<1, 1, 2>([rows[block]], few))
            } else if V::TILE[1] == 8 && left >= 8 {
                vectors.run(Tile::<2, 8, 1>(rows, few))
            } else if V::TILE[1] == 8 && left >= 4 {
                vectors.run(Tile::<2, 4, 1>(rows, few))
            } else if V::TILE[1] == 8 && left >= 2 {
                vectors.run(Tile::<2, 2, 2>(rows, few))
            } else if left >= 2 {
                vectors.run(Tile::<2, 2, 1>(rows, few))
            } else {
                vectors.run(Tile::<2, 1, 2>(rows, few))
            };
            block += V::TILE[0];
        }
        strips.prefetch_next(strip, query..query + width, number);
        query += width;
    }
}

/// At least as many queries as are multiplied together.
pub(super) struct Queries<'a> {
    /// `[_, query_lines]`.
    pub(super) queries: &'a [Line],
    pub(super) query_lines: usize,
    /// `[_, stride]`: the sums of a query with the blocks.
    pub(super) sums: &'a mut [Sums],
    pub(super) stride: usize,
}

/// Multiplies blocks by the first `QUERIES` queries; returns how many. The blocks are unfolded, all
/// of one length: an even number of lines. `SPLIT` sums for each row and query shorten the
/// dependency chains if there are few of both.
pub(super) struct Tile<'a, const BLOCKS: usize, const QUERIES: usize, const SPLIT: usize>(
    pub(super) [&'a [Line]; BLOCKS],
    pub(super) Queries<'a>,
);

impl<const BLOCKS: usize, const QUERIES: usize, const SPLIT: usize> Kernel
    for Tile<'_, BLOCKS, QUERIES, SPLIT>
{
    const WORK: Work = Work::Products;

    type Output = usize;

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) -> usize {
        let Self(mut blocks, Queries { queries, query_lines, sums, stride }) = self;
        let steps = blocks[0].len();
        for block in &mut blocks {
            *block = &block[..steps];
        }
        let queries = first_levels::<QUERIES>(queries, query_lines, steps);
        let mut lanes = [[[vectors.splat(0); SPLIT]; BLOCKS]; QUERIES];
        let mut first = 0;
        while first < steps {
            for i in 0..SPLIT {
                let step = first + i;
                let mut rows = [vectors.splat(0); BLOCKS];
                for b in 0..BLOCKS {
                    rows[b] = vectors.load(&blocks[b][step]);
                }
                for q in 0..QUERIES {
                    let levels = vectors.levels(queries[q][step]);
                    for b in 0..BLOCKS {
                        lanes[q][b][i] = vectors.accumulate(lanes[q][b][i], rows[b], levels);
                    }
                }
            }
            // There are two steps for each line, so one or two at a time come out even.
            first += SPLIT;
        }
        for q in 0..QUERIES {
            for b in 0..BLOCKS {
                let mut sum = lanes[q][b][0];
                for i in 1..SPLIT {
                    sum = vectors.add(sum, lanes[q][b][i]);
                }
                vectors.store(sum, sums[q * stride + b].line_mut());
            }
        }
        QUERIES
    }
}

/// The first `steps` times four levels of the first `QUERIES` queries.
#[inline(always)]
pub(super) fn first_levels<const QUERIES: usize>(
    queries: &[Line],
    query_lines: usize,
    steps: usize,
) -> [&[[u8; 4]]; QUERIES] {
    let mut levels: [&[[u8; 4]]; QUERIES] = [&[]; QUERIES];
    for q in 0..QUERIES {
        let query = &queries[q * query_lines..][..query_lines];
        levels[q] = &bytemuck::cast_slice(query)[..steps];
    }
    levels
}

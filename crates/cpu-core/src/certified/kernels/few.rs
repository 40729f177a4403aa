//! Products of a strip with a few queries, directly from the planes.
//!
//! Of the high halves alone, a byte is `16 · half + 8`. So halves are multiplied as they are, and
//! `sum = 16 · Σ half · level + 8 · Σ level`. The latter is a sixteenth of the query's bias.

#![allow(clippy::needless_range_loop)] // One index for several arrays.

use super::tile::first_levels;
use super::{Asked, Block, prefetch_ahead};
use crate::certified::bounds::Threshold;
use crate::certified::layout::{Line, STRIP_BLOCKS, Sums};
use crate::instruction_set::{Kernel, Vectors, Work};

/// The prefetch distance: 6 kB of each plane.
const LINES_AHEAD: usize = 96;

/// Sums `[queries, STRIP_BLOCKS]` of a strip with a few queries.
#[inline(always)]
pub(super) fn few_products<V: Vectors>(
    vectors: V,
    blocks: &[Block<'_>; STRIP_BLOCKS],
    asked: Asked<'_>,
    sums: &mut [Sums],
) {
    const { assert!(matches!(V::FEW_TILE, [1 | 2, 1 | 2]), "these tiles are below") };
    let query_lines = asked.query_lines;
    let mut query = 0;
    while query < asked.thresholds.len() {
        let few = Few {
            blocks,
            queries: &asked.queries[query * query_lines..],
            query_lines,
            thresholds: &asked.thresholds[query..],
            sums: &mut sums[query * STRIP_BLOCKS..],
        };
        let alone = V::FEW_TILE[0] == 1 || query + 1 == asked.thresholds.len();
        query += match (alone, V::FEW_TILE[1], blocks[0].low) {
            (true, 1, None) => vectors.run(FewTile::<1, 1, false>(few)),
            (true, 1, Some(_)) => vectors.run(FewTile::<1, 1, true>(few)),
            (true, _, None) => vectors.run(FewTile::<1, 2, false>(few)),
            (true, _, Some(_)) => vectors.run(FewTile::<1, 2, true>(few)),
            (false, 1, None) => vectors.run(FewTile::<2, 1, false>(few)),
            (false, 1, Some(_)) => vectors.run(FewTile::<2, 1, true>(few)),
            (false, _, None) => vectors.run(FewTile::<2, 2, false>(few)),
            (false, _, Some(_)) => vectors.run(FewTile::<2, 2, true>(few)),
        };
    }
}

/// A strip, and at least as many queries as are multiplied together.
struct Few<'a> {
    blocks: &'a [Block<'a>; STRIP_BLOCKS],
    /// `[_, query_lines]`.
    queries: &'a [Line],
    query_lines: usize,
    /// `[_]`.
    thresholds: &'a [Threshold],
    /// `[_, STRIP_BLOCKS]`.
    sums: &'a mut [Sums],
}

/// Multiplies a strip by the first `QUERIES` queries; returns how many. `SPLIT`, 1 or 2, is the
/// number of sums for each row and query; `LOW` says whether there are low halves.
struct FewTile<'a, const QUERIES: usize, const SPLIT: usize, const LOW: bool>(Few<'a>);

impl<const QUERIES: usize, const SPLIT: usize, const LOW: bool> Kernel
    for FewTile<'_, QUERIES, SPLIT, LOW>
{
    const WORK: Work = Work::Products;

    type Output = usize;

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) -> usize {
        let Few { blocks, queries, query_lines, thresholds, sums } = self.0;
        // Sliced once, so that the loop has no bounds checks.
        let lines = blocks[0].high.len();
        let mut planes = [[blocks[0].high; 2]; STRIP_BLOCKS];
        for b in 0..STRIP_BLOCKS {
            planes[b][0] = &blocks[b].high[..lines];
            if LOW && let Some(low) = blocks[b].low {
                planes[b][1] = &low[..lines];
            }
        }
        let queries = first_levels::<QUERIES>(queries, query_lines, 2 * lines);
        let mut lanes = [[[vectors.splat(0); SPLIT]; QUERIES]; STRIP_BLOCKS];
        for j in 0..lines {
            let mut levels = [[vectors.levels([0; 4]); 2]; QUERIES];
            for q in 0..QUERIES {
                for i in 0..2 {
                    levels[q][i] = vectors.levels(queries[q][2 * j + i]);
                }
            }
            // Not in a loop, which might stay one, with its sums in memory.
            add_line::<V, QUERIES, SPLIT, LOW>(vectors, planes[0], j, &levels, &mut lanes[0]);
            add_line::<V, QUERIES, SPLIT, LOW>(vectors, planes[1], j, &levels, &mut lanes[1]);
        }
        for q in 0..QUERIES {
            let bias = thresholds[q].bias;
            let middle = vectors.splat(bias / 16 - if V::SIGNED { bias } else { 0 });
            for b in 0..STRIP_BLOCKS {
                let mut sum = lanes[b][q][0];
                for i in 1..SPLIT {
                    sum = vectors.add(sum, lanes[b][q][i]);
                }
                if !LOW {
                    sum = vectors.add(vectors.times_16(sum), middle);
                }
                vectors.store(sum, sums[q * STRIP_BLOCKS + b].line_mut());
            }
        }
        QUERIES
    }
}

/// Adds the products with line `j` of a block's planes, high and low.
#[inline(always)]
fn add_line<V: Vectors, const QUERIES: usize, const SPLIT: usize, const LOW: bool>(
    vectors: V,
    [high, low]: [&[Line]; 2],
    j: usize,
    levels: &[[V::Levels; 2]; QUERIES],
    lanes: &mut [[V::Words; SPLIT]; QUERIES],
) {
    prefetch_ahead(&high[j], LINES_AHEAD);
    let rows = if LOW {
        prefetch_ahead(&low[j], LINES_AHEAD);
        vectors.join(vectors.load(&high[j]), vectors.load(&low[j]))
    } else {
        vectors.halves(vectors.load(&high[j]))
    };
    for q in 0..QUERIES {
        for i in 0..2 {
            let sum = &mut lanes[q][i % SPLIT];
            *sum = vectors.accumulate(*sum, rows[i], levels[q][i]);
        }
    }
}

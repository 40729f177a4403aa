//! The scan of strips, and the sums of one block with both planes of a query.

#![allow(clippy::needless_range_loop)] // One index for several arrays.

use super::few::few_products;
use super::tile::{Queries, Tile, products};
use super::{Asked, Block, FEW_QUERIES, GROUP_QUERIES, Purpose, Space, Strips, compare};
use crate::certified::layout::{Line, STRIP_BLOCKS, Sums};
use crate::instruction_set::{Kernel, Matrices, Vectors, Work};

/// Multiplies each strip by all queries, and uses the sums as `purpose` says.
///
/// A row is ruled out if `(sum − bias) · step + slope · residual < offset` in float32, with the
/// row's step and residual and the query's bias, slope and offset (`bounds.rs`).
pub(crate) struct Scan<'a> {
    pub(crate) strips: Strips<'a>,
    pub(crate) asked: Asked<'a>,
    pub(crate) space: &'a mut Space,
    pub(crate) purpose: Purpose<'a>,
}

impl Kernel for Scan<'_> {
    const WORK: Work = Work::Products;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let Self { strips, asked, space, mut purpose } = self;
        let Space { unfolded, sums, arranged } = space;
        let queries = asked.thresholds.len();
        let (first, second) = unfolded.split_at_mut(strips.layout.unfolded_lines());
        let lines = strips.layout.lines();
        let matrices = if queries > FEW_QUERIES {
            vectors.matrices(asked.queries, asked.query_lines, lines, arranged)
        } else {
            None
        };
        for (strip, blocks) in strips.iter().enumerate() {
            if queries <= FEW_QUERIES {
                few_products(vectors, &blocks, asked, sums);
            } else if let Some(matrices) = &matrices {
                unfold::<V, true>(vectors, &blocks[0], first);
                unfold::<V, true>(vectors, &blocks[1], second);
                let group_sums = V::Matrices::QUERIES * STRIP_BLOCKS;
                let groups = queries.div_ceil(V::Matrices::QUERIES);
                for group in 0..groups {
                    let sums = &mut sums[group * group_sums..][..group_sums];
                    matrices.multiply([first, second], group, sums);
                    strips.prefetch_next(strip, group..group + 1, groups);
                }
            } else {
                unfold::<V, false>(vectors, &blocks[0], first);
                unfold::<V, false>(vectors, &blocks[1], second);
                let unfolded = [&first[..2 * lines], &second[..2 * lines]];
                products(vectors, unfolded, asked, sums, strips, strip);
            }
            let sums = &sums[..queries * STRIP_BLOCKS];
            match &mut purpose {
                Purpose::Find(found) => {
                    compare::find(vectors, strip, &blocks, sums, asked, found);
                }
                Purpose::Sample(best) => compare::sample(vectors, &blocks, sums, asked, best),
            }
        }
    }
}

/// The sums of one block, with all 8 bits, with both planes of a query, `[2, query_lines]`.
pub(crate) struct BothPlanes<'a> {
    pub(crate) block: Block<'a>,
    pub(crate) planes: &'a [Line],
    pub(crate) space: &'a mut Space,
    pub(crate) sums: &'a mut [Sums; 2],
}

impl Kernel for BothPlanes<'_> {
    const WORK: Work = Work::Products;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let Self { block, planes, space, sums } = self;
        unfold::<V, false>(vectors, &block, &mut space.unfolded);
        let rows = [&space.unfolded[..2 * block.high.len()]];
        let query_lines = planes.len() / 2;
        let both = Queries { queries: planes, query_lines, sums, stride: 1 };
        vectors.run(Tile::<1, 2, 2>(rows, both));
        if V::SIGNED {
            for (plane, sums) in planes.chunks_exact(query_lines).zip(sums) {
                let mut levels = 0;
                for &level in bytemuck::cast_slice::<_, i8>(plane) {
                    levels += i32::from(level);
                }
                for sum in &mut sums.0 {
                    *sum += 128 * levels;
                }
            }
        }
    }
}

const _: () = assert!(GROUP_QUERIES == 32, "a multiple of every set's group");

/// A block with a byte a component: line `i` has components `4i` to `4i + 3`, unless lines are
/// arranged for matrices.
#[inline(always)]
pub(super) fn unfold<V: Vectors, const ARRANGED: bool>(
    vectors: V,
    block: &Block<'_>,
    unfolded: &mut [Line],
) {
    // Sliced once, so that the loop has no bounds checks.
    let lines = block.high.len();
    let low = block.low.map(|low| &low[..lines]);
    let pairs = &mut unfolded.as_chunks_mut::<2>().0[..lines];
    for j in 0..lines {
        let high = vectors.load(&block.high[j]);
        let low = match low {
            Some(low) => vectors.load(&low[j]),
            None => vectors.splat(MIDDLE),
        };
        let mut bytes = vectors.join(high, low);
        if ARRANGED {
            bytes = vectors.arrange_rows(bytes);
        }
        vectors.store(bytes[0], &mut pairs[j][0]);
        vectors.store(bytes[1], &mut pairs[j][1]);
    }
}

/// The low halves if there are only high ones: the middle of their range.
const MIDDLE: i32 = 0x8888_8888_u32 as i32;

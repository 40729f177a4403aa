//! The use of a strip's sums: bounds of its rows, compared with a query's offset or with the best
//! so far.

#![allow(clippy::needless_range_loop)] // One index for several arrays.

use super::{Asked, Block, Flagged};
use crate::certified::layout::{BLOCK_ROWS, STRIP_BLOCKS, STRIP_ROWS, Sums};
use crate::instruction_set::Vectors;

/// Appends the rows that may be among a query's best. `sums` is `[queries, STRIP_BLOCKS]`.
#[inline(always)]
pub(super) fn find<V: Vectors>(
    vectors: V,
    strip: usize,
    blocks: &[Block<'_>; STRIP_BLOCKS],
    sums: &[Sums],
    asked: Asked<'_>,
    found: &mut Vec<Flagged>,
) {
    let [steps, residuals] = steps_and_residuals(vectors, blocks);
    let sums = sums.as_chunks::<STRIP_BLOCKS>().0;
    for (query, (sums, threshold)) in sums.iter().zip(asked.thresholds).enumerate() {
        let slope = vectors.splat_float(threshold.slope);
        let offset = vectors.splat_float(threshold.offset);
        let mut rows = 0;
        let mut bounds = steps;
        for b in 0..STRIP_BLOCKS {
            let slack = vectors.multiply(slope, residuals[b]);
            let sum = unbiased(vectors, &sums[b], threshold.bias);
            bounds[b] = vectors.fused(sum, steps[b], slack);
            // Not `bound >= offset`: NaN keeps the row.
            rows |= vectors.not_below(bounds[b], offset) << (b * BLOCK_ROWS);
        }
        if rows != 0 {
            let mut all = [[0.0; BLOCK_ROWS]; STRIP_BLOCKS];
            for b in 0..STRIP_BLOCKS {
                vectors.store_floats(bounds[b], &mut all[b]);
            }
            let (strip, query) = (strip as u32, query as u32);
            found.push(Flagged { strip, query, rows, bounds: bytemuck::cast(all) });
        }
    }
}

/// Raises the best lower bounds, `[queries]`.
#[inline(always)]
pub(super) fn sample<V: Vectors>(
    vectors: V,
    blocks: &[Block<'_>; STRIP_BLOCKS],
    sums: &[Sums],
    asked: Asked<'_>,
    best: &mut [[f32; STRIP_ROWS]],
) {
    let [steps, residuals] = steps_and_residuals(vectors, blocks);
    let sums = sums.as_chunks::<STRIP_BLOCKS>().0;
    for ((sums, threshold), best) in sums.iter().zip(asked.thresholds).zip(best) {
        let slope = vectors.splat_float(-threshold.slope);
        let best: &mut [[f32; BLOCK_ROWS]; STRIP_BLOCKS] = bytemuck::cast_mut(best);
        for b in 0..STRIP_BLOCKS {
            let slack = vectors.multiply(slope, residuals[b]);
            let sum = unbiased(vectors, &sums[b], threshold.bias);
            let bound = vectors.fused(sum, steps[b], slack);
            // NaN raises nothing.
            let higher = vectors.max(bound, vectors.load_floats(&best[b]));
            vectors.store_floats(higher, &mut best[b]);
        }
    }
}

#[inline(always)]
fn unbiased<V: Vectors>(vectors: V, sums: &Sums, bias: i32) -> V::Floats {
    let mut sums = vectors.load(sums.line());
    if !V::SIGNED {
        sums = vectors.subtract(sums, vectors.splat(bias));
    }
    vectors.convert(sums)
}

#[inline(always)]
fn steps_and_residuals<V: Vectors>(
    vectors: V,
    blocks: &[Block<'_>; STRIP_BLOCKS],
) -> [[V::Floats; STRIP_BLOCKS]; 2] {
    let mut steps = [vectors.splat_float(0.0); STRIP_BLOCKS];
    let mut residuals = steps;
    for b in 0..STRIP_BLOCKS {
        let scales = vectors.load(blocks[b].scales);
        steps[b] = vectors.upper_halves(scales);
        residuals[b] = vectors.lower_halves(scales);
    }
    [steps, residuals]
}

//! From float32 rows to the derived table's planes.

use contract::certificate::{Lift, Rotation};
use contract::{Row, Table};

use super::bounds::widen_for_rounding;
use super::layout::{BLOCK_ROWS, Layout, Line, RowScale, ZERO_LEVEL, upper_half_up};
use crate::instruction_set::{Kernel, Vectors, Work};

/// The smallest step of a row that has a score: 2⁻¹⁰⁰.
const SMALLEST_STEP: f32 = f32::from_bits(27 << 23);

/// Room for a block's rows, component by component, `[dim]`.
pub(crate) type BlockSpace = [[f64; BLOCK_ROWS]];

/// Fills one block, `[high, low]`, from the table's rows from `first`.
///
/// A row without a score, and a row past the table's end, has a step and residuals of zero.
pub(crate) struct QuantiseBlock<'a> {
    pub(crate) table: Table<'a>,
    pub(crate) lift: Lift,
    pub(crate) rotation: &'a Rotation,
    pub(crate) first: usize,
    pub(crate) space: &'a mut BlockSpace,
    pub(crate) to: [&'a mut [Line]; 2],
}

impl Kernel for QuantiseBlock<'_> {
    /// With AVX-512 it took one and a half times as long as with AVX2.
    const WORK: Work = Work::Narrow;

    type Output = ();

    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // One index for several arrays.
    fn run<V: Vectors>(self, _: V) {
        let Self { table, lift, rotation, first, space, to: [high, low] } = self;
        let (of_table, dim) = (table.dim(), lift.dim(table.dim()));
        let rows = table.rows().saturating_sub(first).min(BLOCK_ROWS);
        space.fill([0.0; BLOCK_ROWS]);
        let mut has_score = [false; BLOCK_ROWS];
        for r in 0..rows {
            let Some(divisor) = lift.divisor(table.norms()[first + r]) else { continue };
            has_score[r] = true;
            let components = &table.components()[(first + r) * of_table..][..of_table];
            for (values, &x) in space.iter_mut().zip(components) {
                values[r] = f64::from(x) / divisor;
            }
            if dim > of_table {
                let bias = table.bias(Row((first + r) as u32));
                space[of_table][r] = lift.last_component(bias) / divisor;
            }
        }
        rotation.apply(space);

        let mut peaks = [0.0f64; BLOCK_ROWS];
        for values in space.iter() {
            for (peak, value) in peaks.iter_mut().zip(values) {
                *peak = if value.abs() > *peak { value.abs() } else { *peak };
            }
        }
        // A row that is zero, but has a score, has a step, too.
        let mut steps = peaks.map(|peak| upper_half_up(peak / 127.0));
        for (step, has_score) in steps.iter_mut().zip(has_score) {
            *step = if has_score { step.max(SMALLEST_STEP) } else { *step };
        }
        let wide_steps = steps.map(f64::from);
        // This avoids a division for each component. The inverse may be rounded, because residuals
        // are measured, not assumed.
        let inverse = steps.map(|step| if step > 0.0 { 1.0 / f64::from(step) } else { 0.0 });

        let mut squares = [[0.0f64; BLOCK_ROWS]; 2];
        let lines = Layout { rows: table.rows(), dim }.lines();
        for ((j, high), low) in high[..lines].iter_mut().enumerate().zip(&mut low[..lines]) {
            let mut levels = [[ZERO_LEVEL as u8; BLOCK_ROWS]; 8];
            for (levels, values) in levels.iter_mut().zip(&space[8 * j..dim.min(8 * j + 8)]) {
                for r in 0..BLOCK_ROWS {
                    // At most 127 steps from zero, but for the roundings of `inverse`.
                    let nearest = (values[r] * inverse[r]).round_ties_even().clamp(-127.0, 127.0);
                    let level = nearest as i32 + ZERO_LEVEL;
                    let rest = values[r] - nearest * wide_steps[r];
                    squares[1][r] += rest * rest;
                    let middle = (level & 0xf0 | 8) - ZERO_LEVEL;
                    let rest = values[r] - f64::from(middle) * wide_steps[r];
                    squares[0][r] += rest * rest;
                    levels[r] = level as u8;
                }
            }
            for r in 0..BLOCK_ROWS {
                for i in 0..4 {
                    let (first, second) = (levels[i][r], levels[4 + i][r]);
                    high.0[4 * r + i] = first >> 4 | second & 0xf0;
                    low.0[4 * r + i] = first & 0x0f | second << 4;
                }
            }
        }
        for (plane, squares) in [high, low].into_iter().zip(squares) {
            let words: &mut [[u8; 4]] = plane[lines].0.as_chunks_mut().0;
            for r in 0..BLOCK_ROWS {
                let residual = if steps[r] > 0.0 {
                    bounded(widen_for_rounding(squares[r].sqrt()))
                } else {
                    0.0
                };
                words[r] = RowScale::new(steps[r], residual).0.to_le_bytes();
            }
        }
    }
}

/// A residual above 1 gives no useful bound, so it becomes infinity. This also keeps the numbers
/// small for which roundings are bounded (docs/certificate.md, theorem 2).
fn bounded(residual: f64) -> f64 {
    if residual <= 1.0 { residual } else { f64::INFINITY }
}

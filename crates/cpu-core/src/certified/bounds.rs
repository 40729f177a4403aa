//! The certificate's arithmetic; the theorems are in docs/certificate.md.

use contract::certificate::SLACK;

use super::layout::RowScale;
#[cfg(doc)]
use super::layout::ZERO_LEVEL;

/// An upper bound on the rounding error of a number below 8. Adding it needs no branch, unlike
/// [`round_up`].
const TO_FLOAT32: f64 = 1e-6;

/// A length computed in float64, increased to cover its own roundings and those of the rotation.
pub(crate) fn widen_for_rounding(length: f64) -> f64 {
    length * (1.0 + 1e-9) + 1e-9
}

/// The largest float32 that is at most `x`.
pub(crate) fn round_down(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) > x { near.next_down() } else { near }
}

/// The smallest float32 that is at least `x`.
pub(crate) fn round_up(x: f64) -> f32 {
    -round_down(-x)
}

/// The errors of rounded dot products with one query.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueryBounds {
    /// The query's step: the value of one level.
    pub(crate) step: f64,
    /// At least the distance between the rotated unit query and its levels.
    pub(crate) residual: f64,
    /// At least the length of its levels.
    pub(crate) norm: f64,
    /// [`ZERO_LEVEL`] times the sum of its levels.
    pub(crate) bias: i64,
}

impl QueryBounds {
    /// The scan's threshold: rows with `(sum − bias) · row_step + slope · row_residual < offset`,
    /// computed in float32, can't reach `floor`. (Theorem 2 divided by the query's step.)
    pub(crate) fn threshold(&self, floor: f32) -> Threshold {
        let offset = (f64::from(floor) - self.residual - f64::from(SLACK)) / self.step;
        Threshold {
            bias: self.bias as i32,
            offset: round_down(offset),
            slope: round_up(self.norm / self.step),
        }
    }

    /// The lowest and highest possible score of a row with this residual, from the value that the
    /// scan compared with the offset. NaN or infinite if there is no bound. (The end of theorem 2
    /// on the CPU.)
    #[inline]
    pub(crate) fn of_scan(&self, bound: f32, row_residual: f32) -> [f32; 2] {
        let most = f64::from(bound) * self.step;
        let least = most - 2.0 * self.norm * f64::from(row_residual);
        let error = self.residual + f64::from(SLACK) + TO_FLOAT32;
        [(least - error) as f32, (most + error) as f32]
    }

    /// The lowest and highest possible score of a row with this scale, from the exact sum of all
    /// of its bits with both planes of the query, less the bias.
    pub(crate) fn of_sum(&self, sum: i64, scale: RowScale) -> [f32; 2] {
        let score = sum as f64 * self.step * f64::from(scale.step());
        let error = self.residual + self.norm * f64::from(scale.residual()) + f64::from(SLACK);
        [round_down(score - error), round_up(score + error)]
    }

    /// The lowest possible score of a row, from the lower bound that a scan for a sample found.
    pub(crate) fn of_sample(&self, bound: f32) -> f32 {
        let error = self.residual + f64::from(SLACK) + TO_FLOAT32;
        (f64::from(bound) * self.step - error) as f32
    }
}

/// See [`QueryBounds::threshold`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threshold {
    /// The excess of a sum, because levels of rows are counted from 0 instead of [`ZERO_LEVEL`].
    pub(crate) bias: i32,
    pub(crate) offset: f32,
    pub(crate) slope: f32,
}

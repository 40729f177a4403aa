//! Queries as the scan needs them: rotated unit vectors in two planes of 8 bits.

use contract::certificate::Rotation;

use super::bounds::{QueryBounds, Threshold, widen_for_rounding};
use super::columns::Column;
use super::kernels::{Asked, GROUP_QUERIES};
use super::layout::{Line, ZERO_LEVEL};
use super::tables::Tables;
use crate::instruction_set::{Kernel, Vectors, Work};
use crate::threads::Workers;

/// One level of the first plane equals this many of the second.
const LOW_LEVELS: i32 = 128;

/// The queries of a pass. The scan multiplies by the first plane alone. The rows that it finds are
/// compared again with both planes, which together hold a query to 14 bits or more.
#[derive(Debug)]
pub(crate) struct PreparedQueries {
    query_lines: usize,
    /// `[queries, query_lines]`: first planes side by side, and zeros for a group of queries after
    /// the last.
    first: Vec<Line>,
    /// `[queries, 2, query_lines]`.
    both: Vec<Line>,
    pub(crate) bounds: Vec<PreparedBounds>,
}

/// A query's bounds, with its first plane alone and with both.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PreparedBounds {
    pub(crate) first: QueryBounds,
    pub(crate) both: QueryBounds,
}

impl PreparedQueries {
    pub(crate) fn new(columns: &[Column<'_>], tables: &Tables, workers: Workers<'_>) -> Self {
        let query_lines = tables.layout.query_bytes() / 64;
        let mut prepared = Self {
            query_lines,
            first: vec![Line::ZERO; (columns.len() + GROUP_QUERIES) * query_lines],
            both: vec![Line::ZERO; columns.len() * 2 * query_lines],
            bounds: vec![PreparedBounds::default(); columns.len()],
        };
        prepared.prepare(|_| true, columns, tables, workers);
        prepared
    }

    /// Prepares the columns at the indices that `is_new` names, and some of their neighbours.
    pub(crate) fn prepare(
        &mut self,
        is_new: impl Fn(usize) -> bool,
        columns: &[Column<'_>],
        tables: &Tables,
        workers: Workers<'_>,
    ) {
        let Tables { layout, rotation, .. } = tables;
        let (query_lines, instructions) = (self.query_lines, workers.instructions);
        let parts = columns
            .chunks(PART)
            .zip(self.first.chunks_mut(PART * query_lines))
            .zip(self.both.chunks_mut(PART * 2 * query_lines))
            .zip(self.bounds.chunks_mut(PART))
            .enumerate()
            .filter(|(part, _)| (part * PART..columns.len()).take(PART).any(&is_new))
            .map(|(_, part)| part)
            .collect();
        workers.share(parts, |parts| {
            let mut group = Group::new(layout.dim);
            for (((columns, first), both), bounds) in parts {
                let first = first.chunks_exact_mut(query_lines);
                let both = both.chunks_exact_mut(2 * query_lines);
                let mut prepared = first.zip(both).zip(bounds);
                for some in columns.chunks(LANES) {
                    group.fill(some.iter());
                    let largest_level = instructions.largest_level();
                    let group = &mut group;
                    instructions.run(PrepareQueries { rotation, largest_level, group });
                    for (lane, ((first, both), bounds)) in
                        prepared.by_ref().take(some.len()).enumerate()
                    {
                        let bytes = bytemuck::cast_slice_mut::<_, i8>(both);
                        let (high, low) = bytes.split_at_mut(bytes.len() / 2);
                        for ((levels, high), low) in group.levels.iter().zip(high).zip(low) {
                            (*high, *low) = (levels[0][lane], levels[1][lane]);
                        }
                        first.copy_from_slice(&both[..query_lines]);
                        *bounds = group.bounds[lane];
                    }
                }
            }
        });
    }

    /// The first planes of the queries from `first` on, as many as there are thresholds.
    pub(crate) fn planes<'a>(&'a self, first: usize, thresholds: &'a [Threshold]) -> Asked<'a> {
        let query_lines = self.query_lines;
        let queries = thresholds.len().next_multiple_of(GROUP_QUERIES);
        let queries = &self.first[first * query_lines..][..queries * query_lines];
        Asked { queries, query_lines, thresholds }
    }

    /// Both planes of one query, as if they were two.
    pub(crate) fn both(&self, query: usize) -> &[Line] {
        &self.both[query * 2 * self.query_lines..][..2 * self.query_lines]
    }

    /// The sum with both planes, from the two sums with [`both`](Self::both), in units of the
    /// second plane's step.
    pub(crate) fn joined(sums: [i32; 2]) -> i64 {
        i64::from(sums[0]) * i64::from(LOW_LEVELS) + i64::from(sums[1])
    }
}

/// Queries that are prepared together.
const LANES: usize = 8;

/// Queries that a thread prepares at a time: about 80 microseconds of work.
const PART: usize = 2 * LANES;

/// Some queries side by side.
#[derive(Debug)]
struct Group {
    norms: [f64; LANES],
    /// `[dim]`: the components of the queries, then those of the rotated unit vectors.
    vectors: Vec<[f64; LANES]>,
    /// `[dim]`: the levels of the first planes and those of the second.
    levels: Vec<[[i8; LANES]; 2]>,
    bounds: [PreparedBounds; LANES],
}

impl Group {
    fn new(dim: usize) -> Self {
        Self {
            norms: [0.0; LANES],
            vectors: vec![[0.0; LANES]; dim],
            levels: vec![[[0; LANES]; 2]; dim],
            bounds: Default::default(),
        }
    }

    /// Fills the group with one to [`LANES`] queries; the last is repeated if there are fewer.
    fn fill<'a>(&mut self, columns: impl ExactSizeIterator<Item = &'a Column<'a>> + Clone) {
        let last = columns.len() - 1;
        let lanes = (0..LANES).map(|lane| lane.min(last));
        for (lane, index) in lanes.enumerate() {
            let column = columns.clone().nth(index).expect("there are this many");
            self.norms[lane] = column.norm();
            column.fill(lane, &mut self.vectors);
        }
    }
}

/// Computes levels and bounds from a group's components.
struct PrepareQueries<'a> {
    rotation: &'a Rotation,
    largest_level: i32,
    group: &'a mut Group,
}

impl Kernel for PrepareQueries<'_> {
    const WORK: Work = Work::Narrow;

    type Output = ();

    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // One index for several arrays.
    fn run<V: Vectors>(self, _: V) {
        let Self { rotation, largest_level, group } = self;
        let Group { norms, vectors, levels, bounds } = group;
        for values in vectors.iter_mut() {
            for (value, norm) in values.iter_mut().zip(&*norms) {
                *value /= norm;
            }
        }
        rotation.apply(vectors);
        let mut peaks = [0.0f64; LANES];
        for values in vectors.iter() {
            for (peak, value) in peaks.iter_mut().zip(values) {
                *peak = if value.abs() > *peak { value.abs() } else { *peak };
            }
        }
        // The outermost level is `largest_level` in the first plane and zero in the second.
        let steps = peaks.map(|peak| peak / f64::from(largest_level * LOW_LEVELS));
        // This avoids a division for each component. The inverse may be rounded, because residuals
        // are measured, not assumed.
        let inverse = steps.map(|step| 1.0 / step);
        let mut rests = [[0.0f64; LANES]; 2];
        // Exact: at most 4096 · 2²⁸.
        let mut squares = [[0.0f64; LANES]; 2];
        let mut sums = [[0i32; LANES]; 2];
        for (values, levels) in vectors.iter().zip(levels) {
            for lane in 0..LANES {
                let level = nearest(values[lane] * inverse[lane]);
                let high = (level + LOW_LEVELS / 2).div_euclid(LOW_LEVELS);
                levels[0][lane] = high as i8;
                levels[1][lane] = (level - high * LOW_LEVELS) as i8;
                for (i, level) in [high * LOW_LEVELS, level].into_iter().enumerate() {
                    let wide = f64::from(level);
                    let rest = values[lane] - wide * steps[lane];
                    rests[i][lane] += rest * rest;
                    squares[i][lane] += wide * wide;
                    sums[i][lane] += level;
                }
            }
        }
        for lane in 0..LANES {
            let bounds_of = |i: usize, levels: i32| QueryBounds {
                step: steps[lane] * f64::from(levels),
                residual: widen_for_rounding(rests[i][lane].sqrt()),
                norm: widen_for_rounding(squares[i][lane].sqrt() * steps[lane]),
                bias: i64::from(sums[i][lane] / levels) * i64::from(ZERO_LEVEL),
            };
            bounds[lane] =
                PreparedBounds { first: bounds_of(0, LOW_LEVELS), both: bounds_of(1, 1) };
        }
    }
}

/// The nearest integer to a number of less than 2³¹. Adding the constant leaves the integer in the
/// low bits. Rounding would be a library call without SSE 4.1.
#[inline(always)]
fn nearest(x: f64) -> i32 {
    const LAST_BIT_IS_ONE: f64 = 1.5 * (1u64 << 52) as f64;
    (x + LAST_BIT_IS_ONE).to_bits() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstructionSet;

    #[test]
    #[allow(clippy::needless_range_loop)] // One index for several arrays.
    fn planes_join_to_the_query_within_the_residual() {
        for (dim, largest) in [(1, 127), (7, 63), (300, 127), (4096, 63)] {
            let mut group = Group::new(dim);
            for (i, values) in group.vectors.iter_mut().enumerate() {
                *values = std::array::from_fn(|lane| ((i * i + lane + 1) as f64).sin());
            }
            for lane in 0..LANES {
                let square = group.vectors.iter().map(|values| values[lane].powi(2));
                group.norms[lane] = square.sum::<f64>().sqrt();
            }
            let mut unit = group.vectors.clone();
            unit.iter_mut().for_each(|values| {
                values.iter_mut().zip(&group.norms).for_each(|(value, norm)| *value /= norm);
            });
            let rotation = Rotation::new(dim);
            rotation.apply(&mut unit);
            for set in InstructionSet::available() {
                let mut group =
                    Group { vectors: group.vectors.clone(), norms: group.norms, ..Group::new(dim) };
                let rotation = &rotation;
                set.run(PrepareQueries { rotation, largest_level: largest, group: &mut group });
                for lane in 0..LANES {
                    let PreparedBounds { first, both } = group.bounds[lane];
                    let level = |plane: usize, i: usize| i32::from(group.levels[i][plane][lane]);
                    assert!((0..dim).all(|i| level(0, i).abs() <= largest));
                    assert!((0..dim).all(|i| level(1, i).abs() <= 64));
                    let distance = |levels: &dyn Fn(usize) -> f64| {
                        (0..dim).map(|i| (unit[i][lane] - levels(i)).powi(2)).sum::<f64>().sqrt()
                    };
                    let length = |levels: &dyn Fn(usize) -> f64| {
                        (0..dim).map(|i| levels(i).powi(2)).sum::<f64>().sqrt()
                    };
                    let by_first = |i: usize| f64::from(level(0, i)) * first.step;
                    let by_both = |i: usize| f64::from(level(0, i) * 128 + level(1, i)) * both.step;
                    assert!(distance(&by_first) <= first.residual, "{set}");
                    assert!(distance(&by_both) <= both.residual, "{set}");
                    assert!(length(&by_first) <= first.norm && length(&by_both) <= both.norm);
                    let widest = 0.004 * (dim as f64).sqrt().max(1.0) / f64::from(largest);
                    assert!(both.residual < widest);
                    let sum = |plane| (0..dim).map(|i| level(plane, i)).sum::<i32>();
                    assert_eq!(first.bias, i64::from(128 * sum(0)));
                    assert_eq!(both.bias, i64::from(128 * (128 * sum(0) + sum(1))));
                }
            }
        }
    }

    #[test]
    fn the_nearest_integer_is_the_nearest() {
        for x in [0.0, -0.0, 0.5, 1.5, -0.5, -1.49, 16256.0, -16256.2, 520_000.5] {
            assert_eq!(nearest(x), x.round_ties_even() as i32, "{x}");
        }
    }
}

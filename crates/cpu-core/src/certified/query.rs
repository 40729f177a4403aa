//! Queries as the scan wants them: rotated unit vectors in two planes of 8 bits.

use model_store::{Query, Table};

use super::bounds::{QueryBounds, Threshold, amply};
use super::kernels::{Asked, GROUP_QUERIES};
use super::layout::{Line, ZERO_LEVEL};
use super::tables::Tables;

/// A level of the first plane counts so many of the second.
const LOW_LEVELS: i32 = 128;

/// The queries of a pass. The scan multiplies with the first plane alone; what it finds is looked at again
/// with both, which together hold a query to 14 bits or more.
#[derive(Debug)]
pub(crate) struct PreparedQueries {
    query_lines: usize,
    /// `[queries, query_lines]`: first planes side by side, with zeros up to whole groups of queries.
    first: Vec<Line>,
    /// `[queries, 2, query_lines]`.
    both: Vec<Line>,
    pub(crate) bounds: Vec<PreparedBounds>,
}

/// A query's bounds, with its first plane alone and with both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreparedBounds {
    pub(crate) first: QueryBounds,
    pub(crate) both: QueryBounds,
}

impl PreparedQueries {
    /// `largest_level` is the largest that the instructions take: 127, or less.
    pub(crate) fn new(
        queries: &[&Query],
        table: &Table<'_>,
        tables: &Tables,
        largest_level: i32,
    ) -> Self {
        let Tables { layout, rotation, .. } = tables;
        let query_lines = layout.query_bytes() / 64;
        let mut prepared = Self {
            query_lines,
            first: vec![Line::ZERO; queries.len().next_multiple_of(GROUP_QUERIES) * query_lines],
            both: vec![Line::ZERO; queries.len() * 2 * query_lines],
            bounds: Vec::with_capacity(queries.len()),
        };
        let mut unit = vec![[0.0; 1]; layout.dim];
        for (i, query) in queries.iter().enumerate() {
            for (value, &x) in unit.iter_mut().zip(query.components(table)) {
                *value = [f64::from(x) / query.norm()];
            }
            rotation.apply(&mut unit);
            let planes = &mut prepared.both[i * 2 * query_lines..][..2 * query_lines];
            let bounds = quantise(&unit, largest_level, bytemuck::cast_slice_mut(planes));
            prepared.first[i * query_lines..][..query_lines]
                .copy_from_slice(&planes[..query_lines]);
            prepared.bounds.push(bounds);
        }
        prepared
    }

    /// The first planes of as many queries as there are thresholds.
    pub(crate) fn first<'a>(&'a self, thresholds: &'a [Threshold]) -> Asked<'a> {
        let query_lines = self.query_lines;
        let queries = thresholds.len().next_multiple_of(GROUP_QUERIES);
        let queries = &self.first[..queries * query_lines];
        Asked { queries, query_lines, thresholds }
    }

    /// Both planes of one query, as if they were two.
    pub(crate) fn both(&self, query: usize) -> &[Line] {
        &self.both[query * 2 * self.query_lines..][..2 * self.query_lines]
    }

    /// The sum of both planes from what [`both`](Self::both) gives: in units of the second plane's step.
    pub(crate) fn joined(sums: [i32; 2]) -> i64 {
        i64::from(sums[0]) * i64::from(LOW_LEVELS) + i64::from(sums[1])
    }
}

/// Fills both planes, `[2, query_bytes]`.
fn quantise(unit: &[[f64; 1]], largest_level: i32, planes: &mut [i8]) -> PreparedBounds {
    let peak = unit.iter().map(|[z]| z.abs()).fold(0.0, f64::max);
    // The outermost level is `largest_level` of the first plane and nothing of the second.
    let step = peak / f64::from(largest_level * LOW_LEVELS);
    let (first, second) = planes.split_at_mut(planes.len() / 2);
    let mut rests = [0.0; 2];
    let mut squares = [0i64; 2];
    let mut sums = [0i64; 2];
    for ((&[z], first), second) in unit.iter().zip(first).zip(second) {
        let level = (z / step).round_ties_even() as i32;
        let high = (level + LOW_LEVELS / 2).div_euclid(LOW_LEVELS);
        *first = high as i8;
        *second = (level - high * LOW_LEVELS) as i8;
        for (i, level) in [high * LOW_LEVELS, level].into_iter().enumerate() {
            let rest = z - f64::from(level) * step;
            rests[i] += rest * rest;
            squares[i] += i64::from(level) * i64::from(level);
            sums[i] += i64::from(level);
        }
    }
    let bounds = |i: usize, levels: i32| QueryBounds {
        step: step * f64::from(levels),
        residual: amply(rests[i].sqrt()),
        norm: amply((squares[i] as f64).sqrt() * step),
        bias: sums[i] / i64::from(levels) * i64::from(ZERO_LEVEL),
    };
    PreparedBounds { first: bounds(0, LOW_LEVELS), both: bounds(1, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_join_to_the_query_within_the_residual() {
        for (dim, largest) in [(1, 127), (7, 63), (300, 127), (4096, 63)] {
            let mut unit: Vec<[f64; 1]> = (0..dim).map(|i| [((i * i + 1) as f64).sin()]).collect();
            let norm = unit.iter().map(|[z]| z * z).sum::<f64>().sqrt();
            unit.iter_mut().for_each(|z| z[0] /= norm);
            let mut planes = vec![0i8; 2 * dim];
            let PreparedBounds { first, both } = quantise(&unit, largest, &mut planes);
            let (high, low) = planes.split_at(dim);
            assert!(high.iter().all(|&m| i32::from(m).abs() <= largest));
            assert!(low.iter().all(|&m| i32::from(m).abs() <= 64));
            let distance = |levels: &dyn Fn(usize) -> f64| {
                (0..dim).map(|i| (unit[i][0] - levels(i)).powi(2)).sum::<f64>().sqrt()
            };
            let by_first = distance(&|i| f64::from(high[i]) * first.step);
            let by_both =
                distance(&|i| (f64::from(high[i]) * 128.0 + f64::from(low[i])) * both.step);
            assert!(by_first <= first.residual && by_both <= both.residual);
            assert!(both.residual < 0.004 * (dim as f64).sqrt().max(1.0) / f64::from(largest));
            assert_eq!(first.bias, 128 * high.iter().map(|&m| i64::from(m)).sum::<i64>());
        }
    }
}

//! Samples a few strips from all over the table before a pass, for initial floors.
//!
//! Without them, most candidates in a small table are found while floors rise from nothing.

use contract::{FilterParts, Query};

use super::bounds::Threshold;
use super::kernels::{Purpose, Space, Strips};
use super::layout::{STRIP_BLOCKS, STRIP_ROWS};
use super::query::PreparedQueries;
use super::tables::Tables;
use crate::InstructionSet;
use crate::row_limits::count_covering;

/// The sample: a 16th of the strips, at most 64, in runs of four.
const PART: usize = 16;
const RUN: usize = 4;
const RUNS: usize = 16;

/// Rows at the same position in their strips form a group, of which the sample finds the best bound. The floor is one
/// of the highest of these bounds.
const RANKS: usize = 24;

/// A lower bound of each query's `k`-th best score, or minus infinity.
///
/// `queries` are sorted by the number of rows that they cover, descending.
pub(super) fn floors(
    tables: &Tables,
    instructions: InstructionSet,
    queries: &[&Query],
    prepared: &PreparedQueries,
) -> Vec<f32> {
    let mut floors = vec![f32::NEG_INFINITY; queries.len()];
    let layout = tables.layout;
    let sampled = count_covering(layout.rows.saturating_sub(1), queries, layout.rows);
    let queries = &queries[..sampled];
    // Excluded rows may be the best of their groups. So may rows above a maximum score, any number of them: then the
    // sample says nothing.
    let rank = |query: &Query| {
        let FilterParts { excluded, first_rows: _, min_score: _, max_score } =
            query.filter().parts();
        if max_score.is_some() { usize::MAX } else { query.k().saturating_add(excluded.len()) }
    };
    let strips = layout.rows / STRIP_ROWS;
    let runs = (strips / (PART * RUN)).min(RUNS);
    if runs == 0 || !queries.iter().any(|query| rank(query) <= RANKS) {
        return floors;
    }
    let thresholds: Vec<Threshold> = prepared.bounds[..sampled]
        .iter()
        .map(|bounds| bounds.first.threshold(f32::NEG_INFINITY))
        .collect();
    let strip_lines = STRIP_BLOCKS * layout.block_lines();
    let mut space = Space::new(layout, sampled);
    let mut best = vec![[f32::NEG_INFINITY; STRIP_ROWS]; sampled];
    for run in 0..runs {
        let first = run * strips / runs;
        let lines = first * strip_lines..(first + RUN) * strip_lines;
        let (high, low) = (&tables.high()[lines.clone()], Some(&tables.low()[lines]));
        let (asked, purpose) = (prepared.first(&thresholds), Purpose::Sample(&mut best));
        instructions.scan(Strips { high, low, layout }, asked, &mut space, purpose);
    }
    for (i, (query, best)) in queries.iter().zip(&mut best).enumerate() {
        let Some(index) = rank(query).checked_sub(1).filter(|&index| index < RANKS) else {
            continue;
        };
        let (_, bound, _) = best.select_nth_unstable_by(index, |a, b| b.total_cmp(a));
        // Rows of norm zero are never neighbours, and have a bound of zero.
        if *bound > 0.0 {
            floors[i] = prepared.bounds[i].first.of_sample(*bound);
        }
    }
    floors
}

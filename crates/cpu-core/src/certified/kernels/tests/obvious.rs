//! The loops as plainly as possible, which those of every instruction set are tested against.

use contract::Row;

use super::super::{Asked, Block, Flagged, Purpose, Space, Strips};
use crate::certified::layout::{BLOCK_ROWS, Line, RowScale, STRIP_BLOCKS, STRIP_ROWS, Sums};

/// The value of low halves if there are only high ones: the middle of their range.
const MIDDLE: Line = Line([0x88; 64]);

/// Multiplies each strip by all queries, and uses the sums as `purpose` says.
///
/// A row is ruled out if `(sum − bias) · step + slope · residual < offset` in float32, with the
/// row's step and residual and the query's bias, slope and offset (`bounds.rs`); `sum` adds the
/// products of the row's levels, counted from 0, with the query's.
pub(super) fn scan(
    strips: Strips<'_>,
    asked: Asked<'_>,
    space: &mut Space,
    mut purpose: Purpose<'_>,
) {
    let Space { unfolded, sums, .. } = space;
    let sums = &mut sums[..asked.thresholds.len() * STRIP_BLOCKS];
    let unfolded_lines = strips.layout.unfolded_lines();
    for (strip, blocks) in strips.iter().enumerate() {
        for (block, unfolded) in blocks.iter().zip(unfolded.chunks_exact_mut(unfolded_lines)) {
            unfold(block, unfolded);
        }
        let queries = asked.queries.chunks_exact(asked.query_lines);
        for (query, sums) in queries.zip(sums.as_chunks_mut::<STRIP_BLOCKS>().0) {
            for (unfolded, sums) in unfolded.chunks_exact(unfolded_lines).zip(sums) {
                *sums = products(unfolded, query);
            }
        }
        match &mut purpose {
            Purpose::Find(found) => admitted(strip, &blocks, sums, asked, found),
            Purpose::Sample(best) => sample(&blocks, sums, asked, best),
        }
    }
}

/// Multiplies some rows of the strips by all queries, and finds those that may be among a query's
/// best, 32 at a time.
pub(super) fn gather(strips: Strips<'_>, members: &[Row], asked: Asked<'_>) -> Vec<Flagged> {
    let mut found = Vec::new();
    for (strip, members) in members.chunks(STRIP_ROWS).enumerate() {
        let mut unfolded = vec![Line::ZERO; STRIP_BLOCKS * strips.layout.unfolded_lines()];
        let mut scales = [Line::ZERO; STRIP_BLOCKS];
        for (i, member) in members.iter().enumerate() {
            let (from, r) = (member.index() / BLOCK_ROWS, member.index() % BLOCK_ROWS);
            let of_strip = strips.iter().nth(from / STRIP_BLOCKS).unwrap();
            let from = &of_strip[from % STRIP_BLOCKS];
            let mut block = vec![Line::ZERO; strips.layout.unfolded_lines()];
            unfold(from, &mut block);
            let (b, to) = (i / BLOCK_ROWS, i % BLOCK_ROWS);
            let lines = unfolded.chunks_exact_mut(block.len()).nth(b).unwrap();
            for (to_line, line) in lines.iter_mut().zip(&block) {
                to_line.0[4 * to..][..4].copy_from_slice(&line.0[4 * r..][..4]);
            }
            scales[b].0[4 * to..][..4].copy_from_slice(&from.scales.0[4 * r..][..4]);
        }
        let mut sums = Vec::new();
        for query in asked.queries.chunks_exact(asked.query_lines).take(asked.thresholds.len()) {
            let of_blocks = unfolded.chunks_exact(unfolded.len() / STRIP_BLOCKS);
            sums.extend(of_blocks.map(|block| products(block, query)));
        }
        let block = |b: usize| Block { high: &[], low: None, scales: &scales[b] };
        admitted(strip, &[block(0), block(1)], &sums, asked, &mut found);
    }
    found
}

/// The sums of one block, with all 8 bits, with both planes of a query, `[2, query_lines]`.
pub(super) fn both_planes(
    block: Block<'_>,
    planes: &[Line],
    space: &mut Space,
    sums: &mut [Sums; 2],
) {
    let query_lines = planes.len() / 2;
    let unfolded = &mut space.unfolded[..query_lines * 16];
    unfold(&block, unfolded);
    for (plane, sums) in planes.chunks_exact(query_lines).zip(sums) {
        *sums = products(unfolded, plane);
    }
}

/// A block with a byte a component: line `i` has components `4i` to `4i + 3`.
fn unfold(block: &Block<'_>, unfolded: &mut [Line]) {
    for (j, (high, lines)) in block.high.iter().zip(unfolded.as_chunks_mut().0).enumerate() {
        let low = block.low.map_or(&MIDDLE, |low| &low[j]);
        let [first, second] = lines;
        for (((first, second), high), low) in
            first.0.iter_mut().zip(&mut second.0).zip(&high.0).zip(&low.0)
        {
            *first = high << 4 | low & 0x0f;
            *second = high & 0xf0 | low >> 4;
        }
    }
}

fn products(unfolded: &[Line], query: &[Line]) -> Sums {
    let levels: &[[i8; 4]] = bytemuck::cast_slice(query);
    let mut sums = [0; BLOCK_ROWS];
    for (line, levels) in unfolded.iter().zip(levels) {
        for (sum, row) in sums.iter_mut().zip(line.0.as_chunks::<4>().0) {
            for (&u, &m) in row.iter().zip(levels) {
                *sum += i32::from(u) * i32::from(m);
            }
        }
    }
    Sums(sums)
}

/// `sums` is `[queries, STRIP_BLOCKS]`.
fn admitted(
    strip: usize,
    blocks: &[Block<'_>; STRIP_BLOCKS],
    sums: &[Sums],
    asked: Asked<'_>,
    found: &mut Vec<Flagged>,
) {
    let sums = sums.as_chunks::<STRIP_BLOCKS>().0;
    for (query, (sums, threshold)) in sums.iter().zip(asked.thresholds).enumerate() {
        let mut rows = 0;
        let mut bounds = [0.0; STRIP_ROWS];
        for (b, (sums, block)) in sums.iter().zip(blocks).enumerate() {
            for (r, sum) in sums.0.iter().enumerate() {
                let scale = RowScale::at(block.scales, r);
                let bound = (sum - threshold.bias) as f32 * scale.step()
                    + threshold.slope * scale.residual();
                let ruled_out = bound < threshold.offset;
                // Not `bound >= offset`: NaN keeps the row.
                rows |= u32::from(!ruled_out) << (b * BLOCK_ROWS + r);
                bounds[b * BLOCK_ROWS + r] = bound;
            }
        }
        if rows != 0 {
            found.push(Flagged { strip: strip as u32, query: query as u32, rows, bounds });
        }
    }
}

fn sample(
    blocks: &[Block<'_>; STRIP_BLOCKS],
    sums: &[Sums],
    asked: Asked<'_>,
    best: &mut [[f32; STRIP_ROWS]],
) {
    let sums = sums.as_chunks::<STRIP_BLOCKS>().0;
    for ((sums, threshold), best) in sums.iter().zip(asked.thresholds).zip(best) {
        for (b, (sums, block)) in sums.iter().zip(blocks).enumerate() {
            for (r, sum) in sums.0.iter().enumerate() {
                let scale = RowScale::at(block.scales, r);
                let bound = (sum - threshold.bias) as f32 * scale.step()
                    - threshold.slope * scale.residual();
                let best = &mut best[b * BLOCK_ROWS + r];
                *best = best.max(bound);
            }
        }
    }
}

//! Tests every instruction set against the obvious loops: the same rows found, the same sums.

mod obvious;

use contract::Row;
use proptest::prelude::*;

use super::{
    Asked, BothPlanes, BringTogether, Flagged, GROUP_QUERIES, Gather, Purpose, RowLines, Scan,
    Space, Strips,
};
use crate::InstructionSet;
use crate::certified::bounds::Threshold;
use crate::certified::layout::{BLOCK_ROWS, Layout, Line, STRIP_BLOCKS, STRIP_ROWS, Sums};

/// Bytes from a seed (SplitMix64).
fn fill(bytes: &mut [u8], mut seed: u64) {
    for byte in bytes {
        seed = seed.wrapping_add(1);
        *byte = model_store::synth::split_mix(seed) as u8;
    }
}

/// A plane with random halves and scales of ordinary size.
fn plane(layout: Layout, seed: u64) -> Vec<Line> {
    let mut lines = vec![Line::ZERO; layout.plane_lines()];
    fill(bytemuck::cast_slice_mut(&mut lines), seed);
    for block in lines.chunks_exact_mut(layout.block_lines()) {
        for (r, word) in block[layout.lines()].0.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            // Steps are powers of two: then fused and separate multiply-add agree. Now and then a
            // row that can't be ruled out, and one of norm zero.
            *word = match r {
                3 => 0x3c00_7f80_u32,
                7 => 0,
                _ => 0x3c00_3dcc + r as u32 * 0x0080_0002,
            }
            .to_le_bytes();
        }
    }
    lines
}

/// Query planes with levels of at most `largest`, zero past the table's components.
fn planes(layout: Layout, number: usize, largest: i32, seed: u64) -> Vec<Line> {
    let mut lines = vec![Line::ZERO; number * layout.query_bytes() / 64];
    fill(bytemuck::cast_slice_mut(&mut lines), seed);
    for plane in
        bytemuck::cast_slice_mut::<_, i8>(&mut lines).chunks_exact_mut(layout.query_bytes())
    {
        for (i, level) in plane.iter_mut().enumerate() {
            let inside = i32::from(*level) % (largest + 1);
            *level = if i < layout.dim { inside as i8 } else { 0 };
        }
        // The extremes, side by side.
        for level in &mut plane[..4.min(layout.dim)] {
            *level = if largest == 127 { -128 } else { -(largest as i8) - 1 };
        }
    }
    lines
}

/// Miri takes a thousand times as long for everything.
const MOST_DIM: usize = if cfg!(miri) { 20 } else { 300 };
const MOST_ROWS: usize = if cfg!(miri) { 40 } else { 200 };
const MOST_QUERIES: usize = if cfg!(miri) { 12 } else { 80 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 60 }))]
    #[test]
    fn all_sets_find_the_same_rows(
        dim in prop_oneof![1..MOST_DIM, Just(MOST_DIM)],
        rows in 1..MOST_ROWS,
        queries in prop_oneof![1..MOST_QUERIES / 4, MOST_QUERIES / 2..MOST_QUERIES],
        with_low in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let layout = Layout { rows, dim };
        let (high, low) = (plane(layout, seed), plane(layout, seed ^ 1));
        let strips = Strips { high: &high, low: with_low.then_some(&low), layout };
        for set in InstructionSet::available() {
            let query_lines = layout.query_bytes() / 64;
            let groups = queries.next_multiple_of(GROUP_QUERIES);
            let asked = planes(layout, groups, set.largest_level(), seed ^ 2);
            let thresholds: Vec<Threshold> = (0..queries)
                .map(|q| {
                    let plane: &[i8] = bytemuck::cast_slice(&asked[q * query_lines..][..query_lines]);
                    let bias = 128 * plane.iter().map(|&m| i32::from(m)).sum::<i32>();
                    // From "all rows" over "some" to "only what can't be ruled out".
                    let offset = match q % 4 {
                        0 => f32::NEG_INFINITY,
                        1 => f32::INFINITY,
                        2 => f32::NAN,
                        _ => 100.0,
                    };
                    Threshold { bias, offset, slope: 50.0 }
                })
                .collect();
            let asked = Asked { queries: &asked, query_lines, thresholds: &thresholds };
            let mut expected: Vec<Flagged> = Vec::new();
            let purpose = Purpose::Find(&mut expected);
            obvious::scan(strips, asked, &mut Space::new(layout, queries), purpose);
            prop_assert!(expected.len() >= high.len() / layout.block_lines() / STRIP_BLOCKS);
            let mut found = Vec::new();
            let (mut space, purpose) = (Space::new(layout, queries), Purpose::Find(&mut found));
            set.run(Scan { strips, asked, space: &mut space, purpose });
            prop_assert_eq!(&found, &expected, "{}", set);
            let mut samples = [(); 2].map(|()| vec![[f32::NEG_INFINITY; STRIP_ROWS]; queries]);
            let [expected, found] = &mut samples;
            let purpose = Purpose::Sample(expected);
            obvious::scan(strips, asked, &mut Space::new(layout, queries), purpose);
            // The same buffers again.
            let purpose = Purpose::Sample(found);
            set.run(Scan { strips, asked, space: &mut space, purpose });
            prop_assert_eq!(found, expected, "{}", set);
            if with_low {
                check_gathered(set, strips, asked, seed)?;
            }
            // Sums of both planes, of blocks in any order.
            for strip in strips.iter() {
                for block in strip.into_iter() {
                    let both = &asked.queries[..2 * query_lines];
                    let (mut expected, mut found) = ([Sums::ZERO; 2], [Sums::ZERO; 2]);
                    obvious::both_planes(block, both, &mut Space::new(layout, 1), &mut expected);
                    let (space, sums) = (&mut Space::new(layout, 1), &mut found);
                    set.run(BothPlanes { block, planes: both, space, sums });
                    prop_assert_eq!(found, expected, "{}", set);
                }
            }
        }
    }
}

/// Brings the rows of the strips together, and gathers some of them: in any order, some twice.
fn check_gathered(
    set: InstructionSet,
    strips: Strips<'_>,
    asked: Asked<'_>,
    seed: u64,
) -> Result<(), TestCaseError> {
    let layout = strips.layout;
    let row_lines = layout.dim / 64 + 1 + usize::from(layout.dim % 64 > 60);
    let mut lines = vec![Line([0xaa; 64]); layout.blocks() * BLOCK_ROWS * row_lines];
    let mut space = Space::new(layout, asked.thresholds.len());
    for (block, rows) in strips.iter().flatten().zip(lines.chunks_exact_mut(BLOCK_ROWS * row_lines))
    {
        rows.fill(Line::ZERO);
        set.run(BringTogether { block, space: &mut space, rows });
    }
    let random = |i: u64| model_store::synth::split_mix(seed ^ i);
    let number = random(0) as usize % (3 * STRIP_ROWS);
    let row = |i: usize| Row((random(i as u64) % layout.rows as u64) as u32);
    let members: Vec<Row> = (1..=number).map(row).collect();
    let expected = obvious::gather(strips, &members, asked);
    let mut found = Vec::new();
    let rows = RowLines { lines: &lines, row_lines };
    set.run(Gather { rows, members: &members, asked, space: &mut space, found: &mut found });
    // A place without a row has a scale of zero, and the bound of no row.
    prop_assert_eq!(found, expected, "{}", set);
    Ok(())
}

#[test]
fn a_strip_has_a_bit_for_each_row() {
    assert_eq!(STRIP_ROWS, u32::BITS as usize);
}

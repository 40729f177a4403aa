//! The order of rows in the quantised tables.

use rayon::prelude::*;

use super::{NOT_A_ROW, TILE_ROWS};

/// The row of each slot. Rows are ordered by their largest component, so that the rows of a tile are alike. The
/// tiles are then spread, so that the first tiles are a fair sample of all. The last tile of the order is
/// padded with [`NOT_A_ROW`].
pub(super) fn slots(peaks: &[f32]) -> Vec<u32> {
    let mut order: Vec<u32> =
        (0..peaks.len() as u32).into_par_iter().filter(|&row| peaks[row as usize] >= 0.0).collect();
    // Non-negative floats have the same order as their bits. The row breaks ties, so the order is the same
    // everywhere.
    order.par_sort_unstable_by_key(|&row| (peaks[row as usize].to_bits(), row));
    order.resize(order.len().next_multiple_of(TILE_ROWS), NOT_A_ROW);
    let tiles = order.len() / TILE_ROWS;
    let stride = spreading_stride(tiles);
    let mut slots = Vec::with_capacity(order.len());
    for tile in 0..tiles {
        let from = (tile as u64 * stride as u64 % tiles as u64) as usize;
        slots.extend_from_slice(&order[from * TILE_ROWS..][..TILE_ROWS]);
    }
    slots
}

/// A stride that visits each of `tiles` tiles once. It is near 0.618 times their number (the golden ratio), so
/// that successive tiles are far apart in the order.
fn spreading_stride(tiles: usize) -> usize {
    fn gcd(a: usize, b: usize) -> usize {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    let golden = (tiles as f64 * 0.618_033_988_749_895) as usize;
    (golden.max(1)..).find(|&stride| gcd(stride, tiles) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_but_zero_rows_has_one_slot() {
        for rows in [0, 1, 2, 127, 128, 129, 1000, 5000] {
            let peaks: Vec<f32> =
                (0..rows).map(|i| if i % 7 == 3 { -1.0 } else { (i * 37 % 101) as f32 }).collect();
            let slots = slots(&peaks);
            assert_eq!(slots.len() % TILE_ROWS, 0);
            let mut seen: Vec<u32> = slots.iter().copied().filter(|&r| r != NOT_A_ROW).collect();
            seen.sort_unstable();
            let expected: Vec<u32> = (0..rows as u32).filter(|i| i % 7 != 3).collect();
            assert_eq!(seen, expected, "{rows} rows");
        }
    }

    #[test]
    fn only_one_tile_is_not_full() {
        let slots = slots(&vec![1.0; 1000]);
        let partial = slots.chunks(TILE_ROWS).filter(|tile| tile.contains(&NOT_A_ROW)).count();
        assert_eq!(partial, 1);
    }
}

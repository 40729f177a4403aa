//! The order of rows in the quantised tables.

use std::ops::Range;

use rayon::prelude::*;

use super::{NOT_A_ROW, TILE_ROWS};

/// The most tiles of a band. With more, the rows of a tile would hardly be more alike. With fewer,
/// limits would be met more closely than any request needs.
const LARGEST_BAND: usize = 64;

/// A band has at most this part of the tiles before it, so that a limit is near the end of a band.
const BAND_PART: usize = 8;

/// Which row is in which slot of the quantised tables.
///
/// Rows are cut into bands of whole tiles, in their order: the rows of a band are after all rows of
/// the bands before it. So the first rows of the table are in the first tiles. Within a band, rows
/// are ordered by their largest component, so that the rows of a tile are alike. The tiles of a
/// band are then spread, so that every n-th tile is a fair sample. The last tile in this order is
/// padded with [`NOT_A_ROW`].
///
/// Rows that are appended take the slots behind those, in their order: each tile is a band.
#[derive(Debug)]
pub(crate) struct Slots {
    /// The slot of each row; [`NOT_A_SLOT`](Self::NOT_A_SLOT) for rows of norm zero.
    of_rows: Vec<u32>,
    bands: Vec<Band>,
    /// The first slot that never had a row.
    next: u32,
}

/// Some rows, and the tile after theirs.
#[derive(Debug, Clone, Copy)]
struct Band {
    first_row: u32,
    last_row: u32,
    end_tile: u32,
}

impl Slots {
    /// Stands for the slot of a row of norm zero, which has none.
    pub(crate) const NOT_A_SLOT: u32 = u32::MAX;

    /// For rows with these largest components; a negative one is that of a row of norm zero. Also
    /// returns the row of each slot, or [`NOT_A_ROW`].
    pub(super) fn new(peaks: &[f32]) -> (Self, Vec<u32>) {
        let with_norm = |&row: &u32| peaks[row as usize] >= 0.0;
        let mut order: Vec<u32> =
            (0..peaks.len() as u32).into_par_iter().filter(with_norm).collect();
        let mut rest = &mut order[..];
        let (mut bands, mut parts, mut tiles) = (Vec::new(), Vec::new(), 0);
        while !rest.is_empty() {
            let largest = (tiles / BAND_PART).clamp(1, LARGEST_BAND) * TILE_ROWS;
            let rows = largest.min(rest.len());
            let (part, after) = std::mem::take(&mut rest).split_at_mut(rows);
            tiles += rows.div_ceil(TILE_ROWS);
            let (first_row, last_row) = (part[0], part[rows - 1]);
            bands.push(Band { first_row, last_row, end_tile: tiles as u32 });
            parts.push(part);
            rest = after;
        }
        // Non-negative floats have the same order as their bits. The row breaks ties, so the order
        // is the same everywhere.
        let key = |&row: &u32| (peaks[row as usize].to_bits(), row);
        let spread = parts.into_par_iter().flat_map_iter(|part| {
            part.sort_unstable_by_key(key);
            spread(part)
        });
        let rows: Vec<u32> = spread.collect();
        let mut of_rows = vec![Self::NOT_A_SLOT; peaks.len()];
        for (slot, &row) in rows.iter().enumerate().filter(|&(_, &row)| row != NOT_A_ROW) {
            of_rows[row as usize] = slot as u32;
        }
        let next = rows.len() as u32;
        (Self { of_rows, bands, next }, rows)
    }

    /// Gives the rows behind the last one their slots, by their norms. Returns the slots that were
    /// given, in order, and the row of each.
    pub(super) fn append(&mut self, norms: &[f64]) -> (Range<usize>, Vec<u32>) {
        let (first, mut rows) = (self.next as usize, Vec::with_capacity(norms.len()));
        for &norm in norms {
            let row = self.of_rows.len() as u32;
            if norm == 0.0 {
                self.of_rows.push(Self::NOT_A_SLOT);
                continue;
            }
            let tile = self.next / TILE_ROWS as u32;
            match self.bands.last_mut() {
                Some(band) if band.end_tile > tile => band.last_row = row,
                _ => self.bands.push(Band { first_row: row, last_row: row, end_tile: tile + 1 }),
            }
            self.of_rows.push(self.next);
            self.next += 1;
            rows.push(row);
        }
        (first..self.next as usize, rows)
    }

    /// The slot of a row, or [`NOT_A_SLOT`](Self::NOT_A_SLOT), also if the table has no such row.
    pub(crate) fn of(&self, row: u32) -> u32 {
        self.of_rows.get(row as usize).copied().unwrap_or(Self::NOT_A_SLOT)
    }

    /// The number of tiles, from the first on, that have only rows below `limit`.
    pub(crate) fn tiles_within(&self, limit: u32) -> u32 {
        self.end_of_leading(|band| band.last_row < limit)
    }

    /// The number of tiles, from the first on, that together have every row below `limit`.
    pub(crate) fn tiles_covering(&self, limit: u32) -> u32 {
        self.end_of_leading(|band| band.first_row < limit)
    }

    /// The tiles of the leading bands of which something is true, and of no band after them.
    fn end_of_leading(&self, is_true: impl Fn(&Band) -> bool) -> u32 {
        let leading = match self.bands.last() {
            // Nearly every query is for all rows, and needs no search.
            Some(last) if is_true(last) => self.bands.len(),
            _ => self.bands.partition_point(is_true),
        };
        leading.checked_sub(1).map_or(0, |band| self.bands[band].end_tile)
    }
}

/// The rows of a band, with its tiles spread and the last one padded.
fn spread(rows: &[u32]) -> impl Iterator<Item = u32> {
    let tiles = rows.len().div_ceil(TILE_ROWS);
    let stride = spreading_stride(tiles);
    (0..tiles).flat_map(move |tile| {
        let from = tile * stride % tiles * TILE_ROWS;
        (from..from + TILE_ROWS).map(|i| rows.get(i).copied().unwrap_or(NOT_A_ROW))
    })
}

/// A stride that visits each of `tiles` tiles once. It is near 0.618 times their number (the golden
/// ratio), so that successive tiles are far apart in the order.
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

    fn slots(rows: usize) -> (Slots, Vec<u32>) {
        let peaks: Vec<f32> =
            (0..rows).map(|i| if i % 7 == 3 { -1.0 } else { (i * 37 % 101) as f32 }).collect();
        Slots::new(&peaks)
    }

    #[test]
    fn every_row_but_zero_rows_has_one_slot() {
        for rows in [0, 1, 2, 127, 128, 129, 1000, 5000, 40_000] {
            let (slots, slot_rows) = slots(rows);
            assert_eq!(slot_rows.len() % TILE_ROWS, 0);
            let there = |&(_, &row): &(usize, &u32)| row != NOT_A_ROW;
            let mut seen = slot_rows.clone();
            seen.retain(|&row| row != NOT_A_ROW);
            seen.sort_unstable();
            let expected: Vec<u32> = (0..rows as u32).filter(|i| i % 7 != 3).collect();
            assert_eq!(seen, expected, "{rows} rows");
            for (slot, &row) in slot_rows.iter().enumerate().filter(there) {
                assert_eq!(slots.of(row) as usize, slot);
            }
            for row in (0..rows as u32).filter(|row| row % 7 == 3).chain([rows as u32, u32::MAX]) {
                assert_eq!(slots.of(row), Slots::NOT_A_SLOT);
            }
        }
    }

    #[test]
    fn rows_that_are_appended_follow_in_tiles_of_their_own() {
        for (rows, parts) in [(0, [1, 0, 200]), (300, [7, 121, 1]), (128, [128, 128, 3])] {
            let (mut slots, mut slot_rows) = slots(rows);
            let (first, mut number) = (slot_rows.len(), rows);
            for part in parts {
                let norms: Vec<f64> = (0..part).map(|i| f64::from(u8::from(i % 5 != 2))).collect();
                let (given, rows) = slots.append(&norms);
                assert_eq!(given, slot_rows.len()..slot_rows.len() + rows.len());
                let with_norm = norms.iter().enumerate().filter(|(_, norm)| **norm > 0.0);
                let expected: Vec<u32> = with_norm.map(|(i, _)| (number + i) as u32).collect();
                assert_eq!(rows, expected);
                slot_rows.extend(rows);
                number += part;
                let end = slot_rows.len().div_ceil(TILE_ROWS) as u32;
                assert_eq!(slots.tiles_covering(number as u32), end);
                assert_eq!(slots.tiles_within(number as u32), end);
            }
            for (slot, &row) in slot_rows.iter().enumerate().filter(|one| *one.1 != NOT_A_ROW) {
                assert_eq!(slots.of(row) as usize, slot);
                let tile = (slot / TILE_ROWS) as u32;
                assert!(slots.tiles_covering(row + 1) > tile, "of {row}");
                assert!(slots.tiles_covering(row) >= tile || slot < first, "before {row}");
                assert!(slots.tiles_within(row) <= tile, "of {row}");
            }
        }
    }

    #[test]
    fn only_one_tile_is_not_full() {
        let slot_rows = Slots::new(&vec![1.0; 100_000]).1;
        let partial = slot_rows.chunks(TILE_ROWS).filter(|tile| tile.contains(&NOT_A_ROW)).count();
        assert_eq!(partial, 1);
    }

    #[test]
    fn the_first_rows_are_in_the_first_tiles() {
        for rows in [1, 128, 1000, 100_000] {
            let (slots, slot_rows) = slots(rows);
            let tiles = slot_rows.len() / TILE_ROWS;
            for limit in
                [0, 1, 2, 3, 4, 127, 128, 150, 151, 1000, 10_000, 99_999, 100_000, u32::MAX]
            {
                let within = slots.tiles_within(limit) as usize;
                let covering = slots.tiles_covering(limit) as usize;
                assert!(within <= covering && covering <= tiles);
                let (first, rest) = slot_rows.split_at(within * TILE_ROWS);
                assert!(
                    first.iter().all(|&row| row < limit || row == NOT_A_ROW),
                    "{limit} of {rows}"
                );
                let last = rest.split_at((covering - within) * TILE_ROWS).1;
                assert!(last.iter().all(|&row| row >= limit), "{limit} of {rows}");
                // What is scanned in vain is a small part.
                assert!(covering - within <= (covering / BAND_PART).max(1), "{limit} of {rows}");
            }
            assert_eq!(slots.tiles_within(u32::MAX) as usize, tiles);
        }
    }

    #[test]
    fn every_few_tiles_there_are_rows_of_all_kinds() {
        let peaks: Vec<f32> = (0..200_000).map(|i| (i * 7919 % 10_007) as f32).collect();
        let slot_rows = Slots::new(&peaks).1;
        let sampled = slot_rows.chunks(TILE_ROWS).skip(100).step_by(32).flatten();
        let sampled: Vec<u32> = sampled.copied().filter(|&row| row != NOT_A_ROW).collect();
        let high = sampled.iter().filter(|&&row| peaks[row as usize] > 5003.0).count();
        let share = high as f64 / sampled.len() as f64;
        assert!((0.4..0.6).contains(&share), "{share}");
    }
}

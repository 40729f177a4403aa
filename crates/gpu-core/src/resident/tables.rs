//! What lives in device memory for the whole life of the engine: the model's table and what the
//! certified first stages scan, which is derived from it there.

use cust::stream::Stream;
use model_store::ModelStore;
use rayon::prelude::*;

use super::constants::TILE_ROWS;
use super::upload;
use super::wire::{NOT_A_ROW, TileScale};
use crate::GpuError;
use crate::driver::{Array, Doing, Shape};
use crate::search::Kernels;

/// The step of the 4-bit table in units of `1 / sqrt(dim)`; as in `quantise_rows.cu`.
const STEP4: f64 = 0.3352;

#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) rows: usize,
    pub(crate) dim: usize,
    /// `[rows, dim]`.
    pub(crate) components: Array<f32>,
    /// `[rows]`.
    pub(crate) norms: Array<f64>,
    /// `None` if there was no memory for it, or no row that can be a neighbour.
    pub(crate) quantised: Option<Quantised>,
}

/// Tiles of [`TILE_ROWS`] slots. Rows of norm zero have no slot.
#[derive(Debug)]
pub(crate) struct Quantised {
    pub(crate) tiles: usize,
    /// `[tiles * TILE_ROWS]`: which row stands in a slot, or [`NOT_A_ROW`].
    pub(crate) slot_rows: Array<u32>,
    /// `[tiles, chunks, TILE_ROWS, 16]`.
    pub(crate) int8: Array<u8>,
    /// `[tiles]`.
    pub(crate) scales: Array<TileScale>,
    pub(crate) int4: Option<Int4>,
}

#[derive(Debug)]
pub(crate) struct Int4 {
    /// `[tiles, chunks, TILE_ROWS, 16]`.
    pub(crate) levels: Array<u8>,
    /// `[tiles]`.
    pub(crate) residuals: Array<f32>,
    /// Half a step between two levels.
    pub(crate) half_step: f32,
}

/// Bytes of the table and its norms.
pub(crate) fn table_bytes(rows: usize, dim: usize) -> usize {
    rows * (4 * dim + 8)
}

/// Bytes of the 8-bit table with slots and scales.
pub(crate) fn int8_bytes(rows: usize, dim: usize) -> usize {
    let tiles = rows.div_ceil(TILE_ROWS);
    tiles * (TILE_ROWS * (dim.div_ceil(16) * 16 + 4) + 16)
}

/// Bytes of the 4-bit table with its residuals.
pub(crate) fn int4_bytes(rows: usize, dim: usize) -> usize {
    let tiles = rows.div_ceil(TILE_ROWS);
    tiles * (TILE_ROWS * dim.div_ceil(32) * 16 + 4)
}

/// Which derived tables there is memory for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Derived {
    pub(crate) int8: bool,
    pub(crate) int4: bool,
}

impl Tables {
    pub(crate) fn upload(
        model: &ModelStore,
        kernels: &Kernels,
        stream: &Stream,
        derived: Derived,
        progress: impl FnMut(u64),
    ) -> Result<Self, GpuError> {
        let table = model.table();
        let (rows, dim) = (table.rows(), table.dim());
        let components = upload(table.components(), stream, progress)?;
        let norms = upload(table.norms(), stream, |_| {})?;
        let mut tables = Self { rows, dim, components, norms, quantised: None };
        if derived.int8 {
            tables.quantised = tables.quantise(kernels, stream, derived.int4)?;
        }
        Ok(tables)
    }

    fn quantise(
        &self,
        kernels: &Kernels,
        stream: &Stream,
        with_int4: bool,
    ) -> Result<Option<Quantised>, GpuError> {
        let (rows, dim) = (self.rows as u32, self.dim as i32);
        // A butterfly of the rotation a thread.
        let block = (self.dim.next_power_of_two() / 4).clamp(32, 256) as u32;
        let peaks = Array::<f32>::zeroed(self.rows)?;
        let shape = Shape { grid: (rows.min(1 << 16), 1), block, shared: 8 * self.dim };
        kernels.row_peaks.launch(
            stream,
            shape,
            false,
            &[&self.components.address(), &self.norms.address(), &rows, &dim, &peaks.address()],
        )?;
        stream.synchronize().doing("rotating the table")?;
        let slots = slots(&peaks.read()?);
        if slots.is_empty() {
            return Ok(None);
        }
        let tiles = slots.len() / TILE_ROWS;
        let slot_rows = Array::from_slice(&slots)?;
        let chunks8 = self.dim.div_ceil(16);
        let chunks4 = self.dim.div_ceil(32);
        let int8 = Array::zeroed(slots.len() * chunks8 * 16)?;
        let scales = Array::zeroed(tiles)?;
        let int4 = if with_int4 {
            let step = STEP4 / (self.dim as f64).sqrt();
            Some(Int4 {
                levels: Array::zeroed(slots.len() * chunks4 * 16)?,
                residuals: Array::zeroed(tiles)?,
                half_step: (0.5 * step) as f32,
            })
        } else {
            None
        };
        let shape = Shape { grid: (tiles as u32, 1), block, shared: 8 * self.dim + 32 * chunks4 };
        kernels.quantise_rows.launch(
            stream,
            shape,
            false,
            &[
                &self.components.address(),
                &self.norms.address(),
                &peaks.address(),
                &slot_rows.address(),
                &dim,
                &int8.address(),
                &scales.address(),
                &int4.as_ref().map_or(0, |int4| int4.levels.address()),
                &int4.as_ref().map_or(0, |int4| int4.residuals.address()),
            ],
        )?;
        stream.synchronize().doing("quantising the table")?;
        Ok(Some(Quantised { tiles, slot_rows, int8, scales, int4 }))
    }
}

/// Which row stands where: rows ordered by their largest component, so that those of a tile are alike,
/// the tiles then spread, so that the first tiles are a fair sample of all. The last tile of the order
/// is filled up with [`NOT_A_ROW`].
fn slots(peaks: &[f32]) -> Vec<u32> {
    let mut order: Vec<u32> =
        (0..peaks.len() as u32).into_par_iter().filter(|&row| peaks[row as usize] >= 0.0).collect();
    // Non-negative floats order as their bits do; the row makes the order one and the same everywhere.
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

/// A step through `tiles` that meets each once, near the golden ratio of them: successive tiles are far
/// apart in the order.
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

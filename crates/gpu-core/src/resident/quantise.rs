//! Makes the quantised tables on the device, from the float32 table.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use cust::stream::Stream;

use super::abi::{QuantiseRowsParams, QuantiseSlotsParams, RowPeaksParams, STEP4, entries};
use super::slots::Slots;
use super::{
    CHUNK_BYTES, CHUNK4, CHUNK8, Int4, LiftView, NOT_A_ROW, Quantised, Resident, TILE_ROWS,
    TableView,
};
use crate::GpuError;
use crate::abi::DevicePointerMut;
use crate::driver::{Array, Doing, Kernel, Modules, Shape};

/// Tiles that are rounded together, if nobody else uses the device.
const TILES_TOGETHER: usize = 1024;
/// Blocks for each multiprocessor that are launched together beside the passes of others. A pass
/// waits until there is room for its blocks, kernel by kernel: no more than these are before it.
const BLOCKS_BESIDE_OTHERS: usize = 8;
/// Launches after which the device is waited for: a full queue would keep other threads' launches
/// waiting, too.
const LAUNCHES_TOGETHER: usize = 64;

/// The kernels that round rows.
#[derive(Debug)]
pub(crate) struct Rounding {
    row_peaks: Kernel<RowPeaksParams>,
    quantise_rows: Kernel<QuantiseRowsParams>,
    quantise_slots: Kernel<QuantiseSlotsParams>,
    scale_tiles: Kernel<QuantiseSlotsParams>,
    // The kernels above belong to these modules.
    _modules: Modules,
}

/// The bytes of shared memory for a row of `dim` components, and for its levels in the 4-bit table.
fn shared_bytes(dim: usize) -> (usize, usize) {
    (size_of::<f64>() * dim, CHUNK4 * dim.div_ceil(CHUNK4))
}

#[allow(unsafe_code)]
impl Rounding {
    /// For rows that have `dim` components when they are lifted.
    ///
    /// # Errors
    /// If the device can't run the kernels.
    pub(crate) fn new(dim: usize) -> Result<Self, GpuError> {
        let (vector_bytes, level_bytes) = shared_bytes(dim);
        // One for each butterfly.
        let threads = (dim.next_power_of_two() / 4).clamp(32, 256) as u32;
        let mut modules = Modules::default();
        let row_peaks = modules.kernel(entries::quantise_rows::row_peaks)?;
        let quantise_rows = modules.kernel(entries::quantise_rows::quantise_rows)?;
        let quantise_slots = modules.kernel(entries::quantise_rows::quantise_slots)?;
        let scale_tiles = modules.kernel(entries::quantise_rows::scale_tiles)?;
        Ok(Self {
            row_peaks: row_peaks.allow_shared(vector_bytes)?.with_threads(threads),
            quantise_rows: quantise_rows
                .allow_shared(vector_bytes + level_bytes)?
                .with_threads(threads),
            quantise_slots: quantise_slots
                .allow_shared(vector_bytes + level_bytes)?
                .with_threads(threads),
            scale_tiles: scale_tiles.with_threads(TILE_ROWS as u32),
            _modules: modules,
        })
    }

    /// Starts writing the largest component of each row, and the largest square of all rows if
    /// there is a place for it.
    ///
    /// # Safety
    /// - Table and arrays stay as they are until the stream has been synchronised.
    /// - The table has at most as many components as these kernels are for.
    pub(crate) unsafe fn peaks(
        &self,
        (table, lift): (TableView, LiftView),
        peaks: &Array<f32>,
        longest_square: Option<&Array<f64>>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let rows = table.rows as usize;
        assert!(peaks.len() >= rows && longest_square.is_none_or(|square| !square.is_empty()));
        // Each block adds to the largest square, so that fewer are faster.
        let most_blocks = if longest_square.is_some() { 1 << 16 } else { 1 << 22 };
        let shape = Shape::grid(rows.min(most_blocks), 1).shared(shared_bytes(lift.dim as usize).0);
        let longest_square = longest_square.map_or(DevicePointerMut::NULL, Array::pointer_mut);
        let params = RowPeaksParams { table, lift, peaks: peaks.pointer_mut(), longest_square };
        // SAFETY: blocks take rows in turn, so any grid is valid; `peaks` has a value for each row;
        // the caller promises the rest.
        unsafe { self.row_peaks.launch(stream, shape, &params) }
    }

    /// Starts rounding all rows, whose largest components are known.
    ///
    /// # Safety
    /// - Table and arrays stay as they are until the stream has been synchronised.
    /// - The table has at most as many components as these kernels are for.
    /// - The tables are made for this table and this lift.
    pub(crate) unsafe fn round(
        &self,
        (table, lift): (TableView, LiftView),
        peaks: &Array<f32>,
        to: &Quantised,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let params = to.params((table, lift), peaks, 0);
        let (vector_bytes, level_bytes) = shared_bytes(lift.dim as usize);
        let shape = Shape::grid(to.all_tiles(), 1).shared(vector_bytes + level_bytes);
        // SAFETY: a block for each tile; slots name rows of the table; the caller promises the
        // rest.
        unsafe { self.quantise_rows.launch(stream, shape, &params) }
    }

    /// Starts rounding the rows of these tiles, as [`round`](Self::round) does all. `residuals` is
    /// room for two of each slot.
    ///
    /// # Safety
    /// - As [`round`](Self::round).
    pub(super) unsafe fn round_tiles(
        &self,
        of: (TableView, LiftView),
        peaks: &Array<f32>,
        to: &Quantised,
        tiles: Range<usize>,
        residuals: &Array<f64>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        assert!(tiles.end <= to.all_tiles() && 2 * TILE_ROWS * tiles.len() <= residuals.len());
        let (vector_bytes, level_bytes) = shared_bytes(of.1.dim as usize);
        let params = QuantiseSlotsParams {
            rows: to.params(of, peaks, tiles.start),
            residuals: residuals.pointer_mut(),
        };
        let slots = Shape::grid(TILE_ROWS * tiles.len(), 1).shared(vector_bytes + level_bytes);
        // SAFETY: a block for each slot, then for each tile, which are those of the tables;
        // residuals have room, as asserted; the caller promises the rest.
        unsafe {
            self.quantise_slots.launch(stream, slots, &params)?;
            self.scale_tiles.launch(stream, Shape::grid(tiles.len(), 1), &params)
        }
    }
}

impl Quantised {
    /// The parameters of kernels that round rows into the tiles from this one on.
    fn params(
        &self,
        (table, lift): (TableView, LiftView),
        peaks: &Array<f32>,
        first: usize,
    ) -> QuantiseRowsParams {
        let dim = lift.dim as usize;
        let bytes = |chunk: usize| first * dim.div_ceil(chunk) * TILE_ROWS * CHUNK_BYTES;
        let (no_levels, no_residuals) = (DevicePointerMut::NULL, DevicePointerMut::NULL);
        let levels = |int4: &Int4| int4.levels.pointer_mut().offset(bytes(CHUNK4));
        let residuals = |int4: &Int4| int4.residuals.pointer_mut().offset(first);
        QuantiseRowsParams {
            table,
            lift,
            peaks: peaks.pointer(),
            slot_rows: self.slot_rows.pointer().offset(first * TILE_ROWS),
            tiles8: self.int8.pointer_mut().offset(bytes(CHUNK8)),
            scales: self.scales.pointer_mut().offset(first),
            tiles4: self.int4.as_ref().map_or(no_levels, levels),
            residuals4: self.int4.as_ref().map_or(no_residuals, residuals),
        }
    }
}

/// The 8-bit table, and the 4-bit table if requested. `None` if no row has scores.
#[allow(unsafe_code)]
pub(super) fn quantise(
    resident: &Resident,
    stream: &Stream,
    with_int4: bool,
) -> Result<Option<Quantised>, GpuError> {
    let (rows, dim) = (resident.rows, resident.lifted_dim());
    let (chunks8, chunks4) = (dim.div_ceil(CHUNK8), dim.div_ceil(CHUNK4));
    let rounding = Rounding::new(dim)?;
    let of = (resident.view(), resident.lift_view());
    let peaks = Array::<f32>::zeroed(rows)?;
    let tiles_together = match resident.gpu.is_shared {
        true => (BLOCKS_BESIDE_OTHERS * resident.gpu.multiprocessors as usize).div_ceil(TILE_ROWS),
        false => TILES_TOGETHER,
    };
    in_parts(rows, TILE_ROWS * tiles_together, stream, |part| {
        let own = peaks.address() + (part.start * size_of::<f32>()) as u64;
        // SAFETY: the place is within the array; the stream is synchronised before it is dropped.
        unsafe {
            let own = Array::borrowed(own, part.len());
            rounding.peaks((resident.part(part), of.1), &own, None, stream)
        }
    })?;

    let (slots, mut slot_rows) = Slots::new(&peaks.read()?);
    if slot_rows.is_empty() {
        return Ok(None);
    }
    let used = slot_rows.len() / TILE_ROWS;
    let tiles = used + (resident.capacity - rows).div_ceil(TILE_ROWS);
    slot_rows.resize(tiles * TILE_ROWS, NOT_A_ROW);
    let slot_rows = Array::from_slice(&slot_rows)?;
    let int8 = Array::zeroed(slot_rows.len() * chunks8 * CHUNK_BYTES)?;
    let scales = Array::zeroed(tiles)?;
    let int4 = if with_int4 {
        let step = STEP4 / (dim as f64).sqrt();
        Some(Int4 {
            levels: Array::zeroed(slot_rows.len() * chunks4 * CHUNK_BYTES)?,
            residuals: Array::zeroed(tiles)?,
            half_step: (0.5 * step) as f32,
        })
    } else {
        None
    };
    let (slots, used) = (RefCell::new(slots), Cell::new(used));
    let quantised = Quantised { tiles: used, slots, slot_rows, int8, scales, int4 };
    // In blocks of a row each, where those of a tile take milliseconds. Empty slots are zeros.
    let residuals = Array::zeroed(2 * TILE_ROWS * tiles_together.min(tiles))?;
    in_parts(tiles, tiles_together, stream, |some| {
        // SAFETY: the tables are made here, for `tiles` tiles of this many chunks; the stream is
        // synchronised before anything is dropped.
        unsafe { rounding.round_tiles(of, &peaks, &quantised, some, &residuals, stream) }
    })?;
    Ok(Some(quantised))
}

/// Starts work on `count` things, `together` at a time, and waits until all of it is done.
fn in_parts(
    count: usize,
    together: usize,
    stream: &Stream,
    mut start: impl FnMut(Range<usize>) -> Result<(), GpuError>,
) -> Result<(), GpuError> {
    for (number, first) in (0..count).step_by(together).enumerate() {
        start(first..count.min(first + together))?;
        if number % LAUNCHES_TOGETHER == LAUNCHES_TOGETHER - 1 {
            stream.synchronize().doing("deriving tables")?;
        }
    }
    stream.synchronize().doing("deriving tables")
}

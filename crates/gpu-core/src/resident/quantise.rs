//! Makes the quantised tables on the device, from the float32 table.

use cust::stream::Stream;

use super::abi::{QuantiseRowsParams, RowPeaksParams, STEP4, entries};
use super::slots::Slots;
use super::{
    CHUNK_BYTES, CHUNK4, CHUNK8, Int4, LiftView, Quantised, Resident, TILE_ROWS, TableView,
};
use crate::GpuError;
use crate::abi::DevicePointerMut;
use crate::driver::{Array, Doing, Kernel, Modules, Shape};

/// The kernels that round rows.
#[derive(Debug)]
pub(crate) struct Rounding {
    row_peaks: Kernel<RowPeaksParams>,
    quantise_rows: Kernel<QuantiseRowsParams>,
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
        Ok(Self {
            row_peaks: row_peaks.allow_shared(vector_bytes)?.with_threads(threads),
            quantise_rows: quantise_rows
                .allow_shared(vector_bytes + level_bytes)?
                .with_threads(threads),
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
        let shape = Shape::grid(rows.min(1 << 16), 1).shared(shared_bytes(lift.dim as usize).0);
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
        let (no_levels, no_residuals) = (DevicePointerMut::NULL, DevicePointerMut::NULL);
        let params = QuantiseRowsParams {
            table,
            lift,
            peaks: peaks.pointer(),
            slot_rows: to.slot_rows.pointer(),
            tiles8: to.int8.pointer_mut(),
            scales: to.scales.pointer_mut(),
            tiles4: to.int4.as_ref().map_or(no_levels, |int4| int4.levels.pointer_mut()),
            residuals4: to.int4.as_ref().map_or(no_residuals, |int4| int4.residuals.pointer_mut()),
        };
        let (vector_bytes, level_bytes) = shared_bytes(lift.dim as usize);
        let shape = Shape::grid(to.tiles, 1).shared(vector_bytes + level_bytes);
        // SAFETY: a block for each tile; slots name rows of the table; the caller promises the
        // rest.
        unsafe { self.quantise_rows.launch(stream, shape, &params) }
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
    // SAFETY: the stream is synchronised before anything is dropped.
    unsafe { rounding.peaks(of, &peaks, None, stream)? };
    stream.synchronize().doing("rotating the table")?;

    let (slots, slot_rows) = Slots::new(&peaks.read()?);
    if slot_rows.is_empty() {
        return Ok(None);
    }
    let tiles = slot_rows.len() / TILE_ROWS;
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
    let quantised = Quantised { tiles, slots, slot_rows, int8, scales, int4 };
    // SAFETY: the tables are made here, for `tiles` tiles of this many chunks; the stream is
    // synchronised before anything is dropped.
    unsafe { rounding.round(of, &peaks, &quantised, stream)? };
    stream.synchronize().doing("quantising the table")?;
    Ok(Some(quantised))
}

//! Makes the quantised tables on the device, from the float32 table.

use cust::stream::Stream;

use super::abi::{QuantiseRowsParams, RowPeaksParams, STEP4, entries};
use super::slots::Slots;
use super::{CHUNK_BYTES, CHUNK4, CHUNK8, Int4, Quantised, Resident, TILE_ROWS};
use crate::GpuError;
use crate::abi::DevicePointerMut;
use crate::driver::{Array, Doing, Modules, Shape};

/// The threads of a block that rotates vectors of `dim` components: one for each butterfly.
pub(super) fn rotating_threads(dim: usize) -> u32 {
    (dim.next_power_of_two() / 4).clamp(32, 256) as u32
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
    let (vector_bytes, level_bytes) = (size_of::<f64>() * dim, CHUNK4 * chunks4);
    let threads = rotating_threads(dim);
    let mut modules = Modules::default();
    let row_peaks = modules.kernel(entries::quantise_rows::row_peaks)?;
    let row_peaks = row_peaks.allow_shared(vector_bytes)?.with_threads(threads);
    let quantise_rows = modules.kernel(entries::quantise_rows::quantise_rows)?;
    let quantise_rows =
        quantise_rows.allow_shared(vector_bytes + level_bytes)?.with_threads(threads);

    let peaks = Array::<f32>::zeroed(rows)?;
    let shape = Shape::grid(rows.min(1 << 16), 1).shared(vector_bytes);
    let (table, lift) = (resident.view(), resident.lift_view());
    let params = RowPeaksParams { table, lift, peaks: peaks.pointer_mut() };
    // SAFETY: blocks take rows in turn, so any grid is valid; `peaks` has a value for each row; the stream is
    // synchronised before anything is dropped.
    unsafe { row_peaks.launch(stream, shape, &params)? };
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
    let params = QuantiseRowsParams {
        table,
        lift,
        peaks: peaks.pointer(),
        slot_rows: slot_rows.pointer(),
        tiles8: int8.pointer_mut(),
        scales: scales.pointer_mut(),
        tiles4: int4.as_ref().map_or(DevicePointerMut::NULL, |int4| int4.levels.pointer_mut()),
        residuals4: int4
            .as_ref()
            .map_or(DevicePointerMut::NULL, |int4| int4.residuals.pointer_mut()),
    };
    let shape = Shape::grid(tiles, 1).shared(vector_bytes + level_bytes);
    // SAFETY: a block for each tile; the arrays above are made for `tiles` tiles of this many chunks, and
    // slots name rows of the table; the stream is synchronised before anything is dropped.
    unsafe { quantise_rows.launch(stream, shape, &params)? };
    stream.synchronize().doing("quantising the table")?;
    Ok(Some(Quantised { tiles, slots, slot_rows, int8, scales, int4 }))
}

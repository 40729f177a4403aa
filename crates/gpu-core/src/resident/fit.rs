//! Decides which tables fit the device's free memory, before anything is allocated there.

use contract::Table;
use contract::certificate::MAX_DIM;

use super::{CHUNK_BYTES, CHUNK4, CHUNK8, TILE_ROWS, TileScale};
use crate::GpuError;
use crate::driver::Gpu;

/// Bytes left free for the driver, for modules and for the rounding of allocations.
const RESERVE: u64 = 256 << 20;

/// Tables that are derived from the float32 one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Derived {
    pub(crate) int8: bool,
    /// Only together with the 8-bit table.
    pub(crate) int4: bool,
}

/// Bytes of the table, its norms and its biases.
pub(crate) fn table_bytes(table: &Table<'_>) -> usize {
    size_of_val(table.components())
        + size_of_val(table.norms())
        + table.biases().map_or(0, size_of_val)
}

/// Bytes for a float32 table and buffers of these sizes, without the derived tables and with those
/// that are wanted, of `rows` vectors of `dim` components.
pub(crate) fn memory(
    table: usize,
    (rows, dim): (usize, usize),
    wanted: Derived,
    buffers: usize,
) -> (u64, u64) {
    let least = (table + buffers) as u64 + RESERVE;
    let (int8, int4) = derived_bytes(rows, dim);
    let int8 = if wanted.int8 && dim <= MAX_DIM { int8 } else { 0 };
    let int4 = if wanted.int4 && int8 > 0 { int4 } else { 0 };
    (least, least + int8 + int4)
}

/// Checks that a GPU has this many bytes free; returns its free bytes. `parts` says for people what
/// they are for.
///
/// # Errors
/// [`GpuError::DoesNotFit`] if it has not.
pub(crate) fn check(
    gpu: &Gpu,
    needed: u64,
    parts: impl FnOnce() -> String,
) -> Result<u64, GpuError> {
    let free = gpu.free_memory()?;
    if needed <= free {
        return Ok(free);
    }
    let (name, parts, total) = (gpu.name.clone(), parts(), gpu.total_memory);
    Err(GpuError::DoesNotFit { name, parts, needed, free, total })
}

/// Bytes of the derived tables while they are made: of the 8-bit one with slots and scales, and of
/// the 4-bit one with its residuals.
fn derived_bytes(rows: usize, dim: usize) -> (u64, u64) {
    let tiles = rows.div_ceil(TILE_ROWS);
    let (row8, row4) = (dim.div_ceil(CHUNK8) * CHUNK_BYTES, dim.div_ceil(CHUNK4) * CHUNK_BYTES);
    let int8 = tiles * (TILE_ROWS * (row8 + size_of::<u32>()) + size_of::<TileScale>());
    let int4 = tiles * (TILE_ROWS * row4 + size_of::<f32>());
    // The rows' peaks take memory until the tables are there.
    ((int8 + size_of::<f32>() * rows) as u64, int4 as u64)
}

/// Which of the wanted derived tables, of `rows` vectors of `dim` components, fit beside this many
/// bytes of the float32 table and of the workloads' buffers.
///
/// # Errors
/// If the float32 table and the buffers alone do not fit.
pub(crate) fn fit(
    gpu: &Gpu,
    table: u64,
    (rows, dim): (usize, usize),
    wanted: Derived,
    buffers: u64,
) -> Result<Derived, GpuError> {
    let (int8, int4) = derived_bytes(rows, dim);
    let needed = table + buffers + RESERVE;
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let free = check(gpu, needed, || {
        let [table, buffers, reserve] = [table, buffers, RESERVE].map(gigabytes);
        format!("table {table:.2}, buffers {buffers:.2}, reserve {reserve:.2}")
    })?;
    let with_int8 = wanted.int8 && dim <= MAX_DIM && needed + int8 <= free;
    let with_int4 = with_int8 && wanted.int4 && needed + int8 + int4 <= free;
    Ok(Derived { int8: with_int8, int4: with_int4 })
}

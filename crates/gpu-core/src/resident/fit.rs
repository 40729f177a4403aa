//! What there is room for on the device, before anything is allocated there.

use contract::certificate::MAX_DIM;

use super::tables::{Derived, int4_bytes, int8_bytes, table_bytes};
use crate::GpuError;
use crate::driver::Gpu;
use crate::search::{Paths, Sizes};

/// Which derived tables fit the device's free memory, beside the table.
pub(crate) fn fit(
    gpu: &Gpu,
    rows: usize,
    dim: usize,
    sizes: &Sizes,
    paths: Paths,
) -> Result<Derived, GpuError> {
    /// Left to the driver, to modules and to allocation's rounding.
    const RESERVE: u64 = 256 << 20;
    let free = gpu.free_memory()?;
    let (table, workspace) = (table_bytes(rows, dim) as u64, sizes.bytes() as u64);
    let int8 = (int8_bytes(rows, dim) + 4 * rows) as u64;
    let int4 = int4_bytes(rows, dim) as u64;
    let needed = table + workspace + RESERVE;
    if needed > free {
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        let parts = format!(
            "table {:.2}, buffers {:.2}, reserve {:.2}",
            gigabytes(table),
            gigabytes(workspace),
            gigabytes(RESERVE)
        );
        let (name, total) = (gpu.name.clone(), gpu.total_memory);
        return Err(GpuError::DoesNotFit { name, parts, needed, free, total });
    }
    let with_int8 = paths.int8 && dim <= MAX_DIM && needed + int8 <= free;
    let with_int4 = with_int8 && paths.int4 && needed + int8 + int4 <= free;
    Ok(Derived { int8: with_int8, int4: with_int4 })
}

// What kernels and launchers must agree on, written once: build.rs passes these to nvcc.

/// Rows that share one step in the quantised tables.
pub(crate) const TILE_ROWS: usize = 128;

/// Values of 4 bytes between the counters of two queries: a line of the cache.
pub(crate) const COUNTER_STRIDE: usize = 32;

/// Name and value of each, for `-D`.
#[allow(dead_code)]
pub(crate) const FOR_KERNELS: &[(&str, usize)] =
    &[("TILE_ROWS", TILE_ROWS), ("COUNTER_STRIDE", COUNTER_STRIDE)];

//! Shared by this module and its kernels: the layout of the derived tables, and the interface of
//! `quantise_rows.cu`.

use contract::certificate::{self, ROTATION_HASH};

use crate::abi::{DevicePointer, DevicePointerMut};

abi! {
    name: "resident";
    uses: [];
    constants {
        /// Rows that share one step in the quantised tables.
        TILE_ROWS: usize = 128;
        /// Bytes of a chunk: the adjacent bytes of a row in a quantised tile.
        CHUNK_BYTES: usize = 16;
        /// Components in a chunk of the 8-bit table.
        CHUNK8: usize = 16;
        /// Components in a chunk of the 4-bit table.
        CHUNK4: usize = 32;
        /// Stands for no row.
        NOT_A_ROW: u32 = u32::MAX;
        /// The step of the 4-bit table in units of `1 / sqrt(dim)`: the best uniform 16-level
        /// quantiser of a Gaussian (Max 1960, "Quantizing for Minimum Distortion"). Levels are
        /// `(2n - 15) * step / 2`.
        STEP4: f64 = 0.3352;
        /// Covers every float32 rounding of the bounds and the contract's own float64 roundings;
        /// the same for all engines (contract, certificate).
        SLACK: f32 = certificate::SLACK;
        /// The constants of the rotation's signs, the same for all engines.
        ROTATION_HASH_0: u32 = ROTATION_HASH[0];
        ROTATION_HASH_1: u32 = ROTATION_HASH[1];
        ROTATION_HASH_2: u32 = ROTATION_HASH[2];
        ROTATION_HASH_3: u32 = ROTATION_HASH[3];
        ROTATION_HASH_4: u32 = ROTATION_HASH[4];
    }
    enums {
        /// How rows are scored.
        enum Metric {
            /// By the cosine.
            Cosine = 0,
            /// By the dot product and the row's bias.
            Dot = 1,
        }
    }
    data {
        /// A tile of the 8-bit table: `TILE_ROWS` rows that share one step and one residual.
        struct TileScale {
            /// `1 / s_t`.
            inverse_step: f32,
            /// `r_t / s_t`.
            residual_over_step: f32,
            /// `s_t`: the rounded rows are step * integers.
            step: f32,
            /// `r_t >= ||y - y'||` for every row of the tile, rounded up.
            residual: f32,
        }
    }
    params {
        /// The float32 table, as stored.
        struct TableView {
            /// `[rows, dim]`.
            components: DevicePointer<f32>,
            /// `[rows]`.
            norms: DevicePointer<f64>,
            /// `[rows]`, or null: then they are zero.
            biases: DevicePointer<f32>,
            rows: u32,
            dim: i32,
            metric: Metric,
            unused: u32,
        }
        /// How rows and queries under the metric `dot` become vectors that are at most 1 long: see
        /// `contract`'s certificate/lift.rs. Under the metric `cosine` only `dim` counts.
        struct LiftView {
            /// What rows are divided by.
            longest: f64,
            /// The last component of a query; that of a row is its bias divided by this.
            beta: f64,
            /// Components of lifted vectors: one more than the table's if there are biases.
            dim: i32,
            unused: u32,
        }
        struct RowPeaksParams {
            table: TableView,
            lift: LiftView,
            /// `[rows]`.
            peaks: DevicePointerMut<f32>,
            /// `[1]`: the largest square of a lifted row's length, or NaN; zero at first. Or null.
            longest_square: DevicePointerMut<f64>,
        }
        struct QuantiseRowsParams {
            table: TableView,
            lift: LiftView,
            /// `[rows]`.
            peaks: DevicePointer<f32>,
            /// `[tiles * TILE_ROWS]`: the row of each slot, or `NOT_A_ROW`.
            slot_rows: DevicePointer<u32>,
            /// `[tiles, ceil(lift.dim / CHUNK8), TILE_ROWS, CHUNK_BYTES]`.
            tiles8: DevicePointerMut<u8>,
            /// `[tiles]`.
            scales: DevicePointerMut<TileScale>,
            /// `[tiles, ceil(lift.dim / CHUNK4), TILE_ROWS, CHUNK_BYTES]`, or null if there is no
            /// 4-bit table.
            tiles4: DevicePointerMut<u8>,
            /// `[tiles]`, or null.
            residuals4: DevicePointerMut<f32>,
        }
        /// For a few tiles, of which everything begins at the first of them.
        struct QuantiseSlotsParams {
            rows: QuantiseRowsParams,
            /// `[tiles * TILE_ROWS, 2]`: what rounding each row left, in 8 and in 4 bits.
            residuals: DevicePointerMut<f64>,
        }
        struct RoundAgainParams {
            table: TableView,
            lift: LiftView,
            /// As in `QuantiseRowsParams`.
            slot_rows: DevicePointer<u32>,
            tiles8: DevicePointerMut<u8>,
            scales: DevicePointerMut<TileScale>,
            /// `[tiles]`: the largest component of each tile when it was rounded last; 0: its step
            /// stays.
            tile_peaks: DevicePointerMut<f32>,
            /// As in `RowPeaksParams`.
            longest_square: DevicePointerMut<f64>,
        }
    }
    files {
        "" / quantise_rows for Every {
            // The maximum; launches use fewer threads for rows of few components.
            (256) row_peaks: RowPeaksParams;
            (256) quantise_rows: QuantiseRowsParams;
            (256) quantise_slots, scale_tiles: QuantiseSlotsParams;
        }
        "" / round_again for Every {
            (256) round_again_1, round_again_2, round_again_4, round_again_8, round_again_16, round_again_32: RoundAgainParams;
        }
    }
}

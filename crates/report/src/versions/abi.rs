//! Shared by the report's versions and their kernels: constants and parameters.

use crate::abi::{DevicePointer, DevicePointerMut};

crate::abi! {
    name: "versions";
    uses: [];
    constants {
        /// Maximum number of components in the 2020 report's programs: one version keeps the query
        /// in constant memory.
        REPORT_MAX_DIM: usize = 4096;
        /// Maximum number of neighbours in the 2020 report's programs: pieces are in private
        /// arrays.
        REPORT_MAX_K: usize = 32;
        /// Rows that a block takes in the report's versions 1 and 2: one for each thread.
        REPORT_ROWS_NARROW: usize = 256;
        /// Rows that a block takes in the report's versions 3 and 4: one for every eight threads.
        REPORT_ROWS_WIDE: usize = 32;
        /// The score of a row of norm zero; it sorts behind every cosine.
        NO_NEIGHBOUR: f32 = -2.0;
    }
    params {
        struct ReportDotParams {
            /// `[rows, dim]`.
            table: DevicePointer<f32>,
            /// `[rows]`; 0 where a row is zero.
            norms: DevicePointer<f32>,
            /// `[dim]`; version 2 reads `report_query` instead.
            query: DevicePointer<f32>,
            /// `[rows]`: the cosine, or `NO_NEIGHBOUR`.
            scores: DevicePointerMut<f32>,
            /// `[rows]`: the row's number, which moves along when the scores are sorted.
            positions: DevicePointerMut<u32>,
            query_norm: f32,
            rows: u32,
            dim: i32,
        }
        struct SortPiecesParams {
            /// `[rows]`.
            scores: DevicePointerMut<f32>,
            /// `[rows]`; each moves along with its score.
            positions: DevicePointerMut<u32>,
            rows: u32,
            /// Elements of a piece.
            k: i32,
        }
        struct MergePiecesParams {
            /// `[rows]`.
            scores: DevicePointerMut<f32>,
            /// `[rows]`; each moves along with its score.
            positions: DevicePointerMut<u32>,
            /// `[rows]` in version 1, null in the others.
            scratch_scores: DevicePointerMut<f32>,
            /// `[rows]` in version 1, null in the others.
            scratch_positions: DevicePointerMut<u32>,
            rows: u32,
            /// Elements of a piece.
            k: i32,
            /// The distance between two pieces that are merged, in pieces.
            stride: u32,
        }
    }
    files {
        "" / dot_product for Every {
            (256) dot_product_v1, dot_product_v2, dot_product_v3, dot_product_v4: ReportDotParams;
        }
        "" / merge for Every {
            (256) first_merge_v1, first_merge: SortPiecesParams;
            (256) botched_merge_sort_v1, botched_merge_sort: MergePiecesParams;
        }
    }
}

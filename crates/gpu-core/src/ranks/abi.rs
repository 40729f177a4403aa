//! Shared by the counting of ranks and its kernels.

use crate::abi::{DevicePointer, DevicePointerMut};
use crate::resident::TableView;

abi! {
    name: "ranks";
    uses: ["resident"];
    constants {
        /// The most queries of a pass.
        RANK_QUERIES: usize = 128;
        /// Thresholds of a query: the scores of the rows whose ranks are asked for, and the maximum score.
        RANK_THRESHOLDS: usize = 16;
        /// Rows of a query that are scored: those behind thresholds, in the same order, then excluded ones.
        RANK_PROBES: usize = 32;
        /// Components that are multiplied before their products are added to the sum.
        RANK_CHUNK: usize = 32;
        /// Rows that a block takes at a time.
        RANK_TILE: usize = 128;
        /// Unit vectors are multiplied by this, so that their components are far from the smallest float16.
        RANK_SCALE: f32 = 256.0;
        /// Norms outside of 1 / this and this have no float32 inverse: such rows are always in doubt.
        RANK_MAX_NORM: f64 = 1e30;
        /// Rows in doubt that a query has room for.
        RANK_CAPACITY: usize = 8192;
        /// Above every score: no threshold.
        NO_THRESHOLD: f32 = 4.0;
    }
    enums {}
    data {
        /// A query for ranks, as the host uploads it.
        struct RankQuery {
            /// Its norm; 0 marks an empty slot.
            norm: f64,
            /// The maximum score, which is then the last threshold; infinity if there is none.
            max_score: f64,
            /// The table's row that is the query, or `NOT_A_ROW`.
            row: u32,
            /// If it is no row: the index of its vector among the uploaded ones.
            vector: u32,
            /// Only the first n rows count.
            first_rows: u32,
            unused: u32,
        }
        /// A row in doubt: its score is so near a threshold that rounding may have put it on the wrong side.
        struct Doubtful {
            row: u32,
            /// The score of the scan.
            score: f32,
        }
    }
    unions {}
    params {
        struct ProbeParams {
            table: TableView,
            /// `[batch]`.
            queries: DevicePointer<RankQuery>,
            /// `[vectors, dim]`.
            vectors: DevicePointer<f32>,
            /// `[batch, RANK_PROBES]`: rows, or `NOT_A_ROW`.
            probes: DevicePointer<u32>,
            /// `[batch, RANK_PROBES]`: their scores; NaN for no row, and for rows of norm zero.
            scores: DevicePointerMut<f64>,
            /// `[batch, RANK_THRESHOLDS]`.
            thresholds: DevicePointerMut<f32>,
            /// The queries as operand A of mma.sync m16n8k16: for each 16 queries and 16 components, the upper and the
            /// lower half of a component, for each lane 4 registers.
            fragments: DevicePointerMut<u32>,
            /// `[batch, RANK_THRESHOLDS]`, set to zero.
            before: DevicePointerMut<u32>,
            /// `[batch]`, set to zero.
            doubtful_counts: DevicePointerMut<u32>,
            /// Chunks of a query, with padding.
            chunks: i32,
        }
        struct RankScanParams {
            table: TableView,
            /// `[batch]`.
            queries: DevicePointer<RankQuery>,
            /// As in `ProbeParams`.
            fragments: DevicePointer<u32>,
            /// `[batch, RANK_THRESHOLDS]`.
            thresholds: DevicePointer<f32>,
            /// `[batch, RANK_THRESHOLDS]`: the number of rows that are surely above each threshold is added.
            before: DevicePointerMut<u32>,
            /// `[batch]`: how many rows are in doubt, even if not all of them fit.
            doubtful_counts: DevicePointerMut<u32>,
            /// `[batch, RANK_CAPACITY]`.
            doubtful: DevicePointerMut<Doubtful>,
            /// Scores nearer to a threshold are in doubt.
            error: f32,
            chunks: i32,
            /// Of `RANK_TILE` rows, from the first row on.
            tiles: u32,
        }
        struct CountDoubtfulParams {
            table: TableView,
            /// `[batch]`.
            queries: DevicePointer<RankQuery>,
            /// `[vectors, dim]`.
            vectors: DevicePointer<f32>,
            /// `[batch, RANK_PROBES]`.
            probes: DevicePointer<u32>,
            /// `[batch, RANK_PROBES]`.
            scores: DevicePointer<f64>,
            /// `[batch, RANK_THRESHOLDS]`.
            thresholds: DevicePointer<f32>,
            /// `[batch]`.
            doubtful_counts: DevicePointer<u32>,
            /// `[batch, RANK_CAPACITY]`.
            doubtful: DevicePointer<Doubtful>,
            /// `[batch, RANK_THRESHOLDS]`.
            before: DevicePointerMut<u32>,
            error: f32,
        }
    }
    files {
        "" / rank_scan for Every {
            (256) score_probes: ProbeParams;
            (512, 1) rank_scan_32, rank_scan_64, rank_scan_128: RankScanParams;
            (256) count_doubtful: CountDoubtfulParams;
        }
    }
}

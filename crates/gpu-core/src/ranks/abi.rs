//! Shared by the counting of ranks and its kernels.

use crate::abi::{DevicePointer, DevicePointerMut};
use crate::resident::TableView;

abi! {
    name: "ranks";
    uses: ["resident"];
    constants {
        /// The most queries of a pass.
        RANK_QUERIES: usize = 128;
        /// Thresholds of a query: the scores of the rows whose ranks are asked for, and the maximum
        /// score. At least one is not used, so there are as many bins: below, between and above the
        /// others.
        RANK_THRESHOLDS: usize = 16;
        /// The index of the maximum score among the thresholds.
        RANK_MAXIMUM: usize = 14;
        /// Rows of a query that are scored: those behind thresholds, in the same order, then
        /// excluded ones.
        RANK_PROBES: usize = 32;
        /// Components that are multiplied before their products are added to the sum.
        RANK_CHUNK: usize = 32;
        /// Components of a stage: rows come to shared memory in stages.
        RANK_STAGE: usize = 2 * RANK_CHUNK;
        /// Rows that a block takes at a time.
        RANK_TILE: usize = 128;
        /// Bytes of shared memory of a block of the scan, for the rows and for each query.
        RANK_SHARED: usize = 8 * RANK_TILE * (RANK_STAGE + 8) + 8 * RANK_TILE;
        RANK_SHARED_PER_QUERY: usize = 208 + 8 * RANK_STAGE;
        /// Unit vectors are multiplied by this, so that their components are far from the smallest
        /// float16.
        RANK_SCALE: f32 = 256.0;
        /// Chunks in the ring of the Hopper scan.
        RANK_RING: usize = 5;
        /// Chunks that the Hopper scan copies ahead.
        RANK_AHEAD: usize = 2;
        /// Bytes of shared memory of a block of that scan, for the rows and for each query.
        RANK_HOPPER_SHARED: usize =
            RANK_RING * RANK_TILE * (4 * RANK_CHUNK + 4)
                + RANK_AHEAD * (RANK_TILE + 1) * 4 * RANK_CHUNK;
        RANK_HOPPER_SHARED_PER_QUERY: usize = 208 + RANK_RING * 4 * RANK_CHUNK;
        /// Queries of the scan for few, the rows that a warp takes at a time, and its most warps.
        FEW_RANKS_QUERIES: usize = 32;
        FEW_RANKS_ROWS: usize = 16;
        FEW_RANKS_WARPS: usize = 12;
        /// Bytes of shared memory of a block of that scan: all of Hopper's but what the scan has
        /// for itself; and for each query, beside its operands.
        FEW_RANKS_SHARED: usize = 227 * 1024 - 256;
        FEW_RANKS_SHARED_PER_QUERY: usize = 208 + 4 * RANK_THRESHOLDS;
        /// Norms outside of 1 / this and this have no float32 inverse: such rows are always in
        /// doubt.
        RANK_MAX_NORM: f64 = 1e30;
        /// Rows in doubt that a query has room for.
        RANK_CAPACITY: usize = 8192;
        /// Above every score: no threshold.
        NO_THRESHOLD: f32 = 4.0;
    }
    enums {
        /// Where `score_probes` puts the queries' operands: the upper and the lower float16 of each
        /// component.
        enum RankLayout {
            /// Operand A of mma.sync m16n8k16: for each 16 queries and 16 components, the upper and
            /// then the lower halves, for each lane 4 registers.
            Fragments = 0,
            /// Operand A of wgmma m64n128k16 in shared memory: for each chunk and each 64 queries,
            /// the upper and then the lower halves, `[chunk / 8, 64, 8]`.
            Chunks = 1,
            /// Operand B of mma.sync m16n8k16: for each 16 components and 8 queries, for each lane
            /// 2 registers of upper halves and 2 of lower ones. The lanes of a quad have 4
            /// components each, in order.
            Lanes = 2,
        }
    }
    data {
        /// A query for ranks, as the host uploads it.
        struct RankQuery {
            /// Its norm; 0 marks an empty slot.
            norm: f64,
            /// The maximum score, which is then the last threshold; infinity if there is none.
            max_score: f64,
            /// The address of the set of rows that count, by rows; 0 for all rows.
            set: u64,
            /// The table's row that is the query, or `NOT_A_ROW`.
            row: u32,
            /// If it is no row: the index of its vector among the uploaded ones.
            vector: u32,
            /// Only the first n rows count.
            first_rows: u32,
            /// Ranked rows and, after them, given scores: the first n probes are one or the other.
            targets: u32,
        }
    }
    params {
        /// The table and the device memory of a pass, which its kernels hand to each other.
        struct RankView {
            table: TableView,
            /// `[batch]`.
            queries: DevicePointer<RankQuery>,
            /// `[vectors, dim]`.
            vectors: DevicePointer<f32>,
            /// `[batch, RANK_PROBES]`: rows, or `NOT_A_ROW`.
            probes: DevicePointer<u32>,
            /// `[batch, RANK_PROBES]`: their scores; NaN for no row, and for rows of norm zero.
            /// Given scores are there before.
            scores: DevicePointerMut<f64>,
            /// `[batch, RANK_THRESHOLDS]`: ascending, then `NO_THRESHOLD`.
            thresholds: DevicePointerMut<f32>,
            /// The queries as an operand.
            fragments: DevicePointerMut<u32>,
            /// `[batch, RANK_THRESHOLDS]`, set to zero with the probes: the number of rows that
            /// rank before n thresholds is added to the n-th bin.
            bins: DevicePointerMut<u32>,
            /// `[batch]`, set to zero with the probes: how many rows are in doubt, even if not all
            /// of them fit.
            doubtful_counts: DevicePointerMut<u32>,
            /// `[batch, RANK_CAPACITY]`: rows.
            doubtful: DevicePointerMut<u32>,
            /// Of a query's components, with padding.
            stages: i32,
            /// Groups of 64 queries in the batch, for `RankLayout::Chunks`.
            groups: i32,
        }
        struct ProbeParams {
            pass: RankView,
            layout: RankLayout,
        }
        struct RankScanParams {
            pass: RankView,
            /// Scores nearer to a threshold are in doubt.
            error: f32,
            /// The first tile of `RANK_TILE` rows, and the one after the last.
            first_tile: u32,
            tiles: u32,
        }
        struct CountDoubtfulParams {
            pass: RankView,
            /// In the host's memory: set to 1 once the kernel has started.
            almost_over: DevicePointerMut<u32>,
        }
    }
    files {
        "" / rank_scan for Every {
            (256) score_probes: ProbeParams;
            (512, 1) rank_scan_32, rank_scan_64, rank_scan_128: RankScanParams;
            (256) count_doubtful: CountDoubtfulParams;
        }
        "" / hopper_rank_scan for Sm90a {
            (384, 1) hopper_rank_scan_64: RankScanParams;
            (512, 1) hopper_rank_scan_128: RankScanParams;
        }
        "" / hopper_few_ranks for Sm90a {
            (384, 1) few_ranks: RankScanParams;
        }
    }
}

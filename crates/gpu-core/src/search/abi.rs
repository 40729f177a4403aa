//! Shared by the search and its kernels: queries, candidates and answers in device memory, and the
//! parameters of every kernel of a pass.

use crate::abi::{DevicePointer, DevicePointerMut};
use crate::resident::{LiftView, TableView, TileScale};

abi! {
    name: "search";
    uses: ["resident", "formulas"];
    constants {
        /// The distance between the counters of two queries, in values of 4 bytes: each has its own
        /// cache line.
        COUNTER_STRIDE: usize = 32;
        /// Hits in a list that a block ranks; k and one round of appends must fit.
        LIST_CAPACITY: usize = 2048;
        /// The most appends to a list between two cuts.
        LIST_ROUND: usize = 1024;
        /// Bytes of such a list in dynamic shared memory: `TopKList`.
        LIST_BYTES: usize = 12 * LIST_CAPACITY + 24;
        /// The most hits that a list on the device ranks.
        MAX_K: usize = LIST_CAPACITY - LIST_ROUND;
        /// Groups of rows in a tile, in the portable scan. When sampling, it writes one bound for
        /// each group.
        INT8_GROUPS: usize = 8;
        /// Groups of rows in a tile, in the Hopper scan.
        HOPPER_GROUPS: usize = 4;
        /// The most tiles in the Hopper scan's ring in shared memory.
        HOPPER_MAX_STAGES: usize = 12;
        /// Chunks of a tile that the Hopper scan of wide rows copies together.
        SLICE_CHUNKS: usize = 8;
        /// The most blocks of the 4-bit scan: one block then reads all of their best rows.
        INT4_MAX_BLOCKS: usize = 2048;
        /// Rows that the 4-bit search scores for its threshold; k must not be larger.
        INT4_THRESHOLD_ROWS: usize = 64;
        /// The "score" of a row of norm zero, below every score.
        NO_SCORE: f64 = -2.0;
        /// Up to this many excluded rows raise the rank of thresholds. More are left out of what
        /// thresholds are made of.
        FEW_EXCLUDED: u32 = 16;
        /// Up to this k, thresholds are made of exact scores.
        FLOOR_HITS: u32 = 16;
        /// Not a formula: a query by the cosine to one vector.
        NOT_A_FORMULA: u32 = u32::MAX;
        /// The maximum number of half-spaces of a formula.
        FORMULA_COLUMNS: usize = 3;
        /// Covers the roundings of a formula, its vectors and its thresholds.
        FORMULA_ROUNDING: f64 = 1e-6;
        /// Rows of each warp that are scored for a formula's floor, if k is at most `FLOOR_HITS`; a
        /// multiple of 2.
        FORMULA_FLOOR_ROWS: usize = 4;
        /// The most words of a formula in a certified pass: scoring its candidates takes time for
        /// each word, and the other queries of the pass wait.
        FORMULA_WORDS: usize = 16;
        /// Set in the count of candidates of a formula without a certificate.
        FORMULA_FAILED: u32 = 1 << 30;
        /// The status of a query that has its answer.
        ANSWERED: u32 = 0;
        /// No certificate: more rows stayed in doubt than the buffer holds.
        CANDIDATES_OVERFLOWED: u32 = 1;
        /// No certificate: more rows were scored than the buffer holds.
        SURVIVORS_OVERFLOWED: u32 = 2;
    }
    enums {
        /// Where `prepare_queries` puts a query's bytes.
        enum Layout {
            /// `[batch, padded]`, component after component.
            Plain = 0,
            /// Operand A of mma.sync m16n8k32, for 16 queries, in the chunks of `int8_scan.cu`.
            Fragments16 = 1,
            /// Operand A of wgmma m64n128k32, in registers, for 64 queries.
            Fragments64 = 2,
            /// `[batch / 64, chunks, 64, CHUNK_BYTES]`: operand A of the same, in shared memory.
            Chunks64 = 3,
        }
    }
    data {
        /// One query, as the host uploads it.
        struct QueryHeader {
            /// The query's norm, above zero; 0 marks an empty slot of the batch. Under the metric
            /// `dot`, what its components are divided by for the scans.
            norm: f64,
            /// Under the metric `dot`: what scores are multiplied by, a power of two, so that none
            /// is outside [-1, 1]. The minimum and maximum are multiplied, too.
            factor: f64,
            /// The minimum score; -infinity if there is none.
            min_score: f64,
            /// The maximum score; infinity if there is none.
            max_score: f64,
            /// The address of the set of rows that may be neighbours, by rows; 0 for all rows.
            set: u64,
            /// The same by slots of the tiles. In a pass with sets each query has one, and so have
            /// empty slots of the batch; otherwise 0.
            set_of_slots: u64,
            /// The table's row that is the query, or `NOT_A_ROW`.
            row: u32,
            /// If it is no row: the index of its vector among the uploaded ones.
            vector: u32,
            /// The maximum number of neighbours.
            k: u32,
            /// Only the first n rows may be neighbours.
            first_rows: u32,
            /// If one row is excluded, that row; if more, the index of the first in the list.
            /// Behind more than `FEW_EXCLUDED` rows, the list has their slots.
            excluded: u32,
            /// The number of excluded rows, which are ascending.
            excluded_count: u32,
            /// The index of the formula of which this is a column, or `NOT_A_FORMULA`.
            formula: u32,
            /// The index of the column, from 0. The columns of a formula are next to each other.
            column: u32,
            /// The rank of the bound that is a threshold: k, and the excluded rows if they are few.
            rank: u32,
            /// 1 if the filter leaves out rows for which the rank does not make up.
            is_filtered: u32,
            /// The number of tiles, from the first on, that have only rows below `first_rows`, and
            /// of those that together have all of them.
            tiles_within: u32,
            tiles_covering: u32,
            /// The index of a formula's first word in the list of excluded rows. The list can be
            /// read for `FORMULA_WORDS` from there.
            words: u32,
            /// Of a token: its text.
            text: u32,
        }
        /// A formula of several cosines. It takes a column for each half-space of its cover.
        struct Formula {
            /// `phi(y) = offset + (factor(y) * score)^power`.
            offset: f64,
            power: f64,
            /// Where pieces of Y meet, one more than there are columns, and `factor` there.
            cut_0: f64,
            cut_1: f64,
            cut_2: f64,
            cut_3: f64,
            factor_0: f64,
            factor_1: f64,
            factor_2: f64,
            factor_3: f64,
            /// The weight in X of a positive word; that of PairDirection's `a` is its negative.
            weight: f64,
            /// PairDirection: `cos(b, c) - cos(a, c)` and `sqrt(2 - 2 cos(a, b))`.
            at_c: f64,
            length: f64,
            /// A guess of the k-th best score, before the sample.
            likely: f64,
            /// The score of a row with all cosines zero, and by how much the k-th best score of the
            /// table is further from it than that of the sample.
            center: f64,
            stretch: f64,
            /// The number of words; at most two words of PairDirection are equal.
            count: u32,
            /// 3CosMul: the words that are multiplied, which are the first.
            positive: u32,
            /// `FORMULA_MUL` or `FORMULA_DIRECTION`.
            kind: u32,
            columns: u32,
            /// The query that is its first column.
            first_column: u32,
            unused: u32,
        }
        /// A column's half-space: see `column_floor`.
        struct FormulaColumn {
            low_offset: f64,
            low_factor: f64,
            high_offset: f64,
            high_factor: f64,
            /// The length of the normal.
            norm: f64,
        }
        /// The scale and the bounds of a query after rotation and rounding to 8 bits. The theorem
        /// is in docs/certificate.md.
        struct QueryScale {
            /// `s_q`: the rounded query is step * integers.
            step: f32,
            /// `e_q >= ||z - z'||`, rounded up, all roundings included.
            residual: f32,
            /// `n_q >= ||z'||`, rounded up.
            norm: f32,
            /// The sum of the integers.
            sum: i32,
        }
        /// A query's threshold, in the form that the scan's epilogue needs: the integer dot product
        /// of a row that may be an answer is at least `offset / s_t - slope * r_t / s_t`.
        struct Threshold {
            /// `(T - e_q - SLACK) / s_q`.
            offset: f32,
            /// `n_q / s_q`.
            slope: f32,
        }
        /// A row that the scan of the 8-bit table could not rule out.
        struct Candidate {
            /// Its slot in the tiles.
            slot: u32,
            /// The score of the rounded vectors.
            score: f32,
        }
        /// A row that was scored in float64.
        struct ScoredRow {
            score: f64,
            row: u32,
            /// In a list of several queries' rows: the query.
            query: u32,
        }
        /// The result of one query, without its hits.
        struct QueryResult {
            /// The number of hits.
            count: u32,
            /// `ANSWERED`, or why there is no answer.
            status: u32,
            /// Rows that the scan could not rule out.
            candidates: u32,
            /// Rows that were scored in float64.
            survivors: u32,
        }
    }
    unions {
        /// One element of an answer. A query's answer has `1 + stride` elements: its result, then
        /// its hits.
        union Answer {
            result: QueryResult,
            hit: ScoredRow,
        }
    }
    params {
        /// The queries of a pass.
        struct QueriesView {
            /// `[vectors, dim]`: the queries that are not rows of the table.
            vectors: DevicePointer<f32>,
            /// `[batch]`.
            headers: DevicePointer<QueryHeader>,
            /// The lists of excluded rows, one after the other.
            excluded: DevicePointer<u32>,
        }
        /// Some tiles of a table, in ascending order: see `tile_at`.
        struct TileWalk {
            /// The number of tiles.
            count: u32,
            /// As many tiles, from the first on, come one after the other.
            dense: u32,
            /// The distance from there to the next tile.
            start: u32,
            /// The distance between tiles from then on.
            spacing: u32,
            /// Not zero: after every d tiles one more is left out, and this is `2^32 / d`, rounded
            /// up.
            reciprocal: u32,
        }
        /// The output of the scan of the 8-bit table, and the thresholds and scales that it uses.
        struct ScanOutput {
            /// `[batch]`: the number of tiles, from the first on, in which a query looks for
            /// candidates.
            ends: DevicePointer<u32>,
            /// `[batch]`, as the next.
            thresholds: DevicePointer<Threshold>,
            scales: DevicePointer<QueryScale>,
            /// `[batch]`: the addresses of their sets by slots, for kernels of passes with sets.
            sets: DevicePointer<u64>,
            /// `[batch, groups]`: the sampling scan's lower bounds, with the index of the row of
            /// each.
            group_bounds: DevicePointerMut<f32>,
            /// `[batch]` counters.
            candidate_counts: DevicePointerMut<u32>,
            /// `[batch, capacity]`.
            candidates: DevicePointerMut<Candidate>,
            capacity: u32,
            groups: u32,
        }
        /// The table and the device memory of a pass, which its kernels hand to each other.
        struct PassView {
            table: TableView,
            queries: QueriesView,
            /// `[tiles]`.
            tile_scales: DevicePointer<TileScale>,
            /// `[tiles * TILE_ROWS]`.
            slot_rows: DevicePointer<u32>,
            /// `[formula_count[0]]`.
            formulas: DevicePointer<Formula>,
            /// `[1]`.
            formula_count: DevicePointer<u32>,
            /// `[batch]`: the highest score known to be reached by k rows, for each formula's first
            /// column.
            formula_floors: DevicePointerMut<f64>,
            /// `[batch]`, as all that follow unless they say more.
            columns: DevicePointerMut<FormulaColumn>,
            /// `[batch, padded]`: the queries' bytes.
            bytes: DevicePointerMut<u8>,
            scales: DevicePointerMut<QueryScale>,
            thresholds: DevicePointerMut<Threshold>,
            floors: DevicePointerMut<f32>,
            /// See `ScanOutput`.
            ends: DevicePointerMut<u32>,
            sets: DevicePointerMut<u64>,
            /// Counters, as the next two. A formula that fails is marked here.
            candidate_counts: DevicePointerMut<u32>,
            survivor_counts: DevicePointerMut<u32>,
            tickets: DevicePointerMut<u32>,
            /// `[batch, capacity]`.
            candidates: DevicePointerMut<Candidate>,
            /// `[batch, survivor_capacity]`.
            survivors: DevicePointerMut<ScoredRow>,
            capacity: u32,
            survivor_capacity: u32,
        }
        struct PrepareQueriesParams {
            pass: PassView,
            lift: LiftView,
            /// In the host's memory, which is faster to read than to copy beforehand: what
            /// `QueriesView` has on the device, and the formulas.
            uploaded: DevicePointer<QueryHeader>,
            uploaded_vectors: DevicePointer<f32>,
            uploaded_excluded: DevicePointer<u32>,
            uploaded_formulas: DevicePointer<Formula>,
            uploaded_formula_count: DevicePointer<u32>,
            /// The same on the device, for the kernels that follow. `vectors` may be null: then
            /// they are not copied.
            headers: DevicePointerMut<QueryHeader>,
            vectors: DevicePointerMut<f32>,
            excluded: DevicePointerMut<u32>,
            formulas: DevicePointerMut<Formula>,
            formula_count: DevicePointerMut<u32>,
            /// Components of a query, with padding, and where its bytes are put.
            padded: i32,
            layout: Layout,
        }
        struct Int8ScanParams {
            /// `[tiles, chunks, TILE_ROWS, CHUNK_BYTES]`.
            tiles: DevicePointer<u8>,
            /// `[tiles]`.
            tile_scales: DevicePointer<TileScale>,
            /// The queries in `Layout::Fragments16`.
            fragments: DevicePointer<u8>,
            out: ScanOutput,
            walk: TileWalk,
            chunks: i32,
        }
        struct HopperScanParams {
            /// As in `Int8ScanParams`, as the next.
            tiles: DevicePointer<u8>,
            tile_scales: DevicePointer<TileScale>,
            /// The queries in `Layout::Fragments64`, or `Chunks64` for wide rows.
            fragments: DevicePointer<u8>,
            out: ScanOutput,
            walk: TileWalk,
            chunks: i32,
            /// Tiles in the ring, at most `HOPPER_MAX_STAGES`.
            stages: i32,
            /// The number of blocks that read the same tile for different queries.
            query_groups: i32,
        }
        struct FirstThresholdsParams {
            pass: PassView,
            /// `[batch, groups]`; those of groups with excluded rows are overwritten.
            group_bounds: DevicePointerMut<f32>,
            /// As in `PrepareQueriesParams`.
            padded: i32,
            layout: Layout,
            sample: TileWalk,
            groups: u32,
            groups_per_tile: u32,
        }
        struct RaiseThresholdsParams {
            pass: PassView,
        }
        struct RescoreParams {
            pass: PassView,
            /// `[batch, 1 + stride]`.
            answers: DevicePointerMut<Answer>,
            /// In the host's memory: set to 1 once the kernel has started.
            almost_over: DevicePointerMut<u32>,
            stride: i32,
            /// Blocks for all formulas.
            formula_blocks: u32,
        }
        struct MinimumThresholdsParams {
            pass: PassView,
            batch: i32,
            unused: u32,
        }
        struct StopQueriesParams {
            pass: PassView,
            /// Queries with more candidates are given up.
            most: u32,
            batch: i32,
        }
        struct ListHitsParams {
            pass: PassView,
            /// `[list_capacity]`, in the host's memory, as the others that are written, but for the
            /// count.
            listed: DevicePointerMut<ScoredRow>,
            /// The number of hits, which may be above the capacity; zero before a pass.
            listed_count: DevicePointerMut<u32>,
            /// `[batch]`: 1 for a query with more candidates than there is room for, of which
            /// nothing is listed.
            overflowed: DevicePointerMut<u32>,
            /// Set to 1 once the kernel has started.
            almost_over: DevicePointerMut<u32>,
            list_capacity: u32,
            unused: u32,
        }
        struct Int4ScanParams {
            /// Its query is in `Layout::Plain`.
            pass: PassView,
            /// `[tiles, chunks, TILE_ROWS, CHUNK_BYTES]`.
            levels: DevicePointer<u8>,
            /// `[tiles * TILE_ROWS]`.
            dots: DevicePointerMut<i32>,
            /// `[blocks]`: each block's best dot product, shifted to be positive, in the upper 32
            /// bits; its slot in the lower 32.
            best: DevicePointerMut<u64>,
            chunks: i32,
            tiles: u32,
        }
        struct Int4ThresholdParams {
            pass: PassView,
            /// `[blocks]`.
            best: DevicePointer<u64>,
            blocks: u32,
        }
        struct Int4RescoreParams {
            pass: PassView,
            /// `[tiles]`.
            residuals: DevicePointer<f32>,
            /// `[tiles * TILE_ROWS]`.
            dots: DevicePointer<i32>,
            /// `[1 + stride]`.
            answers: DevicePointerMut<Answer>,
            /// In the host's memory: set to 1 once the kernel has started.
            almost_over: DevicePointerMut<u32>,
            /// Half of the step between two levels.
            half_step: f32,
            tiles: u32,
            stride: i32,
        }
        struct ExactScanParams {
            table: TableView,
            queries: QueriesView,
            /// `[batch]`, zero before a pass.
            floors: DevicePointerMut<u32>,
            /// `[batch, parts, stride]`.
            part_hits: DevicePointerMut<ScoredRow>,
            /// `[batch, parts]`.
            part_counts: DevicePointerMut<u32>,
            stride: i32,
        }
        struct MergePartsParams {
            /// `[batch]`.
            headers: DevicePointer<QueryHeader>,
            /// `[batch, parts, stride]`.
            part_hits: DevicePointer<ScoredRow>,
            /// `[batch, parts]`.
            part_counts: DevicePointer<u32>,
            /// `[batch, 1 + stride]`.
            answers: DevicePointerMut<Answer>,
            parts: i32,
            stride: i32,
        }
    }
    files {
        "" / prepare_queries for Every {
            // Fewer for rows of few components.
            (512) prepare_queries: PrepareQueriesParams;
            (512, 2) prepare_formulas: PrepareQueriesParams;
        }
        "" / int8_scan for Every {
            (128) int8_sample_16, int8_sample_32, int8_sample_64,
                int8_scan_16, int8_scan_32, int8_scan_64: Int8ScanParams;
            (128) int8_set_sample_16, int8_set_sample_32, int8_set_sample_64,
                int8_set_scan_16, int8_set_scan_32, int8_set_scan_64: Int8ScanParams;
        }
        "" / hopper_scan for Sm90a {
            (256, 1) hopper_sample_64_2, hopper_sample_64_4, hopper_sample_64_7, hopper_sample_64_10,
                hopper_scan_64_2, hopper_scan_64_4, hopper_scan_64_7, hopper_scan_64_10: HopperScanParams;
            (384, 1) hopper_sample_128_2, hopper_sample_128_4, hopper_sample_128_7, hopper_sample_128_10,
                hopper_scan_128_2, hopper_scan_128_4, hopper_scan_128_7, hopper_scan_128_10,
                hopper_sample_256_2, hopper_sample_256_4, hopper_sample_256_7, hopper_sample_256_10,
                hopper_scan_256_2, hopper_scan_256_4, hopper_scan_256_7, hopper_scan_256_10: HopperScanParams;
            (256, 1) hopper_set_sample_64_2, hopper_set_sample_64_4, hopper_set_sample_64_7, hopper_set_sample_64_10,
                hopper_set_scan_64_2, hopper_set_scan_64_4, hopper_set_scan_64_7, hopper_set_scan_64_10: HopperScanParams;
            (384, 1) hopper_set_sample_128_2, hopper_set_sample_128_4, hopper_set_sample_128_7, hopper_set_sample_128_10,
                hopper_set_scan_128_2, hopper_set_scan_128_4, hopper_set_scan_128_7, hopper_set_scan_128_10,
                hopper_set_sample_256_2, hopper_set_sample_256_4, hopper_set_sample_256_7, hopper_set_sample_256_10,
                hopper_set_scan_256_2, hopper_set_scan_256_4, hopper_set_scan_256_7, hopper_set_scan_256_10: HopperScanParams;
        }
        "" / hopper_wide_scan for Sm90a {
            (256, 1) hopper_wide_sample_64, hopper_wide_scan_64,
                hopper_wide_set_sample_64, hopper_wide_set_scan_64: HopperScanParams;
            (384, 1) hopper_wide_sample_128, hopper_wide_scan_128,
                hopper_wide_set_sample_128, hopper_wide_set_scan_128: HopperScanParams;
        }
        "" / thresholds for Every {
            (512) first_thresholds: FirstThresholdsParams;
            (512) raise_thresholds: RaiseThresholdsParams;
            (128) minimum_thresholds: MinimumThresholdsParams;
            (128) stop_queries: StopQueriesParams;
            // Two blocks per multiprocessor: most queries of a pass are plain, and wait for as few
            // registers as they would without formulas.
            (512, 2) first_formula_thresholds: FirstThresholdsParams;
            (512, 2) raise_formula_thresholds: RaiseThresholdsParams;
        }
        "" / rescore for Every {
            (512) rescore: RescoreParams;
            (128) list_hits: ListHitsParams;
            (512, 2) rescore_formulas: RescoreParams;
        }
        "" / int4_scan for Every {
            // As many blocks as its grid has for each multiprocessor.
            (128, 12) int4_scan, int4_set_scan: Int4ScanParams;
            (1024) int4_threshold: Int4ThresholdParams;
            (256, 4) int4_rescore, int4_set_rescore: Int4RescoreParams;
        }
        "" / exact_scan for Every {
            // Six blocks per multiprocessor. Without this limit, some compilers use more registers,
            // and only five fit.
            (256, 6) exact_scan, float32_scan: ExactScanParams;
            // More registers, for more rows at once.
            (256, 4) exact_set_scan, float32_set_scan: ExactScanParams;
            (512) merge_parts: MergePartsParams;
        }
    }
}

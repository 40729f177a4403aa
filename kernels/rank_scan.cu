// Counts the rows that rank before given rows of the table, for many queries in one pass over the
// float32 table.
//
// The scan computes cosines on tensor cores: each component as the sum of two float16. Its error is
// proven (docs/certificate.md, theorem 6). Rows that are surely between two thresholds are counted
// where they are. The few that are nearer to one than the error are scored by the contract's
// formula afterwards.
#include "cp_async.cuh"
#include "launch.cuh"
#include "ldmatrix.cuh"
#include "mma.cuh"
#include "prefetch.cuh"
#include "ranks.cuh"

constexpr int WARPS = 8;        // of the small kernels
constexpr int SCAN_WARPS = 16;
constexpr int STEPS = RANK_CHUNK / 16;       // of mma's 16 components
constexpr int STAGE = 2 * RANK_CHUNK;        // components between two barriers
constexpr int STAGE_STEPS = STAGE / 16;
constexpr int STRIDE = STAGE + 8;            // of a row in shared memory: reads of 8 rows meet in no bank
static_assert(STEPS == 2, "one ldmatrix.x4 has the operands of two steps");

__device__ __forceinline__ const float* components(const RankQuery& query, const TableView& table, const float* vectors) {
    return query.row != NOT_A_ROW ? table.components + static_cast<size_t>(query.row) * table.dim
                                  : vectors + static_cast<size_t>(query.vector) * table.dim;
}

// The row of a threshold, for ties. Nothing ranks before a maximum score, or a given one, by its
// row.
__device__ __forceinline__ uint32_t threshold_row(uint32_t probe) { return probe == NOT_A_ROW ? 0u : probe; }

// Scores each query's probes, and puts its thresholds and its operands in place. Grid: (batch).
extern "C" __global__ void score_probes(const ProbeParams params) {
    __shared__ double scores[RANK_THRESHOLDS];  // NaN without a threshold
    __shared__ uint32_t rows[RANK_THRESHOLDS];
    const TableView& table = params.pass.table;
    const int q = blockIdx.x, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const RankQuery query = params.pass.queries[q];
    const bool is_there = query.norm > 0.0;
    const float* const vector = is_there ? components(query, table, params.pass.vectors) : nullptr;
    float* const thresholds = params.pass.thresholds + q * RANK_THRESHOLDS;
    if (threadIdx.x < RANK_THRESHOLDS) {
        thresholds[threadIdx.x] = NO_THRESHOLD;
        params.pass.bins[q * BINS + threadIdx.x] = 0;
    }
    if (threadIdx.x == 0) params.pass.doubtful_counts[q] = 0;
    for (int i = warp; i < RANK_PROBES; i += WARPS) {
        const uint32_t row = is_there ? params.pass.probes[q * RANK_PROBES + i] : NOT_A_ROW;
        double score = __longlong_as_double(0x7ff8000000000000ll);
        if (row != NOT_A_ROW) {
            const double norm = table.norms[row];
            const double dot = warp_dot(table.components + static_cast<size_t>(row) * table.dim, vector, table.dim);
            if (norm > 0.0) score = cosine(dot, query.norm, norm);
        } else if (is_there && i == RANK_MAXIMUM && query.max_score <= 1.0) {
            score = fmax(query.max_score, -2.0);  // below every score, like any other such maximum
        } else if (is_there && i < static_cast<int>(query.targets)) {
            score = params.pass.scores[q * RANK_PROBES + i];
        }
        if (lane == 0) {
            params.pass.scores[q * RANK_PROBES + i] = score;
            if (i < RANK_THRESHOLDS) scores[i] = score, rows[i] = threshold_row(row);
        }
    }
    __syncthreads();
    if (threadIdx.x < RANK_THRESHOLDS && !isnan(scores[threadIdx.x])) {
        const double own = scores[threadIdx.x];
        const uint32_t own_row = rows[threadIdx.x];
        int after = 0;
        for (int i = 0; i < RANK_THRESHOLDS; i++) {
            // Equal ones are in any order.
            const bool is_same = scores[i] == own && rows[i] == own_row;
            after += ranks_before(own, own_row, scores[i], rows[i]) || (is_same && i > static_cast<int>(threadIdx.x));
        }
        thresholds[after] = static_cast<float>(own);
    }
    const float scale = is_there ? unit_scale(query.norm) : 0.0f;
    const int in_tile = q % 16, pairs = params.pass.stages * STAGE / 2;
    for (int pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
        const auto component = [&](int i) { return is_there && i < table.dim ? __fmul_rn(vector[i], scale) : 0.0f; };
        const Halves halves = split(component(2 * pair), component(2 * pair + 1));
        uint32_t* to;
        int low;  // words behind it
        if (params.layout == RankLayout::Fragments) {
            const int step = pair / 8, own_lane = in_tile % 8 * 4 + pair % 4, own_register = in_tile / 8 + pair / 4 % 2 * 2;
            const size_t tile_step = static_cast<size_t>(q / 16) * (pairs / 8) + step;
            to = params.pass.fragments + (tile_step * 2 * WARP + own_lane) * 4 + own_register;
            low = 4 * WARP;
        } else if (params.layout == RankLayout::Lanes) {
            const int eight = pair / 8 * (gridDim.x / 8) + q / 8;
            to = params.pass.fragments + (eight * WARP + q % 8 * 4 + pair % 8 / 2) * 4 + pair % 2;
            low = 2;
        } else {
            const int chunk = pair / (RANK_CHUNK / 2), piece = pair % (RANK_CHUNK / 2) / 4, groups = params.pass.groups;
            low = 64 * RANK_CHUNK / 2;
            to = params.pass.fragments + (chunk * groups + q / 64) * 2 * low + (piece * 64 + q % 64) * 4 + pair % 4;
        }
        to[0] = reinterpret_cast<const uint32_t&>(halves.high);
        to[low] = reinterpret_cast<const uint32_t&>(halves.low);
    }
}

// Operand B of two steps for 8 rows: 8 rows x 32 components in shared memory, STRIDE apart.
__device__ __forceinline__ void load_rows(uint32_t (&b)[4], const __half* rows) {
    const int lane = threadIdx.x % WARP;
    load_matrices(b, rows + lane % 8 * STRIDE + lane / 8 * 8);
}

// What a block has in shared memory.
template <int QUERIES>
struct ScanSpace {
    uint4 fragments[2][QUERIES / 16][STAGE_STEPS][2][WARP];
    __half high[2][RANK_TILE][STRIDE], low[2][RANK_TILE][STRIDE];
    float masks[2][RANK_TILE];
    Thresholds thresholds[QUERIES];
};
template <int QUERIES>
constexpr bool fits = sizeof(ScanSpace<QUERIES>) <= RANK_SHARED + QUERIES * RANK_SHARED_PER_QUERY;
static_assert(fits<32> && fits<64> && fits<128>);

// A thread's part of the rows on their way to shared memory.
struct Loader {
    static constexpr int PARTS = STAGE / 4;  // of a row
    static constexpr int EACH = RANK_TILE * PARTS / (SCAN_WARPS * WARP);  // rows
    const TableView& table;
    float4 parts[EACH];
    float scales[EACH];  // zero for rows of norm zero and for no row, negative zero if the norm has no inverse

    __device__ int row_in_tile(int i) const { return threadIdx.x / PARTS + i * (RANK_TILE / EACH); }

    __device__ void load(uint32_t tile, int stage) {
        const int column = stage * STAGE + threadIdx.x % PARTS * 4;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t row = tile * RANK_TILE + row_in_tile(i);
            if (stage == 0) {
                const double norm = row < table.rows ? table.norms[row] : 0.0;
                scales[i] = row_scale(norm);
            }
            parts[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (row >= table.rows || column >= table.dim) continue;
            const float* const from = table.components + static_cast<size_t>(row) * table.dim + column;
            if (table.dim % 4 == 0) {
                parts[i] = __ldcs(reinterpret_cast<const float4*>(from));
            } else {
                const int left = table.dim - column;
                parts[i].x = from[0];
                if (left > 1) parts[i].y = from[1];
                if (left > 2) parts[i].z = from[2];
                if (left > 3) parts[i].w = from[3];
            }
        }
    }

    __device__ void store(__half (&high)[RANK_TILE][STRIDE], __half (&low)[RANK_TILE][STRIDE]) const {
        const int column = threadIdx.x % PARTS * 4;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int row = row_in_tile(i);
            const Halves first = split(__fmul_rn(parts[i].x, scales[i]), __fmul_rn(parts[i].y, scales[i]));
            const Halves second = split(__fmul_rn(parts[i].z, scales[i]), __fmul_rn(parts[i].w, scales[i]));
            __half2* const to_high = reinterpret_cast<__half2*>(&high[row][column]);
            __half2* const to_low = reinterpret_cast<__half2*>(&low[row][column]);
            to_high[0] = first.high, to_high[1] = second.high;
            to_low[0] = first.low, to_low[1] = second.low;
        }
    }

    __device__ void store_masks(float (&to)[RANK_TILE]) const {
        if (threadIdx.x % PARTS != 0) return;
#pragma unroll
        for (int i = 0; i < EACH; i++) to[row_in_tile(i)] = row_mask(scales[i]);
    }

    // Has the memory read a tile, so that loads find it in the second-level cache.
    __device__ void prefetch(uint32_t tile) const {
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x != 0 || table.dim % 4 != 0) return;
        const uint32_t rows = min(table.rows - tile * RANK_TILE, static_cast<uint32_t>(RANK_TILE));
        const float* const from = table.components + static_cast<size_t>(tile) * RANK_TILE * table.dim;
        prefetch_bytes(from, rows * table.dim * static_cast<uint32_t>(sizeof(float)));
#endif
    }
};

// Blocks take tiles of rows in turns. QUERY_WARPS: of 32 queries each; the rest of a block's warps
// divide the rows.
template <int QUERY_WARPS>
__device__ __forceinline__ void scan(const RankScanParams& params) {
    constexpr int QUERIES = QUERY_WARPS * 32;
    constexpr int ROWS = RANK_TILE / (SCAN_WARPS / QUERY_WARPS), COLUMN_TILES = ROWS / 8;
    constexpr int TOGETHER = COLUMN_TILES < 2 ? 1 : 2;               // column tiles, so that a product waits for no other
    constexpr int TILES_BETWEEN_FLUSHES = 255 / (2 * COLUMN_TILES);  // a thread's rows of so many tiles fit 8 bits
    extern __shared__ __align__(16) unsigned char memory[];
    ScanSpace<QUERIES>& space = *reinterpret_cast<ScanSpace<QUERIES>*>(memory);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    const int first_query = warp % QUERY_WARPS * 32, first_row = warp / QUERY_WARPS * ROWS;
    const int stages = params.pass.stages;
    const float error = params.error;
    copy_thresholds(space.thresholds, params, QUERIES);
    // Starts copying a stage's operands of the queries.
    const auto copy_fragments = [&](int stage, int buffer) {
        constexpr int PIECES = STAGE_STEPS * 2 * WARP;  // of 16 queries
        const uint4* const from = reinterpret_cast<const uint4*>(params.pass.fragments);
        uint4* const to = &space.fragments[buffer][0][0][0][0];
        for (int i = threadIdx.x; i < QUERIES / 16 * PIECES; i += SCAN_WARPS * WARP) {
            copy_16(to + i, from + (i / PIECES * stages + stage) * PIECES + i % PIECES);
        }
    };
    float sums[2][COLUMN_TILES][4] = {};
    uint32_t counts[4][BINS / 4] = {};  // of four bins, of which two are even and two odd
    const auto flush = [&] {
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int j = 0; j < BINS / 2; j++) {
                // Every other byte: two bins, each in 16 bits.
                add_to_bins(params.pass.bins + (first_query + 8 * i + g) * BINS, j, counts[i][j / 2] >> j % 2 * 8 & 0x00ff00ff);
            }
#pragma unroll
            for (int j = 0; j < BINS / 4; j++) counts[i][j] = 0;
        }
    };
    // Puts a query's scores of a tile into bins.
    const auto count = [&](int i, uint32_t tile, const float (&own_masks)[2 * COLUMN_TILES]) {
        const int q = first_query + 8 * i + g;
        const Thresholds& own = space.thresholds[q];
        const uint32_t base = tile * RANK_TILE + first_row + 2 * t;
        float scores[2 * COLUMN_TILES];
#pragma unroll
        for (int n = 0; n < 2 * COLUMN_TILES; n++) {
            scores[n] = fmaf(sums[i / 2][n / 2][i % 2 * 2 + n % 2], 1.0f / (RANK_SCALE * RANK_SCALE), own_masks[n]);
        }
        if ((tile + 1) * RANK_TILE > own.first_rows) {
#pragma unroll
            for (int n = 0; n < 2 * COLUMN_TILES; n++) {
                if (base + n / 2 * 8 + n % 2 >= own.first_rows) scores[n] = -NO_THRESHOLD;
            }
        }
        if (own.set != 0) {
            // A thread's rows are in one word.
            const uint32_t members = reinterpret_cast<const uint32_t*>(own.set)[base / 32] >> base % 32;
#pragma unroll
            for (int n = 0; n < 2 * COLUMN_TILES; n++) {
                if (!(members >> (n / 2 * 8 + n % 2) & 1)) scores[n] = -NO_THRESHOLD;
            }
        }
        Bins bins;
        const uint32_t doubtful = find_bins(own, scores, error, bins);
        const uint32_t room = take_room(params, q, doubtful);
#pragma unroll
        for (int j = 0; j < BINS / 8; j++) {
            const uint32_t eight = j == 0 ? bins.low : bins.high;
            counts[i][2 * j] += eight & 0x0f0f0f0f;
            counts[i][2 * j + 1] += eight >> 4 & 0x0f0f0f0f;
        }
        list_doubtful(params, q, room, doubtful, [&](int n) { return base + n / 2 * 8 + n % 2; });
    };

    Loader loader{params.pass.table};
    uint32_t tile = params.first_tile + blockIdx.x, tiles_done = 0;
    if (tile < params.tiles) loader.load(tile, 0), copy_fragments(0, 0);
    int buffer = 0;
    for (; tile < params.tiles; tile += gridDim.x) {
#pragma unroll 1
        for (int stage = 0; stage < stages; stage++, buffer ^= 1) {
            // Whoever still multiplies does so in the other buffer.
            loader.store(space.high[buffer], space.low[buffer]);
            if (stage == 0) loader.store_masks(space.masks[tiles_done % 2]);
            const bool is_last = stage + 1 == stages;
            const uint32_t next_tile = is_last ? tile + gridDim.x : tile;
            if (stage == 0 && tile + gridDim.x < params.tiles) loader.prefetch(tile + gridDim.x);
            if (next_tile < params.tiles) loader.load(next_tile, is_last ? 0 : stage + 1);
            copies_wait_all();
            __syncthreads();
            // Now nobody multiplies in the other buffer.
            if (next_tile < params.tiles) copy_fragments(is_last ? 0 : stage + 1, buffer ^ 1);
#pragma unroll 1
            for (int chunk = 0; chunk < STAGE / RANK_CHUNK; chunk++) {
                uint4 a[STEPS][2][2];  // of two tiles of queries, upper and lower halves
#pragma unroll
                for (int i = 0; i < STEPS * 4; i++) {
                    const int step = i / 4, m = i / 2 % 2, part = i % 2;
                    a[step][m][part] = space.fragments[buffer][first_query / 16 + m][chunk * STEPS + step][part][lane];
                }
#pragma unroll
                for (int first = 0; first < COLUMN_TILES; first += TOGETHER) {
                    uint32_t b[TOGETHER][2][4];  // upper and lower halves
#pragma unroll
                    for (int n = 0; n < TOGETHER; n++) {
                        const int row = first_row + 8 * (first + n);
                        load_rows(b[n][0], &space.high[buffer][row][chunk * RANK_CHUNK]);
                        load_rows(b[n][1], &space.low[buffer][row][chunk * RANK_CHUNK]);
                    }
                    // The small products first, so that they lose nothing; and each chunk by
                    // itself, because tensor cores may truncate. What a chunk loses is then a part
                    // of its own products, not of all before it.
                    float products[TOGETHER][2][4] = {};
#pragma unroll
                    for (int turn = 0; turn < 3; turn++) {
#pragma unroll
                        for (int i = 0; i < STEPS * TOGETHER * 2; i++) {
                            const int step = i / (TOGETHER * 2), n = i / 2 % TOGETHER, m = i % 2;
                            const uint32_t (&own)[4] = b[n][turn == 0 ? 1 : 0];
                            multiply(products[n][m], a[step][m][turn == 1 ? 1 : 0], own[2 * step], own[2 * step + 1]);
                        }
                    }
#pragma unroll
                    for (int i = 0; i < TOGETHER * 2 * 4; i++) {
                        const int n = i / 8, m = i / 4 % 2, j = i % 4;
                        sums[m][first + n][j] = __fadd_rn(sums[m][first + n][j], products[n][m][j]);
                    }
                }
            }
        }
        float own_masks[2 * COLUMN_TILES];
#pragma unroll
        for (int n = 0; n < COLUMN_TILES; n++) {
            const float2 two = *reinterpret_cast<const float2*>(&space.masks[tiles_done % 2][first_row + 8 * n + 2 * t]);
            own_masks[2 * n] = two.x, own_masks[2 * n + 1] = two.y;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) count(i, tile, own_masks);
#pragma unroll
        for (int i = 0; i < 2 * COLUMN_TILES * 4; i++) sums[i / 4 / COLUMN_TILES][i / 4 % COLUMN_TILES][i % 4] = 0.0f;
        if (++tiles_done % TILES_BETWEEN_FLUSHES == 0) flush();
    }
    flush();
}

// Grid: any; the batch is as wide as the kernel's name says. Dynamic shared memory:
// RANK_SHARED, and RANK_SHARED_PER_QUERY for each.
extern "C" __global__ void rank_scan_32(const RankScanParams params) { scan<1>(params); }
extern "C" __global__ void rank_scan_64(const RankScanParams params) { scan<2>(params); }
extern "C" __global__ void rank_scan_128(const RankScanParams params) { scan<4>(params); }

// Scores the rows in doubt by the contract's formula, and puts them into their bins. A query with
// more than there was room for gets no counts that mean anything. Grid: (batch, any).
extern "C" __global__ void count_doubtful(const CountDoubtfulParams params) {
    tell_host(params.almost_over);
    const TableView& table = params.pass.table;
    const int q = blockIdx.x, lane = threadIdx.x % WARP;
    const RankQuery query = params.pass.queries[q];
    const uint32_t count = min(params.pass.doubtful_counts[q], static_cast<uint32_t>(RANK_CAPACITY));
    if (!(query.norm > 0.0) || count == 0) return;
    const float* const vector = components(query, table, params.pass.vectors);
    const uint32_t* const doubtful = params.pass.doubtful + static_cast<size_t>(q) * RANK_CAPACITY;
    // A lane for each threshold; of each half of a warp, every other row.
    constexpr int TOGETHER = 4;
    const int own = lane % RANK_THRESHOLDS, half = lane / RANK_THRESHOLDS;
    const double threshold = params.pass.scores[q * RANK_PROBES + own];
    const uint32_t own_row = threshold_row(params.pass.probes[q * RANK_PROBES + own]);
    const uint32_t warp = blockIdx.y * WARPS + threadIdx.x / WARP, warps = gridDim.y * WARPS;
    for (uint32_t i = TOGETHER * warp; i < count; i += TOGETHER * warps) {
        uint32_t some[TOGETHER];
        const float* rows[TOGETHER];
        double norms[TOGETHER], dots[TOGETHER];
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            some[j] = doubtful[min(i + j, count - 1)];
            rows[j] = table.components + static_cast<size_t>(some[j]) * table.dim;
            norms[j] = table.norms[some[j]];
        }
        warp_dots(rows, vector, table.dim, dots);
#pragma unroll
        for (int j = 0; j < TOGETHER; j += 2) {
            const double score = cosine(half == 0 ? dots[j] : dots[j + 1], query.norm, half == 0 ? norms[j] : norms[j + 1]);
            // A comparison with NaN is false.
            const bool is_before = ranks_before(score, half == 0 ? some[j] : some[j + 1], threshold, own_row);
            const uint32_t above = __ballot_sync(ALL_LANES, is_before);
            const uint32_t bin = __popc(above >> half * RANK_THRESHOLDS & (1u << RANK_THRESHOLDS) - 1);
            if (own == 0 && i + j + half < count) atomicAdd(params.pass.bins + q * BINS + bin, 1u);
        }
    }
}

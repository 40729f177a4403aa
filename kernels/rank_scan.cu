// Counts the rows that rank before given rows of the table, for many queries in one pass over the float32 table.
//
// The scan computes cosines on tensor cores: each component as the sum of two float16. Its error is proven
// (docs/certificate.md, theorem 7). Rows that are surely above a threshold are counted where they are. The few that are
// nearer to a threshold than the error are scored by the contract's formula afterwards.
#include <cuda_fp16.h>

#include "abi/ranks.cuh"
#include "contract.cuh"

constexpr int STEPS = RANK_CHUNK / 16;        // of mma's 16 components
constexpr int STRIDE = RANK_CHUNK + 8;        // of a row in shared memory: reads of 8 rows meet in no bank
constexpr int FOURS = RANK_THRESHOLDS / 4;    // of counts in one register
constexpr int WARPS = 8;                      // of the small kernels
constexpr int SCAN_WARPS = 16;
static_assert(STEPS == 2, "one ldmatrix.x4 has the operands of two steps");

// A component of a scaled unit vector as the sum of two float16, up to 2^-22 of it.
struct Halves {
    __half2 high, low;
};
__device__ __forceinline__ Halves split(float x, float y) {
    const __half2 high = __floats2half2_rn(x, y);
    const float2 back = __half22float2(high);
    return {high, __floats2half2_rn(__fsub_rn(x, back.x), __fsub_rn(y, back.y))};
}

__device__ __forceinline__ bool has_inverse(double norm) { return norm >= 1.0 / RANK_MAX_NORM && norm <= RANK_MAX_NORM; }

// By what components are multiplied to become those of a scaled unit vector.
__device__ __forceinline__ float unit_scale(double norm) {
    return static_cast<float>(static_cast<double>(RANK_SCALE) / norm);
}

__device__ __forceinline__ const float* components(const RankQuery& query, const TableView& table, const float* vectors) {
    return query.row != NOT_A_ROW ? table.components + static_cast<size_t>(query.row) * table.dim
                                  : vectors + static_cast<size_t>(query.vector) * table.dim;
}

// Scores each query's probes, and puts its thresholds and its operands in place. Grid: (batch).
extern "C" __global__ void score_probes(const ProbeParams params) {
    const TableView& table = params.table;
    const int q = blockIdx.x, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const RankQuery query = params.queries[q];
    const bool is_there = query.norm > 0.0;
    const float* const vector = is_there ? components(query, table, params.vectors) : nullptr;
    for (int i = warp; i < RANK_PROBES; i += WARPS) {
        const uint32_t row = is_there ? params.probes[q * RANK_PROBES + i] : NOT_A_ROW;
        double score = __longlong_as_double(0x7ff8000000000000ll);
        if (row != NOT_A_ROW) {
            const double norm = table.norms[row];
            const double dot = warp_dot(table.components + static_cast<size_t>(row) * table.dim, vector, table.dim);
            if (norm > 0.0) score = cosine(dot, query.norm, norm);
        } else if (is_there && i == RANK_THRESHOLDS - 1 && query.max_score <= 1.0) {
            score = fmax(query.max_score, -2.0);  // below every score, like any other such maximum
        }
        if (lane == 0) {
            params.scores[q * RANK_PROBES + i] = score;
            if (i < RANK_THRESHOLDS) {
                params.thresholds[q * RANK_THRESHOLDS + i] = isnan(score) ? NO_THRESHOLD : static_cast<float>(score);
                params.before[q * RANK_THRESHOLDS + i] = 0;
            }
        }
    }
    if (threadIdx.x == 0) params.doubtful_counts[q] = 0;
    const float scale = is_there ? unit_scale(query.norm) : 0.0f;
    const int in_tile = q % 16, pairs = params.chunks * RANK_CHUNK / 2;
    for (int pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
        const auto component = [&](int i) { return is_there && i < table.dim ? __fmul_rn(vector[i], scale) : 0.0f; };
        const Halves halves = split(component(2 * pair), component(2 * pair + 1));
        const int step = pair / 8, own_lane = in_tile % 8 * 4 + pair % 4, own_register = in_tile / 8 + pair / 4 % 2 * 2;
        const size_t tile_step = static_cast<size_t>(q / 16) * (pairs / 8) + step;
        uint32_t* const to = params.fragments + (tile_step * 2 * WARP + own_lane) * 4 + own_register;
        to[0] = reinterpret_cast<const uint32_t&>(halves.high);
        to[4 * WARP] = reinterpret_cast<const uint32_t&>(halves.low);
    }
}

// d += a (16 queries x 16 components) * b (16 components x 8 rows).
__device__ __forceinline__ void multiply(float (&d)[4], const uint4& a, uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
    // Compute capability 7.5 has only m16n8k8; two of them give the same sum, up to roundings that the error covers.
    const auto half = [&](uint32_t a0, uint32_t a1, uint32_t b) {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b));
    };
    half(a.x, a.y, b0);
    half(a.z, a.w, b1);
#endif
}

// Operand B of two steps for 8 rows: 8 rows x 32 components in shared memory.
__device__ __forceinline__ void load_rows(uint32_t (&b)[4], const __half* rows) {
    const int lane = threadIdx.x % WARP;
    const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(rows + lane % 8 * STRIDE + lane / 8 * 8));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(address));
}

// Whether a score can't be told from a threshold. True for NaN.
__device__ __forceinline__ bool is_doubtful(float score, float threshold, float error) {
    return !(score > __fadd_rn(threshold, error)) && !(score < __fsub_rn(threshold, error));
}

// A thread's part of the rows on their way to shared memory.
struct Loader {
    static constexpr int EACH = RANK_TILE * RANK_CHUNK / 4 / (SCAN_WARPS * WARP);  // rows
    const TableView& table;
    float4 parts[EACH];
    float scales[EACH];
    float masks[EACH];

    __device__ int row_in_tile(int i) const { return threadIdx.x / (RANK_CHUNK / 4) + i * (RANK_TILE / EACH); }

    __device__ void load(uint32_t tile, int chunk) {
        const int column = chunk * RANK_CHUNK + threadIdx.x % (RANK_CHUNK / 4) * 4;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t row = tile * RANK_TILE + row_in_tile(i);
            if (chunk == 0) {
                const double norm = row < table.rows ? table.norms[row] : 0.0;
                const bool suits = has_inverse(norm);
                scales[i] = suits ? unit_scale(norm) : 0.0f;
                // What is added to scores: no row, or one of norm zero, is below every threshold; NaN is always in doubt.
                masks[i] = suits ? 0.0f : norm > 0.0 ? __int_as_float(0x7fc00000) : -NO_THRESHOLD;
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
        const int column = threadIdx.x % (RANK_CHUNK / 4) * 4;
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
};

// Blocks take tiles of rows in turns. QUERY_WARPS: of 32 queries each; the rest of a block's warps divide the rows.
template <int QUERY_WARPS>
__device__ __forceinline__ void scan(const RankScanParams& params) {
    constexpr int ROWS = RANK_TILE / (SCAN_WARPS / QUERY_WARPS), COLUMN_TILES = ROWS / 8;
    constexpr int TOGETHER = COLUMN_TILES < 2 ? 1 : 2;               // column tiles, so that a product waits for no other
    constexpr int TILES_BETWEEN_FLUSHES = 255 / (2 * COLUMN_TILES);  // a thread's rows of so many tiles fit 8 bits
    __shared__ __align__(16) __half high[2][RANK_TILE][STRIDE], low[2][RANK_TILE][STRIDE];
    __shared__ __align__(8) float masks[2][RANK_TILE];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    const int first_query = warp % QUERY_WARPS * 32, first_row = warp / QUERY_WARPS * ROWS;
    const int chunks = params.chunks;
    const uint4* const fragments = reinterpret_cast<const uint4*>(params.fragments) +
                                   static_cast<size_t>(first_query / 16) * chunks * STEPS * 2 * WARP + lane;
    const float error = params.error;
    uint32_t limits[4];  // rows that count; of query first_query + 8 * i + g
#pragma unroll
    for (int i = 0; i < 4; i++) limits[i] = params.queries[first_query + 8 * i + g].first_rows;

    float sums[2][COLUMN_TILES][4] = {};
    uint32_t counts[4][FOURS] = {};
    const auto flush = [&] {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t* const before = params.before + (first_query + 8 * i + g) * RANK_THRESHOLDS;
#pragma unroll
            for (int four = 0; four < FOURS; four++) {
#pragma unroll
                for (int odd = 0; odd < 2; odd++) {
                    uint32_t two = counts[i][four] >> 8 * odd & 0x00ff00ff;
                    two += __shfl_xor_sync(ALL_LANES, two, 1);
                    two += __shfl_xor_sync(ALL_LANES, two, 2);
                    if (t != 2 * odd && t != 2 * odd + 1) continue;
                    const uint32_t count = t % 2 == 0 ? two & 0xffff : two >> 16;
                    if (count != 0) atomicAdd(before + 4 * four + t % 2 * 2 + odd, count);
                }
                counts[i][four] = 0;
            }
        }
    };
    // Compares a query's scores of a tile with its thresholds.
    const auto compare = [&](int i, uint32_t tile, const float (&own_masks)[2 * COLUMN_TILES]) {
        const int q = first_query + 8 * i + g;
        const float4* const thresholds = reinterpret_cast<const float4*>(params.thresholds + q * RANK_THRESHOLDS);
        const uint32_t base = tile * RANK_TILE + first_row + 2 * t;
        float scores[2 * COLUMN_TILES];
#pragma unroll
        for (int n = 0; n < 2 * COLUMN_TILES; n++) {
            scores[n] = fmaf(sums[i / 2][n / 2][i % 2 * 2 + n % 2], 1.0f / (RANK_SCALE * RANK_SCALE), own_masks[n]);
        }
        if ((tile + 1) * RANK_TILE > limits[i]) {
#pragma unroll
            for (int n = 0; n < 2 * COLUMN_TILES; n++) {
                if (base + n / 2 * 8 + n % 2 >= limits[i]) scores[n] = -NO_THRESHOLD;
            }
        }
        bool any = false;
#pragma unroll
        for (int four = 0; four < RANK_THRESHOLDS / 4; four++) {
            const float4 some = thresholds[four];
            const float own[4] = {some.x, some.y, some.z, some.w};
            if (__all_sync(ALL_LANES, fminf(fminf(own[0], own[1]), fminf(own[2], own[3])) == NO_THRESHOLD)) continue;
            uint32_t above = 0, not_below = 0;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float high_end = __fadd_rn(own[j], error), low_end = __fsub_rn(own[j], error);
#pragma unroll
                for (int n = 0; n < 2 * COLUMN_TILES; n++) {
                    if (scores[n] > high_end) above += 1u << 8 * j;
                    if (!(scores[n] < low_end)) not_below += 1u << 8 * j;
                }
            }
            counts[i][four] += above;
            any |= above != not_below;
        }
        if (!any) return;
#pragma unroll
        for (int n = 0; n < 2 * COLUMN_TILES; n++) {
            bool doubtful = false;
            for (int j = 0; j < RANK_THRESHOLDS; j++) {
                doubtful |= is_doubtful(scores[n], params.thresholds[q * RANK_THRESHOLDS + j], error);
            }
            if (!doubtful) continue;
            const uint32_t index = atomicAdd(params.doubtful_counts + q, 1u);
            if (index < RANK_CAPACITY) {
                params.doubtful[static_cast<size_t>(q) * RANK_CAPACITY + index] = {base + n / 2 * 8 + n % 2, scores[n]};
            }
        }
    };

    Loader loader{params.table};
    uint32_t tile = blockIdx.x, tiles_done = 0;
    if (tile < params.tiles) loader.load(tile, 0);
    int buffer = 0;
    for (; tile < params.tiles; tile += gridDim.x) {
        for (int chunk = 0; chunk < chunks; chunk++, buffer ^= 1) {
            // Whoever still multiplies does so in the other buffer.
            loader.store(high[buffer], low[buffer]);
            if (chunk == 0 && threadIdx.x % (RANK_CHUNK / 4) == 0) {
#pragma unroll
                for (int i = 0; i < Loader::EACH; i++) masks[tiles_done % 2][loader.row_in_tile(i)] = loader.masks[i];
            }
            const bool is_last = chunk + 1 == chunks;
            const uint32_t next_tile = is_last ? tile + gridDim.x : tile;
            if (next_tile < params.tiles) loader.load(next_tile, is_last ? 0 : chunk + 1);
            uint4 a[STEPS][2][2];  // of two tiles of queries, upper and lower halves
#pragma unroll
            for (int i = 0; i < STEPS * 4; i++) {
                const int step = i / 4, m = i / 2 % 2, part = i % 2;
                a[step][m][part] = fragments[(static_cast<size_t>(m) * chunks * STEPS + chunk * STEPS + step) * 2 * WARP + part * WARP];
            }
            __syncthreads();
#pragma unroll
            for (int first = 0; first < COLUMN_TILES; first += TOGETHER) {
                uint32_t b[TOGETHER][2][4];  // upper and lower halves
#pragma unroll
                for (int n = 0; n < TOGETHER; n++) {
                    load_rows(b[n][0], &high[buffer][first_row + 8 * (first + n)][0]);
                    load_rows(b[n][1], &low[buffer][first_row + 8 * (first + n)][0]);
                }
                // The small products first, so that they lose nothing; and each chunk by itself, because tensor cores may
                // truncate. What a chunk loses is then a part of its own products, not of all before it.
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
        float own_masks[2 * COLUMN_TILES];
#pragma unroll
        for (int n = 0; n < COLUMN_TILES; n++) {
            const float2 two = *reinterpret_cast<const float2*>(&masks[tiles_done % 2][first_row + 8 * n + 2 * t]);
            own_masks[2 * n] = two.x, own_masks[2 * n + 1] = two.y;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) compare(i, tile, own_masks);
#pragma unroll
        for (int i = 0; i < 2 * COLUMN_TILES * 4; i++) sums[i / 4 / COLUMN_TILES][i / 4 % COLUMN_TILES][i % 4] = 0.0f;
        if (++tiles_done % TILES_BETWEEN_FLUSHES == 0) flush();
    }
    flush();
}

// Grid: any; the batch is as wide as the kernel's name says.
extern "C" __global__ void rank_scan_32(const RankScanParams params) { scan<1>(params); }
extern "C" __global__ void rank_scan_64(const RankScanParams params) { scan<2>(params); }
extern "C" __global__ void rank_scan_128(const RankScanParams params) { scan<4>(params); }

// Scores the rows in doubt by the contract's formula, and counts those that rank before a threshold. A query with more
// than there was room for gets no count that means anything. Grid: (batch, any).
extern "C" __global__ void count_doubtful(const CountDoubtfulParams params) {
    constexpr int TOGETHER = 2;
    const TableView& table = params.table;
    const int q = blockIdx.x, lane = threadIdx.x % WARP;
    const RankQuery query = params.queries[q];
    const uint32_t count = min(params.doubtful_counts[q], static_cast<uint32_t>(RANK_CAPACITY));
    if (!(query.norm > 0.0) || count == 0) return;
    const float* const vector = components(query, table, params.vectors);
    const Doubtful* const doubtful = params.doubtful + static_cast<size_t>(q) * RANK_CAPACITY;
    // A lane for each threshold.
    const int own = lane % RANK_THRESHOLDS;
    const double score = params.scores[q * RANK_PROBES + own];
    const float threshold = params.thresholds[q * RANK_THRESHOLDS + own];
    const uint32_t row = params.probes[q * RANK_PROBES + own];
    // Nothing ranks before a maximum score by its row.
    const uint32_t ranked_row = row == NOT_A_ROW ? 0u : row;
    const uint32_t warp = blockIdx.y * WARPS + threadIdx.x / WARP, warps = gridDim.y * WARPS;
    for (uint32_t i = TOGETHER * warp; i < count; i += TOGETHER * warps) {
        const Doubtful two[TOGETHER] = {doubtful[i], doubtful[min(i + 1, count - 1)]};
        const float* rows[TOGETHER];
        double norms[TOGETHER], dots[TOGETHER];
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            rows[j] = table.components + static_cast<size_t>(two[j].row) * table.dim;
            norms[j] = table.norms[two[j].row];
        }
        warp_dots(rows, vector, table.dim, dots);
        // Lanes of the second half take the second row.
        const int which = lane / RANK_THRESHOLDS;
        const Doubtful mine = which == 0 ? two[0] : two[1];
        const double exact = cosine(which == 0 ? dots[0] : dots[1], query.norm, which == 0 ? norms[0] : norms[1]);
        if (which == 1 && i + 1 >= count) continue;
        if (!isnan(score) && is_doubtful(mine.score, threshold, params.error) && ranks_before(exact, mine.row, score, ranked_row)) {
            atomicAdd(params.before + q * RANK_THRESHOLDS + own, 1u);
        }
    }
}

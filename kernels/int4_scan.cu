// Searches the 4-bit table, which has half the bytes of the 8-bit table, for a query that comes
// alone.
//
// `int4_scan` writes the integer dot product of every row (4 bytes per row) and the best row of
// each block. `int4_threshold` scores the best of these rows in float64, which gives a threshold.
// `int4_rescore` scores all rows that may reach the threshold in float64.
#include "bounds.cuh"
#include "finish.cuh"
#include "launch.cuh"
#include "prefetch.cuh"
#include "select.cuh"

constexpr int CANDIDATE_CAPACITY = 2048;  // rows in doubt that a block of the last kernel can hold

// A block sets this bit in the count of candidates if its own candidates do not fit. It is a bit
// and not an addend, because several addends could sum to a valid count. The counts themselves, at
// most 2048 per block, never reach it.
constexpr uint32_t BLOCK_OVERFLOWED = 1u << 31;

// Adds the products of eight components of 4 bits and eight of 8 bits to `sum`.
__device__ __forceinline__ int dot8(uint32_t levels, uint32_t low, uint32_t high, int sum) {
    sum = __dp4a(static_cast<int>(levels & 0x0f0f0f0fu), static_cast<int>(low), sum);
    return __dp4a(static_cast<int>(levels >> 4 & 0x0f0f0f0fu), static_cast<int>(high), sum);
}

// dots [tiles * TILE_ROWS]: the sum of (2n - 15) * z, where n are a row's levels and z the query's
// integers. With SET, only those of the query's set of rows. best [blocks]: each block's best dot product, shifted to be positive, in the upper 32
// bits, and its slot in the lower 32. One lane per row. Dynamic shared memory: the query's bytes,
// [32 * chunks].
template <bool SET>
__device__ __forceinline__ void scan(const Int4ScanParams& params) {
    const int chunks = params.chunks;
    const uint32_t tiles = params.tiles;
    int* const dots = params.dots;
    extern __shared__ uint4 query[];
    __shared__ unsigned long long best_of_warp[4];
    const int lane = threadIdx.x % 32;
    const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    const uint4* const rows = reinterpret_cast<const uint4*>(params.levels);
    // Memory is idle while the query is still being prepared, so prefetch the first rows into the
    // second-level cache: 512 bytes of each chunk, which are four lines. A warp takes 32 rows, a
    // quarter of a tile, at a time; in large tables, the four of a tile one after the other.
    constexpr uint32_t QUARTERS = TILE_ROWS / WARP;
    const uint32_t quarters = tiles * QUARTERS, each = tiles >= warps ? QUARTERS : 1;
    const uint32_t first = warp * each;
    if (first < quarters) {
        const uint4* const there = rows + static_cast<size_t>(first / QUARTERS) * chunks * TILE_ROWS + first % QUARTERS * WARP;
        for (int line = lane; line < 4 * chunks; line += 32) {
            prefetch_line(there + line / 4 * TILE_ROWS + line % 4 * 8);
        }
    }
    wait_for_previous();
    let_next_start();
    const uint4* const query_bytes = reinterpret_cast<const uint4*>(params.pass.bytes);
    for (int i = threadIdx.x; i < 2 * chunks; i += blockDim.x) query[i] = query_bytes[i];
    const int offset = -15 * params.pass.scales[0].sum;
    // Only rows that the query's limit admits may give a threshold.
    const uint32_t within = params.pass.queries.headers[0].tiles_within;
    const uint64_t set = SET ? params.pass.queries.headers[0].set_of_slots : 0;
    __syncthreads();
    unsigned long long own = 0;
    for (uint32_t unit = first; unit < quarters; unit += warps * each) {
#pragma unroll 1
        for (uint32_t quarter = unit; quarter < unit + each; quarter++) {
            const uint32_t tile = quarter / QUARTERS, row = quarter % QUARTERS * WARP + lane;
            bool is_in_set = true;
            if constexpr (SET) {
                is_in_set = members_of_lane(set, tile, row % 8 / 2) >> bit_of_slot(row) & 1;
                if (!__any_sync(ALL_LANES, is_in_set)) continue;
            }
            const uint4* const here = rows + static_cast<size_t>(tile) * chunks * TILE_ROWS;
            int even = 0, odd = 0;
#pragma unroll 5
            for (int c = 0; c < chunks; c++) {
                // Half of the bytes need not be read if a tenth of the rows are in the set.
                const uint4 x = is_in_set ? __ldcs(here + c * TILE_ROWS + row) : make_uint4(0, 0, 0, 0);
                const uint4 low = query[2 * c], high = query[2 * c + 1];
                even = dot8(x.x, low.x, low.y, even);
                odd = dot8(x.y, low.z, low.w, odd);
                even = dot8(x.z, high.x, high.y, even);
                odd = dot8(x.w, high.z, high.w, odd);
            }
            const int dot = 2 * (even + odd) + offset;
            const uint32_t slot = tile * TILE_ROWS + row;
            dots[slot] = dot;
            // |dot| <= 15 * 127 * 4096 < 2^23.
            if (tile < within && is_in_set) own = max(own, static_cast<unsigned long long>(dot + (1 << 23)) << 32 | slot);
        }
    }
    for (int step = 16; step > 0; step /= 2) own = max(own, __shfl_xor_sync(ALL_LANES, own, step));
    if (lane == 0) best_of_warp[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        params.best[blockIdx.x] = max(max(best_of_warp[0], best_of_warp[1]), max(best_of_warp[2], best_of_warp[3]));
    }
}

extern "C" __global__ void int4_scan(const Int4ScanParams params) { scan<false>(params); }
extern "C" __global__ void int4_set_scan(const Int4ScanParams params) { scan<true>(params); }

// The threshold: the k-th best exact score of INT4_THRESHOLD_ROWS rows, which are the best two of
// each warp's share of the blocks' best rows. Grid: one block of 1024 threads, with one warp for
// every 64 blocks of the scan; `blocks` is at most INT4_MAX_BLOCKS.
extern "C" __global__ void int4_threshold(const Int4ThresholdParams params) {
    static_assert(INT4_MAX_BLOCKS == 2 * 1024 && INT4_THRESHOLD_ROWS == 2 * 1024 / WARP, "two keys a thread, two rows a warp");
    const TableView& table = params.pass.table;
    const uint32_t blocks = params.blocks;
    const unsigned long long* const best = params.best;
    __shared__ double scores[INT4_THRESHOLD_ROWS];
    let_next_start();
    wait_for_previous();
    const QueryHeader query = params.pass.queries.headers[0];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    // A small table has few blocks, which are spread over all warps. One without rows leaves 0,
    // which is never a key.
    const uint32_t first = lane * (1024 / WARP) + warp, second = first + 1024;
    unsigned long long keys[2] = {first < blocks ? __ldcg(best + first) : 0, second < blocks ? __ldcg(best + second) : 0};
    uint32_t rows[2];
    bool there[2];
    const float* addresses[2];
    double of_rows[2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
        unsigned long long most = max(keys[0], keys[1]);
#pragma unroll
        for (int step = 16; step > 0; step /= 2) most = max(most, __shfl_xor_sync(ALL_LANES, most, step));
        // Keys contain slots, so no two keys are equal.
        if (keys[0] == most) keys[0] = 0;
        if (keys[1] == most) keys[1] = 0;
        rows[j] = most != 0 ? params.pass.slot_rows[static_cast<uint32_t>(most)] : NOT_A_ROW;
        there[j] = rows[j] != NOT_A_ROW;
        if (!there[j]) rows[j] = 0;
        addresses[j] = components(table, rows[j]);
        of_rows[j] = norm_or_bias(table, rows[j]);
    }
    double dots[2];
    warp_dots(addresses, components(query, table, params.pass.queries.vectors), table.dim, dots);
    if (lane == 0) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const double score = there[j] ? search_score(table, query, dots[j], of_rows[j]) : NO_SCORE;
            scores[2 * warp + j] = there[j] && admits(query, params.pass.queries.excluded, rows[j], score) ? score : NO_SCORE;
        }
    }
    __syncthreads();
    // Finds the k-th best score by counting, for each score, those that rank before it.
    if (threadIdx.x < INT4_THRESHOLD_ROWS) {
        const double own = scores[threadIdx.x];
        const uint32_t before = ranked_before(scores, INT4_THRESHOLD_ROWS, threadIdx.x);
        if (before == query.k - 1) params.pass.floors[0] = fmaxf(__double2float_rd(own), __double2float_rd(query.min_score));
    }
}

// Scores all rows whose upper bounds reach the threshold, with SET those of the query's set; the last
// block ranks them. Dynamic shared memory: the TopKList.
template <bool SET>
__device__ __forceinline__ void rescore(const Int4RescoreParams& params) {
    const uint32_t tiles = params.tiles;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ uint32_t doubtful[CANDIDATE_CAPACITY];
    __shared__ uint32_t doubtful_count;
    if (threadIdx.x == 0) doubtful_count = 0;
    tell_host(params.almost_over);
    wait_for_previous();
    __syncthreads();
    const QueryHeader query = params.pass.queries.headers[0];
    const QueryScale scale = params.pass.scales[0];
    const float floor = __ldcg(params.pass.floors);
    const float unit = scale.step * params.half_step;
    const uint32_t each = (tiles + gridDim.x - 1) / gridDim.x;
    const uint32_t begin = min(tiles, blockIdx.x * each), end = min(tiles, begin + each);
    constexpr uint32_t QUADS = TILE_ROWS / 4;
#pragma unroll 4
    for (uint32_t i = begin * QUADS + threadIdx.x; i < end * QUADS; i += blockDim.x) {
        const uint32_t tile = i / QUADS;
        uint32_t members = 15;
        if constexpr (SET) {
            // The four slots are those of two lanes of a quad.
            const uint32_t shift = i % QUADS / 2 * 2;
            const uint32_t low = members_of_lane(query.set_of_slots, tile, i % 2 * 2) >> shift;
            const uint32_t high = members_of_lane(query.set_of_slots, tile, i % 2 * 2 + 1) >> shift;
            members = (low & 3) | (high & 3) << 2;
            if (members == 0) continue;
        }
        const float bound = error_bound(scale, params.residuals[tile]);
        const int4 four = __ldcg(reinterpret_cast<const int4*>(params.dots) + i);
        const int dot[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            // The dot products of other rows than members mean nothing.
            if ((members >> j & 1) && !(static_cast<float>(dot[j]) * unit + bound < floor)) {
                const uint32_t row = params.pass.slot_rows[i * 4 + j];
                if (row < query.first_rows) {  // NOT_A_ROW is not
                    const uint32_t index = atomicAdd(&doubtful_count, 1u);
                    if (index < CANDIDATE_CAPACITY) doubtful[index] = row;
                }
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && doubtful_count > 0) {
        if (doubtful_count > CANDIDATE_CAPACITY) atomicOr(params.pass.candidate_counts, BLOCK_OVERFLOWED);
        else atomicAdd(params.pass.candidate_counts, doubtful_count);
    }
    score_survivors(params.pass.table, components(query, params.pass.table, params.pass.queries.vectors), query,
                    params.pass.queries.excluded, doubtful,
                    static_cast<int>(min(doubtful_count, static_cast<uint32_t>(CANDIDATE_CAPACITY))), static_cast<double>(floor),
                    params.pass.survivors, params.pass.survivor_counts, params.pass.survivor_capacity);
    if (last_block(params.pass.tickets, gridDim.x)) {
        const uint32_t counted = __ldcg(params.pass.candidate_counts);
        finish_query(*reinterpret_cast<TopKList*>(memory), query, 1, params.pass.survivors, *params.pass.survivor_counts,
                     params.pass.survivor_capacity, counted & ~BLOCK_OVERFLOWED, (counted & BLOCK_OVERFLOWED) == 0,
                     params.stride, params.answers);
    }
}

extern "C" __global__ void int4_rescore(const Int4RescoreParams params) { rescore<false>(params); }
extern "C" __global__ void int4_set_rescore(const Int4RescoreParams params) { rescore<true>(params); }

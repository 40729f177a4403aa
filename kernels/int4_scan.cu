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

// A query alone, and what a lane has of it.
struct Int4Query {
    const uint4* rows;  // the table
    const uint4* bytes;  // in shared memory
    int chunks, offset;

    // The dot product of a row of a tile.
    __device__ __forceinline__ int dot(uint32_t tile, uint32_t row) const {
        const uint4* const here = rows + static_cast<size_t>(tile) * chunks * TILE_ROWS + row;
        int even = 0, odd = 0;
#pragma unroll 5
        for (int c = 0; c < chunks; c++) {
            const uint4 x = __ldcs(here + c * TILE_ROWS);
            const uint4 low = bytes[2 * c], high = bytes[2 * c + 1];
            even = dot8(x.x, low.x, low.y, even);
            odd = dot8(x.y, low.z, low.w, odd);
            even = dot8(x.z, high.x, high.y, even);
            odd = dot8(x.w, high.z, high.w, odd);
        }
        return 2 * (even + odd) + offset;
    }
};

// The units that a warp scans: `each` quarters of a tile, 32 rows each. In large tables they are the
// four of a tile, one after the other.
struct Int4Units {
    static constexpr uint32_t QUARTERS = TILE_ROWS / WARP;
    uint32_t quarters, each, first, step;

    __device__ explicit Int4Units(uint32_t tiles) {
        const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / WARP, warps = gridDim.x * blockDim.x / WARP;
        quarters = tiles * QUARTERS, each = tiles >= warps ? QUARTERS : 1;
        first = warp * each, step = warps * each;
    }
};

// The best dot product so far and its slot, in the order of the dot products. |dot| <= 15 * 127 *
// 4096 < 2^23.
__device__ __forceinline__ unsigned long long dot_and_slot(int dot, uint32_t slot) {
    return static_cast<unsigned long long>(dot + (1 << 23)) << 32 | slot;
}

// Scans the rows of all units. Returns a lane's best row, of those in the first `within` tiles: only
// rows that the query's limit admits may give a threshold.
__device__ __forceinline__ unsigned long long scan_all(const Int4Query& query, const Int4Units& units, uint32_t within, int* dots) {
    const uint32_t lane = threadIdx.x % WARP;
    unsigned long long own = 0;
    for (uint32_t unit = units.first; unit < units.quarters; unit += units.step) {
#pragma unroll 1
        for (uint32_t quarter = unit; quarter < unit + units.each; quarter++) {
            const uint32_t tile = quarter / Int4Units::QUARTERS, row = quarter % Int4Units::QUARTERS * WARP + lane;
            const int dot = query.dot(tile, row);
            const uint32_t slot = tile * TILE_ROWS + row;
            dots[slot] = dot;
            if (tile < within) own = max(own, dot_and_slot(dot, slot));
        }
    }
    return own;
}

// The same for the members of a set alone. A warp lists those of some units, and then each lane has
// one of them: so it waits for memory as often as 32 members take, not as 32 rows.
__device__ __forceinline__ unsigned long long scan_members(const Int4Query& query, const Int4Units& units, uint32_t within, uint64_t set,
                                                           int* dots) {
    constexpr uint32_t TOGETHER = WARP / SET_WORDS;  // units whose words a warp loads at once
    __shared__ uint16_t lists[4][TOGETHER * TILE_ROWS];  // a unit and a row of its tile
    uint16_t* const list = lists[threadIdx.x / WARP];
    const uint32_t lane = threadIdx.x % WARP, before = (1u << lane) - 1;
    unsigned long long own = 0;
    for (uint32_t unit = units.first; unit < units.quarters; unit += TOGETHER * units.step) {
        const uint32_t of_lane = unit + lane / SET_WORDS * units.step;
        const uint32_t word = of_lane < units.quarters ? members_of_lane(set, of_lane / Int4Units::QUARTERS, lane % SET_WORDS) : 0;
        uint32_t count = 0;
        for (uint32_t i = 0; i < TOGETHER && unit + i * units.step < units.quarters; i++) {
            const uint32_t of_row = __shfl_sync(ALL_LANES, word, i * SET_WORDS + lane % 8 / 2);
            const uint32_t begin = (unit + i * units.step) % Int4Units::QUARTERS;
            for (uint32_t quarter = begin; quarter < begin + units.each; quarter++) {
                const uint32_t row = quarter * WARP + lane;
                const bool is_member = of_row >> bit_of_slot(row) & 1;
                const uint32_t members = __ballot_sync(ALL_LANES, is_member);
                if (is_member) list[count + __popc(members & before)] = i * TILE_ROWS + row;
                count += __popc(members);
            }
        }
        __syncwarp();
        for (uint32_t i = lane; i < count; i += WARP) {
            const uint32_t listed = list[i], row = listed % TILE_ROWS;
            const uint32_t tile = (unit + listed / TILE_ROWS * units.step) / Int4Units::QUARTERS;
            const int dot = query.dot(tile, row);
            const uint32_t slot = tile * TILE_ROWS + row;
            dots[slot] = dot;
            if (tile < within) own = max(own, dot_and_slot(dot, slot));
        }
        __syncwarp();
    }
    return own;
}

// dots [tiles * TILE_ROWS]: the sum of (2n - 15) * z, where n are a row's levels and z the query's
// integers. With SET, only those of the query's set of rows. best [blocks]: each block's best dot
// product, shifted to be positive, in the upper 32 bits, and its slot in the lower 32. One lane per
// row. Dynamic shared memory: the query's bytes, [32 * chunks].
template <bool SET>
__device__ __forceinline__ void scan(const Int4ScanParams& params) {
    const int chunks = params.chunks;
    extern __shared__ uint4 query[];
    __shared__ unsigned long long best_of_warp[4];
    const int lane = threadIdx.x % WARP;
    const Int4Units units(params.tiles);
    const uint4* const rows = reinterpret_cast<const uint4*>(params.levels);
    // Memory is idle while the query is still being prepared, so prefetch the first rows into the
    // second-level cache: 512 bytes of each chunk, which are four lines. Of a set, they may be in
    // vain.
    if (!SET && units.first < units.quarters) {
        const uint32_t tile = units.first / Int4Units::QUARTERS, quarter = units.first % Int4Units::QUARTERS;
        const uint4* const there = rows + static_cast<size_t>(tile) * chunks * TILE_ROWS + quarter * WARP;
        for (int line = lane; line < 4 * chunks; line += WARP) {
            prefetch_line(there + line / 4 * TILE_ROWS + line % 4 * 8);
        }
    }
    wait_for_previous();
    let_next_start();
    const uint4* const query_bytes = reinterpret_cast<const uint4*>(params.pass.bytes);
    for (int i = threadIdx.x; i < 2 * chunks; i += blockDim.x) query[i] = query_bytes[i];
    const Int4Query own_query = {rows, query, chunks, -15 * params.pass.scales[0].sum};
    const uint32_t within = params.pass.queries.headers[0].tiles_within;
    __syncthreads();
    unsigned long long own;
    if constexpr (SET) own = scan_members(own_query, units, within, params.pass.queries.headers[0].set_of_slots, params.dots);
    else own = scan_all(own_query, units, within, params.dots);
    for (int step = 16; step > 0; step /= 2) own = max(own, __shfl_xor_sync(ALL_LANES, own, step));
    if (lane == 0) best_of_warp[threadIdx.x / WARP] = own;
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

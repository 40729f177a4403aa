// Scans of the float32 table. They answer every query on every table. `exact_scan` scores every row
// by the contract's float64 formula: it is the device's own oracle. `float32_scan` first computes a
// float32 score, which rules most rows out; it takes tables of cosines only. They are the last
// fallback, and the only path for small tables and very many hits.
#include <cuda/std/type_traits>

#include "finish.cuh"
#include "float32_bound.cuh"
#include "select.cuh"

constexpr int ROWS_PER_ROUND = 256;  // rows between two barriers; no more than LIST_ROUND
constexpr int ROWS_AT_FIRST = 64;    // few, so that there soon is a floor
constexpr int TOGETHER = 2;          // rows that a warp loads at once
constexpr int MEMBERS_TOGETHER = 4;  // of a set: they are far from each other

// Maps float32 to unsigned integers in the same order; none becomes 0.
__device__ __forceinline__ uint32_t ordered(float value) {
    const uint32_t bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float from_ordered(uint32_t key) {
    if (key == 0) return -INFINITY;
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// Scores some rows for one query, and adds those that may be hits to the list. `found` of them are
// there. Called by all lanes of a warp.
template <bool FLOAT32_FIRST, int COUNT>
__device__ __forceinline__ void score_together(const ExactScanParams& params, const QueryHeader& query, const float* q, TopKList& list,
                                               const uint32_t (&rows)[COUNT], uint32_t found, float floor) {
    using First = cuda::std::conditional_t<FLOAT32_FIRST, float, double>;
    const TableView& table = params.table;
    const float error = float32_error(table.dim), query_norm = static_cast<float>(query.norm);
    const float* x[COUNT];
    double own[COUNT];  // norms, or biases
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        x[i] = components(table, rows[i]);
        own[i] = norm_or_bias(table, rows[i]);
    }
    First dots[COUNT];
    warp_dots(x, q, table.dim, dots);
    // All lanes of the warp take the same branches here.
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        if (i >= found || !has_score(table, own[i])) continue;
        double dot;
        if constexpr (FLOAT32_FIRST) {
            if (!may_reach(dots[i], query_norm, own[i], error, floor)) continue;
            dot = warp_dot(x[i], q, table.dim);
        } else {
            dot = dots[i];
        }
        const double score = search_score(table, query, dot, own[i]);
        if (threadIdx.x % WARP == 0 && admits(query, params.queries.excluded, rows[i], score)) list.append(score, rows[i]);
    }
}

// The floor of a query that its blocks share. Other blocks raise it meanwhile, but all lanes of a
// warp must use the same value.
template <bool FLOAT32_FIRST>
__device__ __forceinline__ float shared_floor(const ExactScanParams& params, const QueryHeader& query) {
    const uint32_t floor = FLOAT32_FIRST ? __shfl_sync(ALL_LANES, __ldcg(params.floors + blockIdx.x), 0) : 0u;
    return fmaxf(__double2float_rd(query.min_score), from_ordered(floor));
}

// Makes room in the list between two rounds, and raises the floor. Called by all threads.
template <bool FLOAT32_FIRST>
__device__ __forceinline__ void end_round(const ExactScanParams& params, TopKList& list) {
    if (!FLOAT32_FIRST) list.make_room();
    else if (list.cut_beyond(2 * list.k + 32) && threadIdx.x == 0) {
        atomicMax(params.floors + blockIdx.x, ordered(__double2float_rd(list.worst_score)));
    }
}

// Writes the best rows of a part. Called by all threads.
__device__ __forceinline__ void finish_part(const ExactScanParams& params, TopKList& list) {
    const size_t part = static_cast<size_t>(blockIdx.x) * gridDim.y + blockIdx.y;
    __syncthreads();
    if (list.count > list.k) list.sort_and_cut();
    for (int i = threadIdx.x; i < list.count; i += blockDim.x) {
        params.part_hits[part * params.stride + i] = {list.score[i], list.row[i], 0};
    }
    if (threadIdx.x == 0) params.part_counts[part] = list.count;
}

// Finds the best k rows of one part of the table for one query. With FLOAT32_FIRST, the blocks of a
// query share a floor: the highest of the k-th best scores that each block has found in its own
// part. It is a lower bound of the k-th best score of all rows.
template <bool FLOAT32_FIRST>
__device__ __forceinline__ void scan_part(const ExactScanParams& params) {
    extern __shared__ __align__(16) unsigned char memory[];
    TopKList& list = *reinterpret_cast<TopKList*>(memory);
    const QueryHeader query = params.queries.headers[blockIdx.x];
    const TableView& table = params.table;
    list.clear(static_cast<int>(query.k));
    const uint32_t limit = query.norm > 0.0 ? min(table.rows, query.first_rows) : 0u;
    const uint32_t each = (limit + gridDim.y - 1) / gridDim.y;
    const uint32_t begin = min(limit, blockIdx.y * each), end = min(limit, begin + each);
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const float* q = limit > 0 ? components(query, table, params.queries.vectors) : nullptr;
    uint32_t size = FLOAT32_FIRST ? ROWS_AT_FIRST : ROWS_PER_ROUND;
    for (uint32_t round = begin; round < end;) {
        const uint32_t round_end = min(end, round + size);
        const float floor = shared_floor<FLOAT32_FIRST>(params, query);
        for (uint32_t row = round + TOGETHER * warp; row < round_end; row += TOGETHER * warps) {
            uint32_t rows[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) rows[i] = min(row + i, round_end - 1);
            score_together<FLOAT32_FIRST>(params, query, q, list, rows, round_end - row, floor);
        }
        round = round_end;
        size = min(2 * size, static_cast<uint32_t>(ROWS_PER_ROUND));
        end_round<FLOAT32_FIRST>(params, list);
    }
    finish_part(params, list);
}

// The same for a query with a set of rows: only its members are read. Warps take the words of the
// set in turns, so that rows next to each other are those of many warps.
template <bool FLOAT32_FIRST>
__device__ __forceinline__ void scan_members(const ExactScanParams& params) {
    constexpr int MEMBERS = ROWS_PER_ROUND / 8;  // of a warp in a round; a block has 8 warps
    extern __shared__ __align__(16) unsigned char memory[];
    TopKList& list = *reinterpret_cast<TopKList*>(memory);
    const QueryHeader query = params.queries.headers[blockIdx.x];
    const TableView& table = params.table;
    list.clear(static_cast<int>(query.k));
    const uint32_t limit = query.norm > 0.0 ? min(table.rows, query.first_rows) : 0u;
    const uint32_t words = (limit + 31) / 32;
    const uint32_t* const set = reinterpret_cast<const uint32_t*>(query.set);
    const uint32_t lane = threadIdx.x % WARP;
    const uint32_t warps = gridDim.y * (blockDim.x / WARP);
    const float* q = limit > 0 ? components(query, table, params.queries.vectors) : nullptr;
    // Of WARP words of this warp, each lane has one: its members that are left, and its first row.
    uint32_t next = blockIdx.y * (blockDim.x / WARP) + threadIdx.x / WARP, left = 0, first_row = 0;
    int most = FLOAT32_FIRST ? MEMBERS / 4 : MEMBERS;
    for (bool is_over = false; !is_over;) {
        const float floor = shared_floor<FLOAT32_FIRST>(params, query);
        for (int taken = 0; taken < most;) {
            uint32_t lanes = __ballot_sync(ALL_LANES, left != 0);
            if (lanes == 0) {
                if (next >= words) {
                    is_over = true;
                    break;
                }
                const uint32_t word = next + lane * warps;
                left = word < words ? set[word] : 0;
                first_row = word * 32;
                next += WARP * warps;
                continue;
            }
            uint32_t rows[MEMBERS_TOGETHER], found = 0;
#pragma unroll
            for (int i = 0; i < MEMBERS_TOGETHER; i++) {
                lanes = __ballot_sync(ALL_LANES, left != 0);
                if (lanes == 0) {
                    rows[i] = rows[0];
                    continue;
                }
                const int leader = __ffs(lanes) - 1;
                rows[i] = __shfl_sync(ALL_LANES, first_row + __ffs(left) - 1, leader);
                if (static_cast<int>(lane) == leader) left &= left - 1;
                found++;
            }
            // The last word may have rows beyond the limit, which the filter does not admit.
            score_together<FLOAT32_FIRST>(params, query, q, list, rows, found, floor);
            taken += MEMBERS_TOGETHER;
        }
        most = MEMBERS;
        is_over = __syncthreads_and(is_over && !__any_sync(ALL_LANES, left != 0));
        end_round<FLOAT32_FIRST>(params, list);
    }
    finish_part(params, list);
}

// Grid: (batch, parts). Dynamic shared memory: the TopKList.
extern "C" __global__ void exact_scan(const ExactScanParams params) { scan_part<false>(params); }

// Grid and shared memory as for exact_scan.
extern "C" __global__ void float32_scan(const ExactScanParams params) { scan_part<true>(params); }

// For queries that all have sets. Grid and shared memory as for exact_scan.
extern "C" __global__ void exact_set_scan(const ExactScanParams params) { scan_members<false>(params); }

// Grid and shared memory as for exact_scan.
extern "C" __global__ void float32_set_scan(const ExactScanParams params) { scan_members<true>(params); }

// Merges the best rows of the parts into each query's answer. Grid: (batch). Dynamic shared memory:
// the TopKList.
extern "C" __global__ void merge_parts(const MergePartsParams params) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ SelectSpace space;
    TopKList& list = *reinterpret_cast<TopKList*>(memory);
    const QueryHeader query = params.headers[blockIdx.x];
    const size_t first = static_cast<size_t>(blockIdx.x) * params.parts;
    const ScoredRow* const hits = params.part_hits + first * params.stride;
    const int all = params.parts * params.stride;
    const auto is_there = [&](int i) { return i % params.stride < static_cast<int>(params.part_counts[first + i / params.stride]); };
    list.clear(static_cast<int>(query.k));
    // Of many, few reach the k-th best: only those are sorted.
    const float floor = all <= LIST_ROUND ? NO_THRESHOLD : select_bound(space, all, query.k, [&](int i) {
        return is_there(i) ? __double2float_rd(hits[i].score) : -INFINITY;
    });
    for (int round = 0; round < all; round += LIST_ROUND) {
        for (int i = round + threadIdx.x; i < min(all, round + LIST_ROUND); i += blockDim.x) {
            if (is_there(i) && hits[i].score >= floor) list.append(hits[i].score, hits[i].row);
        }
        list.make_room();
    }
    finish_list(list, 1, query, {0, ANSWERED, 0, 0}, params.stride, params.answers + static_cast<size_t>(blockIdx.x) * (1 + params.stride));
}

// Scans of the float32 table. They answer every query on every table. `exact_scan` scores every row
// by the contract's float64 formula: it is the device's own oracle. `float32_scan` first computes a
// float32 score, which rules most rows out; it takes tables of cosines only. They are the last
// fallback, and the only path for small tables and very many hits.
#include <cuda/std/type_traits>

#include "float32_bound.cuh"
#include "query.cuh"
#include "top_k_list.cuh"

constexpr int ROWS_PER_ROUND = 256;  // rows between two barriers; no more than LIST_ROUND
constexpr int ROWS_AT_FIRST = 64;    // few, so that there soon is a floor
constexpr int TOGETHER = 2;          // rows that a warp loads at once

// Maps float32 to unsigned integers in the same order; none becomes 0.
__device__ __forceinline__ uint32_t ordered(float value) {
    const uint32_t bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float from_ordered(uint32_t key) {
    if (key == 0) return -INFINITY;
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// Finds the best k rows of one part of the table for one query. With FLOAT32_FIRST, the blocks of a
// query share a floor: the highest of the k-th best scores that each block has found in its own
// part. It is a lower bound of the k-th best score of all rows.
template <bool FLOAT32_FIRST>
__device__ __forceinline__ void scan_part(const ExactScanParams& params) {
    using First = cuda::std::conditional_t<FLOAT32_FIRST, float, double>;
    extern __shared__ __align__(16) unsigned char memory[];
    TopKList& list = *reinterpret_cast<TopKList*>(memory);
    const QueryHeader query = params.queries.headers[blockIdx.x];
    const TableView& table = params.table;
    const size_t part = static_cast<size_t>(blockIdx.x) * gridDim.y + blockIdx.y;
    const int k = static_cast<int>(query.k);
    list.clear(k);
    const uint32_t limit = query.norm > 0.0 ? min(table.rows, query.first_rows) : 0u;
    const uint32_t each = (limit + gridDim.y - 1) / gridDim.y;
    const uint32_t begin = min(limit, blockIdx.y * each), end = min(limit, begin + each);
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const float* q = limit > 0 ? components(query, table, params.queries.vectors) : nullptr;
    const float error = float32_error(table.dim), query_norm = static_cast<float>(query.norm);
    const float min_score = __double2float_rd(query.min_score);
    uint32_t size = FLOAT32_FIRST ? ROWS_AT_FIRST : ROWS_PER_ROUND;
    for (uint32_t round = begin; round < end;) {
        const uint32_t round_end = min(end, round + size);
        // Other blocks raise the floor meanwhile, but all lanes of a warp must use the same value.
        const uint32_t shared_floor = FLOAT32_FIRST ? __shfl_sync(ALL_LANES, __ldcg(params.floors + blockIdx.x), 0) : 0u;
        const float floor = fmaxf(min_score, from_ordered(shared_floor));
        for (uint32_t row = round + TOGETHER * warp; row < round_end; row += TOGETHER * warps) {
            const float* x[TOGETHER];
            double own[TOGETHER];  // norms, or biases
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                const uint32_t within = min(row + i, round_end - 1);
                x[i] = components(table, within);
                own[i] = norm_or_bias(table, within);
            }
            First dots[TOGETHER];
            warp_dots(x, q, table.dim, dots);
            // All lanes of the warp take the same branches here.
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                if (row + i >= round_end || !has_score(table, own[i])) continue;
                double dot;
                if constexpr (FLOAT32_FIRST) {
                    if (!may_reach(dots[i], query_norm, own[i], error, floor)) continue;
                    dot = warp_dot(x[i], q, table.dim);
                } else {
                    dot = dots[i];
                }
                const double score = search_score(table, query, dot, own[i]);
                if (threadIdx.x % WARP == 0 && admits(query, params.queries.excluded, row + i, score)) list.append(score, row + i);
            }
        }
        round = round_end;
        size = min(2 * size, static_cast<uint32_t>(ROWS_PER_ROUND));
        if (!FLOAT32_FIRST) list.make_room();
        else if (list.cut_beyond(2 * k + 32) && threadIdx.x == 0) {
            atomicMax(params.floors + blockIdx.x, ordered(__double2float_rd(list.worst_score)));
        }
    }
    list.sort_and_cut();
    for (int i = threadIdx.x; i < list.count; i += blockDim.x) {
        params.part_hits[part * params.stride + i] = {list.score[i], list.row[i], 0};
    }
    if (threadIdx.x == 0) params.part_counts[part] = list.count;
}

// Grid: (batch, parts). Dynamic shared memory: the TopKList.
extern "C" __global__ void exact_scan(const ExactScanParams params) { scan_part<false>(params); }

// Grid and shared memory as for exact_scan.
extern "C" __global__ void float32_scan(const ExactScanParams params) { scan_part<true>(params); }

// Merges the best rows of the parts into each query's answer. Grid: (batch). Dynamic shared memory:
// the TopKList.
extern "C" __global__ void merge_parts(const MergePartsParams params) {
    extern __shared__ __align__(16) unsigned char memory[];
    TopKList& list = *reinterpret_cast<TopKList*>(memory);
    const size_t first = static_cast<size_t>(blockIdx.x) * params.parts;
    list.clear(static_cast<int>(params.headers[blockIdx.x].k));
    const size_t all = static_cast<size_t>(params.parts) * params.stride;
    for (size_t round = 0; round < all; round += LIST_ROUND) {
        for (size_t i = round + threadIdx.x; i < min(all, round + LIST_ROUND); i += blockDim.x) {
            if (i % params.stride < params.part_counts[first + i / params.stride]) {
                const ScoredRow& hit = params.part_hits[first * params.stride + i];
                list.append(hit.score, hit.row);
            }
        }
        list.make_room();
    }
    list.sort_and_cut();
    Answer* const answer = params.answers + static_cast<size_t>(blockIdx.x) * (1 + params.stride);
    for (int i = threadIdx.x; i < list.count; i += blockDim.x) answer[1 + i].hit = {list.score[i], list.row[i], 0};
    if (threadIdx.x == 0) answer->result = {static_cast<uint32_t>(list.count), ANSWERED, 0, 0};
}

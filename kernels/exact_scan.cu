// Every row scored by the contract's float64 formula: the device's own oracle; and the same with a look at
// the float32 score first, which spares most rows the float64 one: the last fallback, and the only path
// for short vocabulary prefixes. Neither can fail, whatever the table.
//
// Shapes: table [rows, dim] float32; norms [rows] float64; queries [batch]; hits [batch, parts, stride];
// floors [batch], zero before a pass.
#include <cuda/std/type_traits>

#include "float32_bound.cuh"
#include "query.cuh"
#include "top_k_list.cuh"

constexpr int ROWS_PER_ROUND = 256;  // rows between two barriers; no more than LIST_ROUND
constexpr int ROWS_AT_FIRST = 64;    // few, so that there soon is a floor
constexpr int TOGETHER = 2;          // rows that a warp loads at once

// float32 in the order of unsigned integers; 0 is below them all.
__device__ __forceinline__ uint32_t ordered(float value) {
    const uint32_t bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float from_ordered(uint32_t key) {
    if (key == 0) return -INFINITY;
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// The best k rows of one part of the table for one query. With FLOAT32_FIRST the blocks of a query share
// a floor: the best k-th score that any of them has found among its own rows, and so a lower bound of the
// k-th best of all.
template <bool FLOAT32_FIRST>
__device__ __forceinline__ void scan_part(const float* __restrict__ table, const double* __restrict__ norms,
                                          const float* __restrict__ vectors, const QueryHeader* __restrict__ queries,
                                          const uint32_t* __restrict__ excluded, uint32_t rows, int dim, int stride,
                                          uint32_t* floors, Hit* __restrict__ part_hits,
                                          uint32_t* __restrict__ part_counts) {
    using First = cuda::std::conditional_t<FLOAT32_FIRST, float, double>;
    extern __shared__ __align__(16) unsigned char memory[];
    TopKList& list = *reinterpret_cast<TopKList*>(memory);
    const QueryHeader query = queries[blockIdx.x];
    const size_t part = static_cast<size_t>(blockIdx.x) * gridDim.y + blockIdx.y;
    const int k = static_cast<int>(query.k);
    list.clear(k);
    const uint32_t limit = query.norm > 0.0 ? min(rows, query.first_rows) : 0u;
    const uint32_t each = (limit + gridDim.y - 1) / gridDim.y;
    const uint32_t begin = min(limit, blockIdx.y * each), end = min(limit, begin + each);
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const float* q = limit > 0 ? components(query, table, vectors, dim) : nullptr;
    const float error = float32_error(dim), query_norm = static_cast<float>(query.norm);
    const float min_score = __double2float_rd(query.min_score);
    uint32_t size = FLOAT32_FIRST ? ROWS_AT_FIRST : ROWS_PER_ROUND;
    for (uint32_t round = begin; round < end;) {
        const uint32_t round_end = min(end, round + size);
        // Other blocks raise the floor meanwhile; a warp must go by one.
        const uint32_t shared_floor = FLOAT32_FIRST ? __shfl_sync(ALL_LANES, __ldcg(floors + blockIdx.x), 0) : 0u;
        const float floor = fmaxf(min_score, from_ordered(shared_floor));
        for (uint32_t row = round + TOGETHER * warp; row < round_end; row += TOGETHER * warps) {
            const float* x[TOGETHER];
            double norm[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                const uint32_t within = min(row + i, round_end - 1);
                x[i] = table + static_cast<size_t>(within) * dim;
                norm[i] = norms[within];
            }
            First dots[TOGETHER];
            warp_dots(x, q, dim, dots);
            // What is decided here is the same for the whole warp.
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                if (row + i >= round_end || norm[i] == 0.0) continue;
                double dot;
                if constexpr (FLOAT32_FIRST) {
                    if (!may_reach(dots[i], query_norm, norm[i], error, floor)) continue;
                    dot = warp_dot(x[i], q, dim);
                } else {
                    dot = dots[i];
                }
                const double score = cosine(dot, query.norm, norm[i]);
                if (threadIdx.x % WARP == 0 && admits(query, excluded, row + i, score)) list.append(score, row + i);
            }
        }
        round = round_end;
        size = min(2 * size, static_cast<uint32_t>(ROWS_PER_ROUND));
        if (!FLOAT32_FIRST) list.make_room();
        else if (list.cut_beyond(2 * k + 32) && threadIdx.x == 0) {
            atomicMax(floors + blockIdx.x, ordered(__double2float_rd(list.worst_score)));
        }
    }
    list.sort_and_cut();
    for (int i = threadIdx.x; i < list.count; i += blockDim.x) part_hits[part * stride + i] = {list.score[i], list.row[i], 0};
    if (threadIdx.x == 0) part_counts[part] = list.count;
}

// Grid: (batch, parts); blocks of 256 threads. Dynamic shared memory: the TopKList.
extern "C" __global__ void __launch_bounds__(256)
exact_scan(const float* __restrict__ table, const double* __restrict__ norms, const float* __restrict__ vectors,
           const QueryHeader* __restrict__ queries, const uint32_t* __restrict__ excluded, uint32_t rows, int dim,
           int stride, uint32_t* floors, Hit* __restrict__ part_hits, uint32_t* __restrict__ part_counts) {
    scan_part<false>(table, norms, vectors, queries, excluded, rows, dim, stride, floors, part_hits, part_counts);
}

// As exact_scan.
extern "C" __global__ void __launch_bounds__(256)
float32_scan(const float* __restrict__ table, const double* __restrict__ norms, const float* __restrict__ vectors,
             const QueryHeader* __restrict__ queries, const uint32_t* __restrict__ excluded, uint32_t rows, int dim,
             int stride, uint32_t* floors, Hit* __restrict__ part_hits, uint32_t* __restrict__ part_counts) {
    scan_part<true>(table, norms, vectors, queries, excluded, rows, dim, stride, floors, part_hits, part_counts);
}

// Merges the parts' best into each query's best. Grid: (batch); blocks of 256 threads.
extern "C" __global__ void __launch_bounds__(256)
merge_parts(const QueryHeader* __restrict__ queries, const Hit* __restrict__ part_hits,
            const uint32_t* __restrict__ part_counts, int parts, int stride, Answer* __restrict__ answers) {
    extern __shared__ __align__(16) unsigned char memory[];
    TopKList& list = *reinterpret_cast<TopKList*>(memory);
    const size_t first = static_cast<size_t>(blockIdx.x) * parts;
    list.clear(static_cast<int>(queries[blockIdx.x].k));
    const size_t all = static_cast<size_t>(parts) * stride;
    for (size_t round = 0; round < all; round += LIST_ROUND) {
        for (size_t i = round + threadIdx.x; i < min(all, round + LIST_ROUND); i += blockDim.x) {
            if (i % stride < part_counts[first + i / stride]) {
                const Hit hit = part_hits[first * stride + i];
                list.append(hit.score, hit.row);
            }
        }
        list.make_room();
    }
    list.sort_and_cut();
    Answer* const answer = answers + static_cast<size_t>(blockIdx.x) * (1 + stride);
    for (int i = threadIdx.x; i < list.count; i += blockDim.x) answer[1 + i].hit = {list.score[i], list.row[i], 0};
    if (threadIdx.x == 0) answer->result = {static_cast<uint32_t>(list.count), ANSWERED, 0, 0};
}

// The scores of rows [first, first + count) for one query, -2 for rows of norm zero: for a k that no
// list on the device holds; the host ranks. A warp a row.
extern "C" __global__ void __launch_bounds__(256)
score_rows(const float* __restrict__ table, const double* __restrict__ norms, const float* __restrict__ vectors,
           const QueryHeader* __restrict__ queries, uint32_t first, uint32_t count, int dim, double* __restrict__ scores) {
    const uint32_t i = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    if (i >= count) return;
    const QueryHeader query = queries[0];
    const uint32_t row = first + i;
    const double dot = warp_dot(table + static_cast<size_t>(row) * dim, components(query, table, vectors, dim), dim);
    if (threadIdx.x % WARP == 0) scores[i] = norms[row] == 0.0 ? -2.0 : cosine(dot, query.norm, norms[row]);
}

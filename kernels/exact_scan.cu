// Every row scored by the contract's float64 formula: the last fallback, the only path for short
// vocabulary prefixes, and the device's own oracle. Nothing here needs a certificate.
//
// Shapes: table [rows, dim] float32; norms [rows] float64; queries [batch]; hits [batch, parts, stride].
#include "query.cuh"
#include "top_k_list.cuh"

constexpr int ROWS_PER_ROUND = 256;  // rows between two barriers; no more than LIST_ROUND

// The best k rows of one part of the table for one query. Grid: (batch, parts); blocks of 256 threads.
// Dynamic shared memory: the TopKList.
extern "C" __global__ void __launch_bounds__(256)
exact_scan(const float* __restrict__ table, const double* __restrict__ norms, const float* __restrict__ vectors,
           const QueryHeader* __restrict__ queries, const uint32_t* __restrict__ excluded, uint32_t rows, int dim,
           int stride, Hit* __restrict__ part_hits, uint32_t* __restrict__ part_counts) {
    extern __shared__ __align__(16) unsigned char memory[];
    TopKList& list = *reinterpret_cast<TopKList*>(memory);
    const QueryHeader query = queries[blockIdx.x];
    const size_t part = static_cast<size_t>(blockIdx.x) * gridDim.y + blockIdx.y;
    list.clear(static_cast<int>(query.k));
    const uint32_t limit = query.norm > 0.0 ? min(rows, query.first_rows) : 0u;
    const uint32_t each = (limit + gridDim.y - 1) / gridDim.y;
    const uint32_t begin = min(limit, blockIdx.y * each), end = min(limit, begin + each);
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const float* q = limit > 0 ? components(query, table, vectors, dim) : nullptr;
    for (uint32_t round = begin; round < end; round += ROWS_PER_ROUND) {
        const uint32_t round_end = min(end, round + ROWS_PER_ROUND);
        for (uint32_t row = round + warp; row < round_end; row += warps) {
            const double norm = norms[row];
            if (norm == 0.0) continue;  // the same for the whole warp
            const double score = cosine(warp_dot(table + static_cast<size_t>(row) * dim, q, dim), query.norm, norm);
            if (threadIdx.x % WARP == 0 && admits(query, excluded, row, score)) list.append(score, row);
        }
        list.make_room();
    }
    list.sort_and_cut();
    for (int i = threadIdx.x; i < list.count; i += blockDim.x) part_hits[part * stride + i] = {list.score[i], list.row[i], 0};
    if (threadIdx.x == 0) part_counts[part] = list.count;
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
    const uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    if (i >= count) return;
    const QueryHeader query = queries[0];
    const uint32_t row = first + i;
    const double dot = warp_dot(table + static_cast<size_t>(row) * dim, components(query, table, vectors, dim), dim);
    if (threadIdx.x % WARP == 0) scores[i] = norms[row] == 0.0 ? -2.0 : cosine(dot, query.norm, norms[row]);
}

// Scores all candidates of queries for every row from a minimum score on.
#pragma once
#include "bounds.cuh"
#include "finish.cuh"

// Gives the rows of a part of query q's candidates that reach its minimum score to
// `list(hits, count)`, a few at a time, with their true scores. The query has no more candidates
// than there is room for. Called by all threads of a block of up to 256; blockIdx.y is the part.
// `list` is called by all threads, between barriers.
template <class List>
__device__ __forceinline__ void score_candidates(const PassView& all, int q, List list) {
    constexpr int CAPACITY = 256;  // rows in shared memory between two rounds of scoring
    __shared__ uint32_t doubtful[CAPACITY];
    __shared__ ScoredRow hits[CAPACITY];
    __shared__ int doubtful_count, hit_count;
    const TableView& table = all.table;
    const QueriesView& queries = all.queries;
    const QueryHeader query = queries.headers[q];
    if (query.norm == 0.0) return;
    const uint32_t found = all.candidate_counts[counter(q)];
    const QueryScale scale = all.scales[q];
    const Candidate* const mine = all.candidates + static_cast<size_t>(q) * all.capacity;
    const float floor = all.floors[q];
    const float* const vector = components(query, table, queries.vectors);
    const uint32_t each = (found + gridDim.y - 1) / gridDim.y;
    const uint32_t begin = min(found, blockIdx.y * each), end = min(found, begin + each);
    if (threadIdx.x == 0) doubtful_count = hit_count = 0;
    __syncthreads();
    for (uint32_t round = begin; round < end; round += blockDim.x) {
        const uint32_t i = round + threadIdx.x;
        if (i < end) {
            const Candidate candidate = mine[i];
            const float error = error_bound(scale, all.tile_scales[candidate.slot / TILE_ROWS].residual);
            const uint32_t row = all.slot_rows[candidate.slot];
            const bool in_doubt = !(candidate.score + error < floor) && candidate.score - error <= query.max_score &&
                                  row < query.first_rows;
            if (in_doubt) doubtful[atomicAdd(&doubtful_count, 1)] = row;
        }
        __syncthreads();
        const int count = doubtful_count;
        if (round + blockDim.x >= end || count > CAPACITY - static_cast<int>(blockDim.x)) {
            score_rows(table, vector, query, queries.excluded, doubtful, count, [&](double score, uint32_t row) {
                // Exact: the factor is a power of two.
                hits[atomicAdd(&hit_count, 1)] = {__ddiv_rn(score, query.factor), row, 0};
            });
            __syncthreads();
            list(hits, hit_count);
            __syncthreads();
            if (threadIdx.x == 0) doubtful_count = hit_count = 0;
        }
        __syncthreads();
    }
}

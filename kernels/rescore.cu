// Scores the candidates that are still in doubt by the contract's formula; the best k of them are the answer.
#include "bounds.cuh"
#include "finish.cuh"
#include "launch.cuh"
#include "select.cuh"

constexpr int CANDIDATE_CAPACITY = 1024;  // rows in shared memory between two rounds of scoring
static_assert(sizeof(SelectSpace) <= LIST_BYTES, "both use the same dynamic shared memory");

// Grid: (batch, parts). The blocks of a query divide its candidates among themselves; the last to finish
// ranks them. Dynamic shared memory: LIST_BYTES, first for the SelectSpace, then for the TopKList.
extern "C" __global__ void rescore(const RescoreParams params) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ uint32_t doubtful[CANDIDATE_CAPACITY];
    __shared__ int doubtful_count;
    const int q = blockIdx.x;
    wait_for_previous();
    const QueryHeader query = params.queries.headers[q];
    if (query.norm == 0.0) return;
    const uint32_t found = params.candidate_counts[counter(q)];
    const bool certified = found <= params.capacity;
    const QueryScale scale = params.scales[q];
    const Candidate* const mine = params.candidates + static_cast<size_t>(q) * params.capacity;
    ScoredRow* const survivors = params.survivors + static_cast<size_t>(q) * params.survivor_capacity;
    if (certified) {
        const float floor = fmaxf(params.floors[q],
            select_bound(*reinterpret_cast<SelectSpace*>(memory), found, query.k + query.excluded_count, [&](int i) {
                return mine[i].score - error_bound(scale, params.tile_scales[mine[i].slot / TILE_ROWS].residual);
            }));
        const float* const vector = components(query, params.table, params.queries.vectors);
        const uint32_t each = (found + gridDim.y - 1) / gridDim.y;
        const uint32_t begin = min(found, blockIdx.y * each), end = min(found, begin + each);
        if (threadIdx.x == 0) doubtful_count = 0;
        __syncthreads();
        for (uint32_t round = begin; round < end; round += blockDim.x) {
            const uint32_t i = round + threadIdx.x;
            if (i < end) {
                const Candidate candidate = mine[i];
                const float bound = error_bound(scale, params.tile_scales[candidate.slot / TILE_ROWS].residual);
                const uint32_t row = params.slot_rows[candidate.slot];
                if (!(candidate.score + bound < floor) && row != NOT_A_ROW) doubtful[atomicAdd(&doubtful_count, 1)] = row;
            }
            __syncthreads();
            const bool last = round + blockDim.x >= end;
            if (last || doubtful_count > CANDIDATE_CAPACITY - static_cast<int>(blockDim.x)) {
                score_survivors(params.table, vector, query, params.queries.excluded, doubtful, doubtful_count, NO_SCORE,
                                survivors, params.survivor_counts + counter(q), params.survivor_capacity);
                __syncthreads();
                if (threadIdx.x == 0) doubtful_count = 0;
            }
            __syncthreads();
        }
    }
    if (last_block(params.tickets + counter(q), gridDim.y)) {
        finish_query(*reinterpret_cast<TopKList*>(memory), query, survivors, params.survivor_counts[counter(q)],
                     params.survivor_capacity, found, certified, params.stride,
                     params.answers + static_cast<size_t>(q) * (1 + params.stride));
    }
}

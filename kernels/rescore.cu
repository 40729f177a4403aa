// Scores the candidates that are still in doubt by the contract's formula; the best k of them are the answer.
#include "bounds.cuh"
#include "finish.cuh"
#include "formula.cuh"
#include "launch.cuh"
#include "select.cuh"

constexpr int CANDIDATE_CAPACITY = 1024;  // rows in shared memory between two rounds of scoring
static_assert(sizeof(SelectSpace) <= LIST_BYTES, "both use the same dynamic shared memory");

// Whether a candidate of column `c` is scored for one of the formula's columns before it, too. One warp.
__device__ __forceinline__ bool found_before(const RescoreParams& params, uint32_t c, uint32_t slot) {
    bool found = false;
    const float residual = params.tile_scales[slot / TILE_ROWS].residual;
    for (uint32_t before = 0; before < c; before++) {
        const int q = blockIdx.x + before;
        const Candidate* const candidates = params.candidates + static_cast<size_t>(q) * params.capacity;
        const uint32_t count = params.candidate_counts[counter(q)];
        // What the last floor rules out there is not scored there.
        const float least = params.floors[q], bound = error_bound(params.scales[q], residual);
        for (uint32_t i = threadIdx.x % WARP; i < count; i += WARP) {
            found = found || (candidates[i].slot == slot && !(candidates[i].score + bound < least));
        }
    }
    return __any_sync(ALL_LANES, found);
}

// The same for a formula, by the blocks of its first column: a warp for each candidate of any column.
__device__ __forceinline__ void rescore_formula(const RescoreParams& params, const QueryHeader& query, TopKList& list) {
    const Formula formula = params.formulas[query.formula];
    const int q = blockIdx.x;
    ScoredRow* const survivors = params.survivors + static_cast<size_t>(q) * params.survivor_capacity;
    uint32_t found = 0;
    bool certified = true;
    for (uint32_t c = 0; c < formula.columns; c++) {
        const uint32_t count = params.candidate_counts[counter(q + c)];
        certified = certified && count <= params.capacity;
        found += count;
    }
    if (certified) {
        const uint32_t warps = blockDim.x / WARP;
        const double least = params.formula_floors[q];
        for (uint32_t c = 0; c < formula.columns; c++) {
            const Candidate* const candidates = params.candidates + static_cast<size_t>(q + c) * params.capacity;
            const QueryScale scale = params.scales[q + c];
            const float floor = params.floors[q + c];
            const uint32_t count = params.candidate_counts[counter(q + c)];
            // A warp looks at 32 candidates, and scores those in doubt two at a time.
            const uint32_t lane = threadIdx.x % WARP;
            for (uint32_t first = (blockIdx.y * warps + threadIdx.x / WARP) * WARP; first < count;
                 first += gridDim.y * warps * WARP) {
                const Candidate candidate = candidates[min(first + lane, count - 1)];
                const float bound = error_bound(scale, params.tile_scales[candidate.slot / TILE_ROWS].residual);
                const uint32_t row = params.slot_rows[candidate.slot];
                const bool doubtful = first + lane < count && !(candidate.score + bound < floor) && row != NOT_A_ROW;
                uint32_t lanes = __ballot_sync(ALL_LANES, doubtful);
                while (lanes != 0) {
                    const int one = __ffs(lanes) - 1;
                    lanes &= lanes - 1;
                    const bool pair = lanes != 0;
                    const int other = pair ? __ffs(lanes) - 1 : one;
                    lanes &= lanes - 1;
                    const uint32_t rows[2] = {__shfl_sync(ALL_LANES, row, one), __shfl_sync(ALL_LANES, row, other)};
                    const uint32_t slots[2] = {__shfl_sync(ALL_LANES, candidate.slot, one),
                                               __shfl_sync(ALL_LANES, candidate.slot, other)};
                    double scores[2];
                    formula_scores<double>(formula, params.table, params.queries.excluded, rows, scores);
                    for (int r = 0; r < (pair ? 2 : 1); r++) {
                        // NaN does not reach it.
                        if (!(scores[r] >= least) || !admits(query, params.queries.excluded, rows[r], scores[r])) continue;
                        if (found_before(params, c, slots[r])) continue;
                        if (lane == 0) {
                            const uint32_t index = atomicAdd(params.survivor_counts + counter(q), 1u);
                            if (index < params.survivor_capacity) survivors[index] = {scores[r], rows[r], 0};
                        }
                    }
                }
            }
        }
    }
    if (last_block(params.tickets + counter(q), gridDim.y)) {
        finish_query(list, query, survivors, params.survivor_counts[counter(q)], params.survivor_capacity, found, certified,
                     params.stride, params.answers + static_cast<size_t>(q) * (1 + params.stride));
    }
}

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
    if (is_formula(query)) {
        if (query.column == 0) rescore_formula(params, query, *reinterpret_cast<TopKList*>(memory));
        return;
    }
    const uint32_t parts = params.parts;
    if (blockIdx.y >= parts) return;
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
        const uint32_t each = (found + parts - 1) / parts;
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
    if (last_block(params.tickets + counter(q), parts)) {
        finish_query(*reinterpret_cast<TopKList*>(memory), query, survivors, params.survivor_counts[counter(q)],
                     params.survivor_capacity, found, certified, params.stride,
                     params.answers + static_cast<size_t>(q) * (1 + params.stride));
    }
}

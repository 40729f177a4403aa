// Scores the candidates that are still in doubt by the contract's formula; the best k of them are the answer.
//
// Grid: (batch, parts). The blocks of a query divide its candidates among themselves; the last to finish
// ranks them. Dynamic shared memory: LIST_BYTES, first for the SelectSpace, then for the TopKList.
#include "exact_floor.cuh"
#include "finish.cuh"
#include "formula.cuh"
#include "launch.cuh"
#include "select.cuh"

constexpr int CANDIDATE_CAPACITY = 1024;  // rows in shared memory between two rounds of scoring
static_assert(sizeof(SelectSpace) <= LIST_BYTES && sizeof(FloorSpace) <= LIST_BYTES, "they share dynamic memory");

__device__ __forceinline__ void rescore_cosine(const RescoreParams& params, const QueryHeader& query, uint32_t parts,
                                              void* memory) {
    __shared__ uint32_t doubtful[CANDIDATE_CAPACITY];
    __shared__ int doubtful_count;
    const int q = blockIdx.x;
    const uint32_t found = params.candidate_counts[counter(q)];
    const bool certified = found <= params.capacity;
    const QueryScale scale = params.scales[q];
    const Candidate* const mine = params.candidates + static_cast<size_t>(q) * params.capacity;
    const uint32_t* const excluded = params.queries.excluded;
    ScoredRow* const survivors = params.survivors + static_cast<size_t>(q) * params.survivor_capacity;
    if (certified) {
        FloorSpace& space = *static_cast<FloorSpace*>(memory);
        const bool exact = query.k <= FLOOR_HITS;
        float floor = params.floors[q];
        if (exact) {
            const auto guess = [&](int i) { return mine[i].score; };
            const auto slot = [&](int i) { return mine[i].slot; };
            const double best = exact_floor(space, params.table, params.queries, params.slot_rows, query, found, guess, slot);
            floor = fmaxf(floor, __double2float_rd(best));
            // The rows that are scored now are not scored again. Every block has the same ones.
            const double own = threadIdx.x < FLOOR_ROWS ? space.scores[threadIdx.x] : NO_SCORE;
            if (blockIdx.y == 0 && own > NO_SCORE && own >= floor) {
                const uint32_t index = atomicAdd(params.survivor_counts + counter(q), 1u);
                if (index < params.survivor_capacity) survivors[index] = {own, space.rows[threadIdx.x], 0};
            }
        } else {
            const float bound = select_bound(*static_cast<SelectSpace*>(memory), found, query.rank, [&](int i) {
                return threshold_bound(query, excluded, params.slot_rows, mine[i],
                                       error_bound(scale, params.tile_scales[mine[i].slot / TILE_ROWS].residual));
            });
            floor = fmaxf(floor, bound);
        }
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
                bool in_doubt = !(candidate.score + bound < floor) && candidate.score - bound <= query.max_score &&
                                row < query.first_rows;
                for (int j = 0; exact && in_doubt && j < FLOOR_ROWS; j++) in_doubt = space.rows[j] != row;
                if (in_doubt) doubtful[atomicAdd(&doubtful_count, 1)] = row;
            }
            __syncthreads();
            const bool last = round + blockDim.x >= end;
            if (last || doubtful_count > CANDIDATE_CAPACITY - static_cast<int>(blockDim.x)) {
                score_survivors(params.table, vector, query, excluded, doubtful, doubtful_count, NO_SCORE,
                                survivors, params.survivor_counts + counter(q), params.survivor_capacity);
                __syncthreads();
                if (threadIdx.x == 0) doubtful_count = 0;
            }
            __syncthreads();
        }
    }
    if (last_block(params.tickets + counter(q), parts)) {
        finish_query(*static_cast<TopKList*>(memory), query, 1, survivors, params.survivor_counts[counter(q)],
                     params.survivor_capacity, found, certified, params.stride,
                     params.answers + static_cast<size_t>(q) * (1 + params.stride));
    }
}

// The same for a formula, by the blocks of its first column.
__device__ __forceinline__ void rescore_formula(const RescoreParams& params, const QueryHeader& query, void* memory) {
    __shared__ Formula formula;
    copy_formula(formula, params.formulas[query.formula]);
    const int q = blockIdx.x;
    ScoredRow* const survivors = params.survivors + static_cast<size_t>(q) * params.survivor_capacity;
    uint32_t found = 0;
    bool certified = true;
    for (uint32_t c = 0; c < formula.columns; c++) {
        const uint32_t count = params.candidate_counts[counter(q + c)];
        certified = certified && count <= params.capacity;
        found += count & ~FORMULA_FAILED;
    }
    if (certified) {
        const double least = params.formula_floors[q];
        const uint32_t* const words = params.queries.excluded + formula.words;
        const uint32_t warps = gridDim.y * blockDim.x / WARP, warp = blockIdx.y * blockDim.x / WARP + threadIdx.x / WARP;
        const uint32_t lane = threadIdx.x % WARP;
        // A warp looks at a few candidates, and scores those in doubt two at a time: few, so that all warps have some.
        constexpr uint32_t LOOKS = 8;
        constexpr int TOGETHER = 2;
        for (uint32_t c = 0; c < formula.columns; c++) {
            const Candidate* const candidates = params.candidates + static_cast<size_t>(q + c) * params.capacity;
            const QueryScale scale = params.scales[q + c];
            const float floor = params.floors[q + c];
            const uint32_t count = params.candidate_counts[counter(q + c)];
            for (uint32_t first = warp * LOOKS; first < count; first += warps * LOOKS) {
                const Candidate candidate = candidates[min(first + lane, count - 1)];
                const float bound = error_bound(scale, params.tile_scales[candidate.slot / TILE_ROWS].residual);
                const uint32_t row = params.slot_rows[candidate.slot];
                const bool doubtful = lane < LOOKS && first + lane < count && !(candidate.score + bound < floor) &&
                                      row < query.first_rows;
                uint32_t lanes = __ballot_sync(ALL_LANES, doubtful);
                while (lanes != 0) {
                    uint32_t rows[TOGETHER], own = NOT_A_ROW;
                    const int one = __ffs(lanes) - 1;
#pragma unroll
                    for (int i = 0; i < TOGETHER; i++) {
                        const bool there = lanes != 0;
                        rows[i] = __shfl_sync(ALL_LANES, row, there ? __ffs(lanes) - 1 : one);
                        if (there && lane == i) own = rows[i];
                        lanes &= lanes - 1;
                    }
                    const double score = formula_score<double>(formula, params.table, words, rows);
                    // NaN does not reach it.
                    if (own != NOT_A_ROW && score >= least && admits(query, params.queries.excluded, own, score)) {
                        const uint32_t index = atomicAdd(params.survivor_counts + counter(q), 1u);
                        if (index < params.survivor_capacity) survivors[index] = {score, own, 0};
                    }
                }
            }
        }
    }
    if (last_block(params.tickets + counter(q), gridDim.y)) {
        // Each column may have found a row.
        finish_query(*static_cast<TopKList*>(memory), query, static_cast<int>(formula.columns), survivors,
                     params.survivor_counts[counter(q)], params.survivor_capacity, found, certified,
                     params.stride, params.answers + static_cast<size_t>(q) * (1 + params.stride));
    }
}

// The blocks of a query by cosine.
__device__ __forceinline__ uint32_t parts_of(const RescoreParams& params, const QueryHeader& query) {
    return query.k <= FLOOR_HITS ? params.parts : params.parts_of_many_hits;
}

extern "C" __global__ void rescore(const RescoreParams params) {
    extern __shared__ __align__(16) unsigned char memory[];
    wait_for_previous();
    const QueryHeader query = params.queries.headers[blockIdx.x];
    const uint32_t parts = parts_of(params, query);
    if (query.norm != 0.0 && blockIdx.y < parts) rescore_cosine(params, query, parts, memory);
}

// For passes with formulas, which take more blocks.
extern "C" __global__ void rescore_formulas(const RescoreParams params) {
    extern __shared__ __align__(16) unsigned char memory[];
    wait_for_previous();
    const QueryHeader query = params.queries.headers[blockIdx.x];
    if (query.norm == 0.0) return;
    if (is_formula(query)) {
        if (query.column == 0) rescore_formula(params, query, memory);
    } else if (const uint32_t parts = parts_of(params, query); blockIdx.y < parts) {
        rescore_cosine(params, query, parts, memory);
    }
}

// Scores the candidates that are still in doubt by the contract's formula; the best k of them are
// the answer.
#include "exact_floor.cuh"
#include "finish.cuh"
#include "formula_floor.cuh"
#include "launch.cuh"
#include "listing.cuh"
#include "select.cuh"

constexpr int CANDIDATE_CAPACITY = 1024;  // rows in shared memory between two rounds of scoring
static_assert(sizeof(SelectSpace) <= LIST_BYTES && sizeof(FormulaSpace) <= LIST_BYTES, "they share dynamic memory");

constexpr uint32_t MAX_FORMULA_PARTS = 64;  // blocks for one formula

// What several blocks do for one query.
struct Share {
    uint32_t part, parts;
};

__device__ __forceinline__ Answer* answer_of(const RescoreParams& params, int q) {
    return params.answers + static_cast<size_t>(q) * (1 + params.stride);
}

// Answers a query with few hits, by one block: what it scores stays in shared memory.
__device__ __forceinline__ void rescore_few(const RescoreParams& params, const QueryHeader& query, int q, TopKList& list) {
    __shared__ FloorSpace space;
    __shared__ uint32_t doubtful[CANDIDATE_CAPACITY];
    __shared__ int doubtful_count, scored;
    const uint32_t found = params.pass.candidate_counts[counter(q)];
    if (found > params.pass.capacity) {
        if (threadIdx.x == 0) answer_of(params, q)->result = {0, CANDIDATES_OVERFLOWED, found, 0};
        return;
    }
    const QueryScale scale = params.pass.scales[q];
    const Candidate* const mine = params.pass.candidates + static_cast<size_t>(q) * params.pass.capacity;
    const uint32_t* const excluded = params.pass.queries.excluded;
    struct Look {
        float score, error;
        uint32_t row;
    };
    const auto look = [&](uint32_t i) -> Look {
        if (i >= found) return {-INFINITY, 0.0f, NOT_A_ROW};
        const Candidate candidate = mine[i];
        return {candidate.score, error_bound(scale, params.pass.tile_scales[candidate.slot / TILE_ROWS].residual),
                params.pass.slot_rows[candidate.slot]};
    };
    // Loaded while the rows for the floor are scored.
    Look next = look(threadIdx.x);
    if (threadIdx.x == 0) doubtful_count = scored = 0;
    list.clear(query.k);
    const double best = exact_floor(space, params.pass.table, params.pass.queries, params.pass.slot_rows, query, found_candidates(mine, found),
                                    2.0f * scale.residual);
    const float floor = fmaxf(params.pass.floors[q], __double2float_rd(best));
    if (threadIdx.x < FLOOR_ROWS && space.rows[threadIdx.x] != NOT_A_ROW) {
        const double own = space.scores[threadIdx.x];
        if (own > NO_SCORE && own >= floor) list.append(own, space.rows[threadIdx.x]);
        atomicAdd(&scored, 1);
    }
    const float* const vector = components(query, params.pass.table, params.pass.queries.vectors);
    for (uint32_t round = 0; round < found; round += blockDim.x) {
        const Look own = next;
        next = look(round + blockDim.x + threadIdx.x);
        bool in_doubt = own.row < query.first_rows && !(own.score + own.error < floor) && own.score - own.error <= query.max_score;
        // Those that were scored for the floor are not scored again.
        for (int j = 0; in_doubt && j < FLOOR_ROWS; j++) in_doubt = space.rows[j] != own.row;
        if (in_doubt) doubtful[atomicAdd(&doubtful_count, 1)] = own.row;
        __syncthreads();
        const int count = doubtful_count;
        if (round + blockDim.x >= found || count > CANDIDATE_CAPACITY - static_cast<int>(blockDim.x)) {
            score_rows(params.pass.table, vector, query, excluded, doubtful, count,
                       [&](double score, uint32_t row) { list.append(score, row); });
            list.make_room();
            if (threadIdx.x == 0) doubtful_count = 0, scored += count;
        }
        __syncthreads();
    }
    finish_list(list, 1, query, {0, ANSWERED, found, static_cast<uint32_t>(scored)}, params.stride, answer_of(params, q));
}

// Scores a share of the candidates of a query with many hits; the block that finishes last ranks
// them.
__device__ __forceinline__ void rescore_many(const RescoreParams& params, const QueryHeader& query, int q, Share share,
                                             void* memory) {
    __shared__ uint32_t doubtful[CANDIDATE_CAPACITY];
    __shared__ int doubtful_count;
    const uint32_t found = params.pass.candidate_counts[counter(q)];
    const bool certified = found <= params.pass.capacity;
    const QueryScale scale = params.pass.scales[q];
    const Candidate* const mine = params.pass.candidates + static_cast<size_t>(q) * params.pass.capacity;
    const uint32_t* const excluded = params.pass.queries.excluded;
    ScoredRow* const survivors = params.pass.survivors + static_cast<size_t>(q) * params.pass.survivor_capacity;
    if (certified) {
        const float bound = select_bound(*static_cast<SelectSpace*>(memory), found, query.rank, [&](int i) {
            return threshold_bound(query, excluded, params.pass.slot_rows, mine[i],
                                   error_bound(scale, params.pass.tile_scales[mine[i].slot / TILE_ROWS].residual));
        });
        const float floor = fmaxf(params.pass.floors[q], bound);
        const float* const vector = components(query, params.pass.table, params.pass.queries.vectors);
        const uint32_t each = (found + share.parts - 1) / share.parts;
        const uint32_t begin = min(found, share.part * each), end = min(found, begin + each);
        if (threadIdx.x == 0) doubtful_count = 0;
        __syncthreads();
        for (uint32_t round = begin; round < end; round += blockDim.x) {
            const uint32_t i = round + threadIdx.x;
            if (i < end) {
                const Candidate candidate = mine[i];
                const float error = error_bound(scale, params.pass.tile_scales[candidate.slot / TILE_ROWS].residual);
                const uint32_t row = params.pass.slot_rows[candidate.slot];
                const bool in_doubt = !(candidate.score + error < floor) && candidate.score - error <= query.max_score &&
                                      row < query.first_rows;
                if (in_doubt) doubtful[atomicAdd(&doubtful_count, 1)] = row;
            }
            __syncthreads();
            const int count = doubtful_count;
            if (round + blockDim.x >= end || count > CANDIDATE_CAPACITY - static_cast<int>(blockDim.x)) {
                score_survivors(params.pass.table, vector, query, excluded, doubtful, count, NO_SCORE, survivors,
                                params.pass.survivor_counts + counter(q), params.pass.survivor_capacity);
                __syncthreads();
                if (threadIdx.x == 0) doubtful_count = 0;
            }
            __syncthreads();
        }
    }
    if (last_block(params.pass.tickets + counter(q), share.parts)) {
        finish_query(*static_cast<TopKList*>(memory), query, 1, survivors, params.pass.survivor_counts[counter(q)],
                     params.pass.survivor_capacity, found, certified, params.stride, answer_of(params, q));
    }
}

// The same for a formula whose first column is `q`.
__device__ __forceinline__ void rescore_formula(const RescoreParams& params, int q, const Formula& formula, Share share,
                                                void* memory) {
    __shared__ uint32_t words[FORMULA_WORDS];
    const QueryHeader query = params.pass.queries.headers[q];
    const uint32_t* const excluded = params.pass.queries.excluded;
    copy_words(words, query, excluded);
    // The candidates of all columns are counted through: those of column c end at ends[c].
    uint32_t found = 0, ends[FORMULA_COLUMNS];
    bool certified = true;
#pragma unroll
    for (uint32_t c = 0; c < FORMULA_COLUMNS; c++) {
        const uint32_t count = c < formula.columns ? params.pass.candidate_counts[counter(q + c)] : 0;
        certified = certified && count <= params.pass.capacity;
        found += count & ~FORMULA_FAILED;
        ends[c] = found;
    }
    __syncthreads();
    ScoredRow* const survivors = params.pass.survivors + static_cast<size_t>(q) * params.pass.survivor_capacity;
    if (certified) {
        __shared__ float floors[FORMULA_COLUMNS];
        double least = params.pass.formula_floors[q];
        const uint32_t warps = blockDim.x / WARP, lane = threadIdx.x % WARP;
        // If a block has many candidates, it is worth finding the floor that all of them give.
        const bool many = found / share.parts > 8 * warps;
        if (many) {
            const auto found_for = [&](int column) {
                return found_for_column(params.pass.candidates, params.pass.candidate_counts, params.pass.capacity, q + column);
            };
            least = fmax(least, formula_floor(*static_cast<FormulaSpace*>(memory), params.pass.table, excluded, words,
                                              params.pass.slot_rows, formula, query, found_for));
        }
        if (threadIdx.x < formula.columns) {
            const int column = q + threadIdx.x;
            floors[threadIdx.x] = many ? column_floor(params.pass.columns[column], formula.power, least) : params.pass.floors[column];
        }
        __syncthreads();
        // A warp looks at a few candidates, and scores those in doubt two at a time: few, so that
        // all warps have some.
        constexpr int TOGETHER = 2;
        const uint32_t looks = min(static_cast<uint32_t>(WARP), max(2u, found / (share.parts * warps) + 1));
        const uint32_t stride = share.parts * warps * looks;
        for (uint32_t first = (share.part * warps + threadIdx.x / WARP) * looks; first < found; first += stride) {
            const uint32_t i = min(first + lane, found - 1);
            const uint32_t c = (i >= ends[0]) + (i >= ends[1]);
            const uint32_t begin = c == 0 ? 0 : c == 1 ? ends[0] : ends[1];
            const Candidate candidate = params.pass.candidates[static_cast<size_t>(q + c) * params.pass.capacity + (i - begin)];
            const float error = error_bound(params.pass.scales[q + c], params.pass.tile_scales[candidate.slot / TILE_ROWS].residual);
            const uint32_t row = params.pass.slot_rows[candidate.slot];
            const bool in_doubt = lane < looks && first + lane < found && !(candidate.score + error < floors[c]) &&
                                  row < query.first_rows;
            uint32_t lanes = __ballot_sync(ALL_LANES, in_doubt);
            while (lanes != 0) {
                uint32_t rows[TOGETHER], own = NOT_A_ROW;
                const int one = __ffs(lanes) - 1;
#pragma unroll
                for (int j = 0; j < TOGETHER; j++) {
                    const bool there = lanes != 0;
                    rows[j] = __shfl_sync(ALL_LANES, row, there ? __ffs(lanes) - 1 : one);
                    if (there && lane == j) own = rows[j];
                    lanes &= lanes - 1;
                }
                const double score = formula_score<double>(formula, params.pass.table, words, rows);
                // NaN does not reach it.
                if (own != NOT_A_ROW && score >= least && admits(query, excluded, own, score)) {
                    add_survivor(survivors, params.pass.survivor_counts + counter(q), params.pass.survivor_capacity, score, own);
                }
            }
        }
    }
    if (last_block(params.pass.tickets + counter(q), share.parts)) {
        // Each column may have found a row.
        finish_query(*static_cast<TopKList*>(memory), query, static_cast<int>(formula.columns), survivors,
                     params.pass.survivor_counts[counter(q)], params.pass.survivor_capacity, found, certified, params.stride,
                     answer_of(params, q));
    }
}

__device__ __forceinline__ void rescore_cosine(const RescoreParams& params, int q, void* memory) {
    const QueryHeader query = params.pass.queries.headers[q];
    if (query.norm == 0.0 || is_formula(query)) return;
    if (query.k > FLOOR_HITS) rescore_many(params, query, q, {blockIdx.y, gridDim.y}, memory);
    else if (blockIdx.y == 0) rescore_few(params, query, q, *static_cast<TopKList*>(memory));
}

// Grid: (batch, parts of queries with many hits). Dynamic shared memory: LIST_BYTES, first for what
// finds a floor, then for the TopKList.
extern "C" __global__ void rescore(const RescoreParams params) {
    extern __shared__ __align__(16) unsigned char memory[];
    tell_host(params.almost_over);
    wait_for_previous();
    rescore_cosine(params, blockIdx.x, memory);
}

// For passes with formulas. Grid: as above, with `formula_blocks` more in x, which come first
// because they take longest. They divide the candidates of all formulas among themselves.
extern "C" __global__ void rescore_formulas(const RescoreParams params) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Formula formula;
    tell_host(params.almost_over);
    wait_for_previous();
    const uint32_t blocks = params.formula_blocks;
    if (blockIdx.x >= blocks) {
        rescore_cosine(params, blockIdx.x - blocks, memory);
        return;
    }
    const uint32_t formulas = *params.pass.formula_count;
    if (blockIdx.y > 0 || formulas == 0) return;
    // More would leave too little for each, and the other queries' blocks would have to wait.
    const uint32_t parts = min(MAX_FORMULA_PARTS, max(1u, blocks * 3 / 4 / formulas));
    for (uint32_t i = blockIdx.x; i < formulas * parts; i += blocks) {
        copy_formula(formula, params.pass.formulas[i % formulas]);
        rescore_formula(params, formula.first_column, formula, {i / formulas, parts}, memory);
        __syncthreads();
    }
}

// Lists every row that reaches the minimum score of a query, in any order, with its true score.
// Grid: (batch, parts of a query's candidates).
extern "C" __global__ void list_hits(const ListHitsParams params) {
    __shared__ uint32_t first;
    tell_host(params.almost_over);
    wait_for_previous();
    const int q = blockIdx.x;
    const bool is_listed = params.pass.candidate_counts[counter(q)] <= params.pass.capacity;
    if (blockIdx.y == 0 && threadIdx.x == 0) params.overflowed[q] = is_listed ? 0 : 1;
    if (!is_listed) return;
    score_candidates(params.pass, q, [&](const ScoredRow* hits, int count) {
        if (threadIdx.x == 0) first = atomicAdd(params.listed_count, static_cast<uint32_t>(count));
        __syncthreads();
        for (int hit = threadIdx.x; hit < count; hit += blockDim.x) {
            if (first + hit < params.list_capacity) params.listed[first + hit] = {hits[hit].score, hits[hit].row, static_cast<uint32_t>(q)};
        }
    });
}

// Expands texts: the queries of tokens, whose vectors are on the device, and the terms of texts
// from the hits of their tokens.
#include "abi/search/expand.cuh"
#include "launch.cuh"
#include "listing.cuh"
#include "rotation.cuh"

// Makes the query of each token: every row above the least value of its text. Grid: (tokens with
// padding).
extern "C" __global__ void token_queries(const TokenQueriesParams params) {
    __shared__ double space[32];
    const int token = blockIdx.x;
    const TableView& table = params.table;
    QueryHeader query = {};
    if (token >= params.tokens) {
        if (threadIdx.x == 0) params.headers[token] = query;
        return;
    }
    const float* const vector = params.vectors + static_cast<size_t>(token) * table.dim;
    double square = 0.0;
    for (int i = threadIdx.x; i < table.dim; i += blockDim.x) {
        const double x = vector[i];
        square += x * x;
    }
    square = block_combine(square, space, [](double a, double b) { return a + b; });
    if (threadIdx.x != 0) return;
    const LiftView& lift = params.lift;
    const double last = lift.dim > table.dim ? lift.beta : 0.0;
    const double unit = sqrt(square + last * last) * lift.longest;
    // Without a unit all scores are zero, and no row is above.
    if (unit > 0.0) {
        // As `Unit::factor` and `Factor::minimum` of contract's certificate/lift.rs. Units a
        // rounding apart may have different factors: any factor leaves scores exact.
        query.factor = scalbn(1.0, -ilogb(unit) - 1);
        query.norm = 1.0 / (query.factor * lift.longest);
        const uint32_t text = params.texts[token];
        query.min_score = __dmul_ru(params.leasts[text], query.factor);
        query.max_score = INFINITY;
        query.row = NOT_A_ROW;
        query.vector = static_cast<uint32_t>(token);
        query.k = query.rank = table.rows;
        query.first_rows = table.rows;
        query.formula = NOT_A_FORMULA;
        query.tiles_within = query.tiles_covering = params.tiles;
        query.text = text;
    }
    params.headers[token] = query;
}

// Set in the count of a text whose terms can't be merged.
constexpr uint32_t TEXT_FAILED = 1u << 30;

// Adds the hits of tokens to those of their texts, in any order. Grid: (batch, parts of a query's
// candidates).
extern "C" __global__ void list_terms(const ListTermsParams params) {
    __shared__ uint32_t first;
    wait_for_previous();
    const int q = blockIdx.x;
    const QueryHeader& query = params.pass.queries.headers[q];
    uint32_t* const count_of_text = params.counts + query.text;
    if (params.pass.candidate_counts[counter(q)] > params.pass.capacity) {
        if (blockIdx.y == 0 && threadIdx.x == 0) atomicOr(count_of_text, TEXT_FAILED);
        return;
    }
    ScoredRow* const of_text = params.found + static_cast<size_t>(query.text) * params.capacity;
    score_candidates(params.pass, q, [&](const ScoredRow* hits, int count) {
        if (threadIdx.x == 0) first = atomicAdd(count_of_text, static_cast<uint32_t>(count));
        __syncthreads();
        for (int hit = threadIdx.x; hit < count; hit += blockDim.x) {
            if (first + hit < params.capacity) of_text[first + hit] = {hits[hit].score, hits[hit].row, query.vector};
        }
    });
}

// Whether a hit comes before another one of its text: by row, then the higher score, then the
// earlier token.
__device__ __forceinline__ bool comes_before(const ScoredRow& a, const ScoredRow& b) {
    if (a.row != b.row) return a.row < b.row;
    return a.score > b.score || (a.score == b.score && a.query < b.query);
}

// Merges the hits of a text: of each row the highest score, with its first token; in the order of
// rows. Grid: (texts).
extern "C" __global__ void merge_terms(const MergeTermsParams params) {
    __shared__ ScoredRow hits[MERGED_HITS];
    __shared__ uint32_t of_warps[32], first;
    const uint32_t count = params.counts[blockIdx.x];
    if (count > min(params.capacity, static_cast<uint32_t>(MERGED_HITS))) {
        if (threadIdx.x == 0) params.ranges[blockIdx.x] = {0, NOT_MERGED};
        return;
    }
    const ScoredRow* const mine = params.found + static_cast<size_t>(blockIdx.x) * params.capacity;
    uint32_t size = 1;
    while (size < count) size *= 2;
    for (uint32_t i = threadIdx.x; i < size; i += blockDim.x) hits[i] = i < count ? mine[i] : ScoredRow{0.0, NOT_A_ROW, 0};
    __syncthreads();
    for (uint32_t run = 2; run <= size; run *= 2) {
        for (uint32_t step = run / 2; step > 0; step /= 2) {
            for (uint32_t i = threadIdx.x; i < size / 2; i += blockDim.x) {
                const uint32_t a = 2 * step * (i / step) + i % step, b = a + step;
                const bool ascending = (a & run) == 0;
                if (comes_before(hits[b], hits[a]) == ascending) {
                    const ScoredRow other = hits[a];
                    hits[a] = hits[b];
                    hits[b] = other;
                }
            }
            __syncthreads();
        }
    }
    // The first of each row stays. A thread has consecutive hits.
    const uint32_t each = (count + blockDim.x - 1) / blockDim.x;
    const uint32_t begin = min(count, threadIdx.x * each), end = min(count, begin + each);
    uint32_t own = 0;
    for (uint32_t i = begin; i < end; i++) own += i == 0 || hits[i].row != hits[i - 1].row;
    uint32_t before = own;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int step = 1; step < WARP; step *= 2) {
        const uint32_t other = __shfl_up_sync(ALL_LANES, before, step);
        if (lane >= step) before += other;
    }
    if (lane == WARP - 1) of_warps[warp] = before;
    __syncthreads();
    before -= own;
    uint32_t kept = 0;
    for (int i = 0; i < static_cast<int>(blockDim.x) / WARP; i++) {
        if (i < warp) before += of_warps[i];
        kept += of_warps[i];
    }
    if (threadIdx.x == 0) {
        first = atomicAdd(params.total, kept);
        params.ranges[blockIdx.x] = first + kept <= params.list_capacity ? TextTerms{first, kept} : TextTerms{0, NOT_MERGED};
    }
    __syncthreads();
    if (first + kept > params.list_capacity) return;
    for (uint32_t i = begin; i < end; i++) {
        if (i == 0 || hits[i].row != hits[i - 1].row) params.terms[first + before++] = hits[i];
    }
}

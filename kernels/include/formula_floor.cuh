// A floor of a formula: a score that k rows reach.
#pragma once
#include "bounds.cuh"
#include "formula.cuh"
#include "select.cuh"

// The candidates of a pass, and what scores them.
struct FormulaSearch {
    const TableView& table;
    const QueriesView& queries;
    const uint32_t* slot_rows;
    const Candidate* candidates;
    const uint32_t* candidate_counts;
    uint32_t capacity;
};

constexpr int FORMULA_THREADS = 512;  // of a block that calls formula_floor

struct FormulaSpace {
    uint32_t rows[FORMULA_THREADS];
    double scores[FORMULA_THREADS];
    double floor;
};

// The k-th best score of some candidates: in each warp's share of a column, each lane takes its best candidate, and the
// warp the best of its lanes. Any choice gives a floor; better rows give a higher one. -infinity if there are fewer than
// k rows. Called by all FORMULA_THREADS threads of a block; `slot` is that of the formula's first column.
__device__ __forceinline__ double formula_floor(FormulaSpace& space, const FormulaSearch& search, const Formula& formula,
                                                const QueryHeader& query, int slot) {
    constexpr int WARPS = FORMULA_THREADS / WARP;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int columns = static_cast<int>(formula.columns), column = warp % columns;
    const int shares = WARPS / columns + (column < WARPS % columns ? 1 : 0);
    const Candidate* const mine = search.candidates + static_cast<size_t>(slot + column) * search.capacity;
    const int count = min(search.candidate_counts[counter(slot + column)], search.capacity);
    float best = -INFINITY;
    uint32_t best_slot = NOT_A_ROW;
    for (int i = warp / columns * WARP + lane; i < count; i += shares * WARP) {
        const Candidate candidate = mine[i];
        if (candidate.score > best) best = candidate.score, best_slot = candidate.slot;
    }
    int ahead = 0;
    for (int other = 0; other < WARP; other++) {
        const float theirs = __shfl_sync(ALL_LANES, best, other);
        ahead += theirs > best || (theirs == best && other < lane);
    }
    // More rows for more hits.
    const int each = query.k <= FORMULA_FEW_HITS ? FORMULA_RAISE_ROWS : WARP;
    space.rows[threadIdx.x] = NOT_A_ROW;
    __syncwarp();
    if (ahead < each && best_slot != NOT_A_ROW) space.rows[warp * WARP + ahead] = search.slot_rows[best_slot];
    space.scores[threadIdx.x] = -INFINITY;
    __syncthreads();
    // A row that several columns found counts once.
    const uint32_t row = space.rows[threadIdx.x];
    bool counts = row != NOT_A_ROW;
    for (int before = 0; before < warp; before++) {
        for (int i = 0; i < each; i++) counts = counts && space.rows[before * WARP + i] != row;
    }
    __syncthreads();
    if (!counts) space.rows[threadIdx.x] = NOT_A_ROW;
    __syncwarp();
    constexpr int TOGETHER = 4;
    for (int first = 0; first < each; first += TOGETHER) {
        uint32_t rows[TOGETHER];
        bool any = false;
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            rows[i] = space.rows[warp * WARP + first + i];
            any = any || rows[i] != NOT_A_ROW;
        }
        if (!any) continue;
        const uint32_t own = rows[lane % TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) rows[i] = rows[i] != NOT_A_ROW ? rows[i] : 0;
        const double score = formula_score<double>(formula, search.table, search.queries.excluded, rows);
        if (lane < TOGETHER && own != NOT_A_ROW && !isnan(score) && admits(query, search.queries.excluded, own, score)) {
            space.scores[warp * WARP + first + lane] = score;
        }
    }
    if (threadIdx.x == 0) space.floor = -INFINITY;
    __syncthreads();
    const double own = space.scores[threadIdx.x];
    if (own > -INFINITY) {
        uint32_t better = 0;
        for (int i = 0; i < WARPS * each; i++) {
            const int other = i / each * WARP + i % each;
            better += space.scores[other] > own || (space.scores[other] == own && other < static_cast<int>(threadIdx.x));
        }
        if (better + 1 == query.k) space.floor = own;
    }
    __syncthreads();
    return space.floor;
}

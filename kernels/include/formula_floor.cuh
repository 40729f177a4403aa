// A floor of a formula: a score that k rows reach.
#pragma once
#include "exact_floor.cuh"
#include "formula.cuh"

struct FormulaSpace {
    uint32_t rows[FLOOR_THREADS];
    double scores[FLOOR_THREADS];
    double floor;
};

// The candidates of a column, which is query `q`; none if it has no certificate, because not all of
// them were written.
__device__ __forceinline__ auto found_for_column(const Candidate* candidates, const uint32_t* counts, uint32_t capacity, int q) {
    const uint32_t count = counts[counter(q)];
    return found_candidates(candidates + static_cast<size_t>(q) * capacity, count <= capacity ? count : 0);
}

// The k-th best score of some of the rows found for a formula's columns: each thread takes the best
// of its share, and each warp the best of these. Any choice gives a floor; better rows give a
// higher one. -infinity if the filter admits fewer than k of them. `words` are the formula's, and
// `found_for(c)` the FoundRows of column c. Called by all FLOOR_THREADS threads of a block; ends
// with a barrier.
template <class FoundFor>
__device__ __forceinline__ double formula_floor(FormulaSpace& space, const TableView& table, const uint32_t* excluded,
                                                const uint32_t (&words)[FORMULA_WORDS], const uint32_t* slot_rows, const Formula& formula,
                                                const QueryHeader& query, FoundFor found_for) {
    constexpr int WARPS = FLOOR_THREADS / WARP, TOGETHER = 2;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int columns = static_cast<int>(formula.columns), column = warp % columns;
    const int shares = WARPS / columns + (column < WARPS % columns ? 1 : 0);
    const auto found = found_for(column);
    float best = -INFINITY;
    int best_index = -1;
#pragma unroll 4
    for (int i = warp / columns * WARP + lane; i < found.count; i += shares * WARP) {
        const float own = found.guess(i);
        if (!(own > best) || (query.is_filtered != 0 && !admits_row(query, excluded, slot_rows[found.slot(i)]))) continue;
        best = own, best_index = i;
    }
    // More rows for more hits.
    const int each = query.k <= FLOOR_HITS ? FORMULA_FLOOR_ROWS : WARP;
    for (int j = 0; j < each; j += TOGETHER) {
        uint32_t rows[TOGETHER], own = NOT_A_ROW;
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const int index = take_best(best, best_index);
            const uint32_t row = index >= 0 ? slot_rows[found.slot(index)] : NOT_A_ROW;
            if (lane == i) own = row;
            rows[i] = row != NOT_A_ROW ? row : 0;
        }
        const double score = formula_score<double>(formula, table, words, rows);
        if (lane < TOGETHER) {
            // NaN is no score.
            const bool counts = own != NOT_A_ROW && score == score && admits(query, excluded, own, score);
            space.scores[warp * each + j + lane] = counts ? score : -INFINITY;
            space.rows[warp * each + j + lane] = own;
        }
    }
    if (threadIdx.x == 0) space.floor = -INFINITY;
    __syncthreads();
    const int count = WARPS * each, self = threadIdx.x;
    if (self < count) {
        // A row that several columns found counts once.
        const uint32_t row = space.rows[self];
        bool is_copy = false;
#pragma unroll 8
        for (int i = 0; i < count; i++) is_copy |= i < self & space.rows[i] == row;
        if (is_copy) space.scores[self] = -INFINITY;
    }
    __syncthreads();
    if (self < count && space.scores[self] > -INFINITY && ranked_before(space.scores, count, self) + 1 == query.k) {
        space.floor = space.scores[self];
    }
    __syncthreads();
    return space.floor;
}

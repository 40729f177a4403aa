// A floor of a query's k-th best score, from the exact scores of a few rows.
//
// It is higher than the k-th best lower bound by the whole width of a bound. In float vectors of
// 300 components, several times fewer rows reach it.
#pragma once
#include "bounds.cuh"
#include "contract.cuh"

constexpr int FLOOR_THREADS = 512;                      // of a block that finds a floor
constexpr int FLOOR_ROWS = 2 * FLOOR_THREADS / WARP;    // that it scores: two for each warp
static_assert(FLOOR_ROWS == WARP && FLOOR_HITS <= FLOOR_ROWS - FEW_EXCLUDED, "one lane for each row");

struct FloorSpace {
    double scores[FLOOR_ROWS];  // NO_SCORE if the filter leaves the row out
    uint32_t rows[FLOOR_ROWS];  // or NOT_A_ROW
    double floor;
};

// The index of the best of a warp's lanes, which gives it up; negative if they have none. Called by
// all lanes.
__device__ __forceinline__ int take_best(float& best, int& best_index) {
    float most = best;
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, step));
    const int leader = __ffs(__ballot_sync(ALL_LANES, best == most)) - 1;
    const int index = __shfl_sync(ALL_LANES, best_index, leader);
    if (threadIdx.x % WARP == leader) best = -INFINITY, best_index = -1;
    return index;
}

// Rows that a pass found: `count`, each with a guess of how good it is and a slot; of none if the
// guess is -infinity.
template <class Guess, class Slot>
struct FoundRows {
    int count;
    Guess guess;
    Slot slot;
};
template <class Guess, class Slot>
__device__ __forceinline__ FoundRows<Guess, Slot> found_rows(int count, Guess guess, Slot slot) {
    return {count, guess, slot};
}

__device__ __forceinline__ auto found_candidates(const Candidate* candidates, int count) {
    return found_rows(count, [=](int i) { return candidates[i].score; }, [=](int i) { return candidates[i].slot; });
}

// The k-th best score of some of the rows found, of those whose guess is at most `most`: each
// thread takes the best of its share by its guess, and each warp the best two of these. Any choice
// gives a floor; better rows give a higher one. NO_SCORE if the filter admits fewer than k of them.
template <class Guess, class Slot>
__device__ __forceinline__ double floor_below(FloorSpace& space, const TableView& table, const QueriesView& queries,
                                              const uint32_t* slot_rows, const QueryHeader& query,
                                              const FoundRows<Guess, Slot>& found, float most) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    float best = -INFINITY;
    int best_index = -1;
    // Few rows are spread over all warps. Many are read in the order of threads.
    const int begin = found.count < FLOOR_THREADS ? lane * (FLOOR_THREADS / WARP) + warp : threadIdx.x;
#pragma unroll 4
    for (int i = begin; i < found.count; i += FLOOR_THREADS) {
        const float own = found.guess(i);
        if (!(own > best) || own > most) continue;
        // Few excluded rows may be among those that are scored. More would leave no room.
        if (query.is_filtered != 0 && !admits_row(query, queries.excluded, slot_rows[found.slot(i)])) continue;
        best = own, best_index = i;
    }
    uint32_t rows[2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const int index = take_best(best, best_index);
        rows[j] = index >= 0 ? slot_rows[found.slot(index)] : NOT_A_ROW;
    }
    const bool there[2] = {rows[0] != NOT_A_ROW, rows[1] != NOT_A_ROW};
    double score = NO_SCORE;
    if (there[0] || there[1]) {
        const uint32_t within[2] = {there[0] ? rows[0] : rows[1], there[1] ? rows[1] : rows[0]};
        const float* const addresses[2] = {components(table, within[0]), components(table, within[1])};
        const double of_rows[2] = {norm_or_bias(table, within[0]), norm_or_bias(table, within[1])};
        double dots[2];
        warp_dots(addresses, components(query, table, queries.vectors), table.dim, dots);
        const uint32_t own = lane == 0 ? rows[0] : rows[1];
        score = search_score(table, query, lane == 0 ? dots[0] : dots[1], lane == 0 ? of_rows[0] : of_rows[1]);
        if (own == NOT_A_ROW || !admits(query, queries.excluded, own, score)) score = NO_SCORE;
    }
    if (lane < 2) {
        space.scores[2 * warp + lane] = score;
        space.rows[2 * warp + lane] = lane == 0 ? rows[0] : rows[1];
    }
    if (threadIdx.x == 0) space.floor = NO_SCORE;
    __syncthreads();
    if (warp == 0) {
        if (ranked_before(space.scores, FLOOR_ROWS, lane) + 1 == query.k) space.floor = space.scores[lane];
    }
    __syncthreads();
    return space.floor;
}

// The floor of a query with k <= FLOOR_HITS. Called by all FLOOR_THREADS threads of a block; ends
// with a barrier.
//
// The best rows below the maximum score by their guesses may be above it by their scores. If that
// leaves too few, others are taken, whose guesses are below it by `error`.
template <class Guess, class Slot>
__device__ __forceinline__ double exact_floor(FloorSpace& space, const TableView& table, const QueriesView& queries,
                                              const uint32_t* slot_rows, const QueryHeader& query,
                                              const FoundRows<Guess, Slot>& found, float error) {
    float most = __double2float_rd(query.max_score);
#pragma unroll 1
    for (bool again = query.max_score < 1.0;; again = false) {
        const double floor = floor_below(space, table, queries, slot_rows, query, found, most);
        if (floor > NO_SCORE || !again) return floor;
        most -= error;
        __syncthreads();
    }
}

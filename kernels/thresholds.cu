// Computes each query's threshold: a certified lower bound of its k-th best cosine.
//
// With e excluded rows, it is a lower bound of the (k + e)-th best cosine of all rows, which is at most the
// k-th best of the rows that are not excluded. Grid: (batch).
#include "bounds.cuh"
#include "formula.cuh"
#include "launch.cuh"
#include "select.cuh"

// Sets the threshold from `floor` or the query's own minimum score, whichever is higher.
__device__ void set_threshold(const QueryHeader& query, const QueryScale& scale, float floor, float* floors,
                              Threshold* thresholds) {
    floor = fmaxf(floor, __double2float_rd(query.min_score));
    *floors = floor;
    *thresholds = make_threshold(scale, floor);
}

// Sets the first thresholds from the bounds of a sample: the best lower bound of each group of rows. Groups
// share no rows.
extern "C" __global__ void first_thresholds(const FirstThresholdsParams params) {
    __shared__ SelectSpace space;
    let_next_start();
    wait_for_previous();
    const QueryHeader query = params.headers[blockIdx.x];
    if (query.norm == 0.0) return;
    const float* const bounds = params.group_bounds + static_cast<size_t>(blockIdx.x) * params.groups;
    // A formula's first threshold proves nothing: it only finds rows to score. See raise_formula.
    const uint32_t rank = is_formula(query) ? max(1u, params.groups / FORMULA_GROUPS_ABOVE) : query.k + query.excluded_count;
    const float floor = select_bound(space, params.groups, rank, [&](int i) { return bounds[i]; });
    if (threadIdx.x == 0 && is_formula(query)) {
        params.floors[blockIdx.x] = floor;
        params.thresholds[blockIdx.x] = make_threshold(params.scales[blockIdx.x], floor);
    } else if (threadIdx.x == 0) {
        set_threshold(query, params.scales[blockIdx.x], floor, params.floors + blockIdx.x, params.thresholds + blockIdx.x);
    }
}

// Raises the thresholds of all columns of a formula: it scores the rows with the highest bounds so far, and the k-th
// best score gives the columns' thresholds. If a threshold in use was higher, rows may have been ruled out wrongly, and
// the formula has failed. Called by all threads of one block, for the formula's first column.
__device__ __forceinline__ void raise_formula(const RaiseThresholdsParams& params, SelectSpace& space,
                                              const QueryHeader& query) {
    constexpr int ROWS = FORMULA_RAISE_ROWS, ALL = FORMULA_COLUMNS * FORMULA_RAISE_ROWS;
    __shared__ uint32_t rows[ALL];
    __shared__ double scores[ALL];
    __shared__ int taken;
    __shared__ double best;
    const Formula formula = params.formulas[query.formula];
    // The candidates that a failed formula counts were not all written.
    for (uint32_t c = 0; c < formula.columns; c++) {
        if (params.candidate_counts[counter(blockIdx.x + c)] & FORMULA_FAILED) return;
    }
    if (threadIdx.x == 0) best = -INFINITY;
    for (int i = threadIdx.x; i < ALL; i += blockDim.x) rows[i] = NOT_A_ROW;
    for (uint32_t c = 0; c < formula.columns; c++) {
        const int q = blockIdx.x + c;
        const Candidate* const mine = params.candidates + static_cast<size_t>(q) * params.capacity;
        const int count = min(params.candidate_counts[counter(q)], params.capacity);
        const auto key = [&](int i) { return bound_key(mine[i].score); };
        const unsigned cut = select_key(space, count, min(count, ROWS), key);
        if (threadIdx.x == 0) taken = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < count; i += blockDim.x) {
            if (key(i) >= cut) {
                const int index = atomicAdd(&taken, 1);
                if (index < ROWS) rows[c * ROWS + index] = params.slot_rows[mine[i].slot];
            }
        }
        __syncthreads();
    }
    // A row that several columns found counts once.
    for (int i = threadIdx.x; i < ALL; i += blockDim.x) {
        bool repeated = false;
        for (int j = 0; j < i; j++) repeated = repeated || rows[j] == rows[i];
        scores[i] = repeated || rows[i] == NOT_A_ROW ? -INFINITY : 0.0;
    }
    __syncthreads();
    for (int i = 2 * (threadIdx.x / WARP); i < ALL; i += 2 * (blockDim.x / WARP)) {
        const bool wanted[2] = {scores[i] == 0.0, scores[i + 1] == 0.0};
        __syncwarp();
        if (!wanted[0] && !wanted[1]) continue;
        const uint32_t two[2] = {rows[wanted[0] ? i : i + 1], rows[wanted[1] ? i + 1 : i]};
        double found[2];
        formula_scores<double>(formula, params.table, params.queries.excluded, two, found);
        const int lane = threadIdx.x % WARP;
        if (lane < 2 && wanted[lane]) {
            const double score = found[lane];
            const bool counts = !isnan(score) && admits(query, params.queries.excluded, two[lane], score);
            scores[i + lane] = counts ? score : -INFINITY;
        }
    }
    __syncthreads();
    static_assert(ALL <= 256 && ALL % 2 == 0, "a thread for each row, two rows a warp");
    if (threadIdx.x < ALL) {
        const double own = scores[threadIdx.x];
        uint32_t ahead = 0;
        for (int i = 0; i < ALL; i++) ahead += scores[i] > own || (scores[i] == own && i < static_cast<int>(threadIdx.x));
        if (ahead + 1 == query.k) best = own;
    }
    __syncthreads();
    const double floor = fmax(best, query.min_score);
    if (threadIdx.x == 0) params.formula_floors[blockIdx.x] = floor;
    if (threadIdx.x < formula.columns) {
        const int q = blockIdx.x + threadIdx.x;
        const float raised = column_floor(params.columns[q], formula.power, floor);
        if (raised >= params.floors[q]) {
            params.floors[q] = raised;
            params.thresholds[q] = make_threshold(params.scales[q], raised);
        } else {
            atomicOr(params.candidate_counts + counter(blockIdx.x), FORMULA_FAILED);
        }
    }
}

// Raises the thresholds from the candidates found so far.
extern "C" __global__ void raise_thresholds(const RaiseThresholdsParams params) {
    __shared__ SelectSpace space;
    let_next_start();
    wait_for_previous();
    const QueryHeader query = params.headers[blockIdx.x];
    if (query.norm == 0.0) return;
    if (is_formula(query)) {
        if (query.column == 0) raise_formula(params, space, query);
        return;
    }
    if (params.only_formulas != 0) return;
    const QueryScale scale = params.scales[blockIdx.x];
    const Candidate* const mine = params.candidates + static_cast<size_t>(blockIdx.x) * params.capacity;
    const int count = min(params.candidate_counts[counter(blockIdx.x)], params.capacity);
    const float floor = select_bound(space, count, query.k + query.excluded_count, [&](int i) {
        return mine[i].score - error_bound(scale, params.tile_scales[mine[i].slot / TILE_ROWS].residual);
    });
    if (threadIdx.x == 0) {
        set_threshold(query, scale, fmaxf(floor, params.floors[blockIdx.x]), params.floors + blockIdx.x,
                      params.thresholds + blockIdx.x);
    }
}

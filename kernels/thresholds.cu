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
    const uint32_t rank = is_formula(query) ? static_cast<uint32_t>(FORMULA_RANK) : query.k + query.excluded_count;
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
    if (threadIdx.x == 0) best = -INFINITY;
    for (int i = threadIdx.x; i < ALL; i += blockDim.x) rows[i] = NOT_A_ROW;
    for (uint32_t c = 0; c < formula.columns; c++) {
        const int q = blockIdx.x + c;
        const Candidate* const mine = params.candidates + static_cast<size_t>(q) * params.capacity;
        const uint32_t found = params.candidate_counts[counter(q)] & ~FORMULA_FAILED;
        const int count = min(found, params.capacity);
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
    for (int i = threadIdx.x / WARP; i < ALL; i += blockDim.x / WARP) {
        const uint32_t row = rows[i];
        double score = -INFINITY;
        // A row that both columns found counts once.
        bool skipped = row == NOT_A_ROW;
        for (int j = 0; j < i; j++) skipped = skipped || rows[j] == row;
        if (!skipped) {
            const double found = formula_score<double>(formula, params.table, params.queries.excluded, row);
            if (!isnan(found) && admits(query, params.queries.excluded, row, found)) score = found;
        }
        if (threadIdx.x % WARP == 0) scores[i] = score;
    }
    __syncthreads();
    if (threadIdx.x < ALL) {
        const double own = scores[threadIdx.x];
        uint32_t ahead = 0;
        for (int i = 0; i < ALL; i++) ahead += scores[i] > own || (scores[i] == own && i < static_cast<int>(threadIdx.x));
        if (ahead + 1 == query.k) best = own;
    }
    __syncthreads();
    const double floor = fmax(best, query.min_score);
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

// Prepares queries for the scans: gathers them from the table or the host's memory, scales them to unit length,
// rotates them, rounds them to 8 bits and lays them out as the next scan needs them.
#include "bounds.cuh"
#include "formula.cuh"
#include "launch.cuh"
#include "query.cuh"
#include "rotation.cuh"

// The index of the byte of component `i` of query `q`; `padded` is the number of components with padding.
__device__ __forceinline__ size_t byte_index(Layout layout, int q, int i, int padded) {
    const int chunk = i / 16, in_chunk = i % 16;
    if (layout == Layout::Fragments16) {
        // 64 components are two steps of 32. Lane t of a quad has the whole chunk 4 * (i / 64) + t, whose
        // four words are both halves of both steps.
        const int t = chunk % 4, word = in_chunk / 4, step = 2 * (i / 64) + word / 2;
        const int lane = (q % 8) * 4 + t, reg = 2 * (word % 2) + q % 16 / 8;
        return ((static_cast<size_t>(q / 16) * (padded / 32) + step) * 32 + lane) * 16 + reg * 4 + i % 4;
    }
    if (layout == Layout::Fragments64) {
        const int step = i / 32, warp = q % 64 / 16, lane = (q % 8) * 4 + in_chunk / 4;
        const int reg = 2 * (chunk % 2) + q % 16 / 8;
        return (((static_cast<size_t>(q / 64) * (padded / 32) + step) * 4 + warp) * 32 + lane) * 16 + reg * 4 + i % 4;
    }
    return static_cast<size_t>(q) * padded + i;
}

// Copies the query's list of excluded rows, and of their slots, from the host's memory for the kernels that follow.
// Called by all threads.
__device__ __forceinline__ void copy_list(const PrepareQueriesParams& params, const QueryHeader& query) {
    if (query.excluded_count < 2) return;
    const uint32_t count = query.excluded_count > FEW_EXCLUDED ? 2 * query.excluded_count : query.excluded_count;
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        params.excluded[query.excluded + i] = params.uploaded_excluded[query.excluded + i];
    }
}

// Makes the unit normal of a column of a formula, in `normal`. The slope depends on a guess of the k-th best score: the
// scores of some rows, extrapolated. Returns whether the normal has a direction. Called by all threads.
__device__ __forceinline__ bool make_normal(const PrepareQueriesParams& params, const QueryHeader& query, double* normal,
                                            double* space) {
    __shared__ double scores[FORMULA_GUESS_ROWS];
    __shared__ double likely;
    __shared__ Formula formula;
    __shared__ uint32_t words[FORMULA_WORDS];
    __shared__ double weights[FORMULA_WORDS];  // in the normal, over the words' norms
    copy_formula(formula, params.uploaded_formulas[query.formula]);
    if (threadIdx.x < formula.count) {
        const uint32_t word = params.uploaded_excluded[formula.words + threadIdx.x];
        words[threadIdx.x] = word;
        if (query.column == 0) params.excluded[formula.words + threadIdx.x] = word;
    }
    if (threadIdx.x == 0) likely = formula.likely;
    __syncthreads();
    const TableView& table = params.table;
    const int dim = table.dim, lane = threadIdx.x % WARP;
    const uint32_t last = query.first_rows - 1, stride = max(1u, query.first_rows / static_cast<uint32_t>(FORMULA_GUESS_ROWS));
    constexpr int TOGETHER = 4;
    for (uint32_t i = threadIdx.x / WARP * TOGETHER; i < FORMULA_GUESS_ROWS; i += blockDim.x / WARP * TOGETHER) {
        const uint32_t rows[TOGETHER] = {min(i * stride, last), min((i + 1) * stride, last), min((i + 2) * stride, last),
                                         min((i + 3) * stride, last)};
        const double score = formula_score<float>(formula, table, words, rows);
        if (lane < TOGETHER) scores[i + lane] = isnan(score) ? -INFINITY : score;
    }
    __syncthreads();
    if (threadIdx.x < FORMULA_GUESS_ROWS) {
        const double own = scores[threadIdx.x];
        const uint32_t before = ranked_before(scores, FORMULA_GUESS_ROWS, threadIdx.x);
        const double guess = formula.center + (own - formula.center) * formula.stretch;
        if (before == FORMULA_GUESS_RANK - 1 && isfinite(guess)) likely = fmax(guess, 0.01);
    }
    __syncthreads();
    static_assert(FORMULA_COLUMNS == 3, "four cuts");
    const double cuts[4] = {formula.cut_0, formula.cut_1, formula.cut_2, formula.cut_3};
    const double factors[4] = {formula.factor_0, formula.factor_1, formula.factor_2, formula.factor_3};
    const double low = cuts[query.column], high = cuts[query.column + 1];
    const double low_factor = factors[query.column], high_factor = factors[query.column + 1];
    const double slope =
        (formula_power(high_factor * likely, formula.power) - formula_power(low_factor * likely, formula.power)) / (high - low);
    if (threadIdx.x < formula.count) {
        const uint32_t w = threadIdx.x;
        const bool in_y = formula.kind == FORMULA_DIRECTION ? w == 1 : w >= formula.positive;
        const double weight = in_y ? -slope : formula.kind == FORMULA_DIRECTION && w == 2 ? -formula.weight : formula.weight;
        weights[w] = weight / table.norms[words[w]];
    }
    __syncthreads();
    double square = 0.0;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) {
        double sum = 0.0;
#pragma unroll 4
        for (uint32_t w = 0; w < formula.count; w++) sum += weights[w] * components(table, words[w])[i];
        normal[i] = sum;
        square += sum * sum;
    }
    square = block_combine(square, space, [](double a, double b) { return a + b; });
    const double norm = sqrt(square);
    const bool has_direction = norm > LEAST_NORMAL;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) {
        normal[i] = has_direction ? normal[i] / norm : i == 0 ? 1.0 : 0.0;
    }
    if (threadIdx.x == 0) {
        params.columns[blockIdx.x] = {formula.offset - slope * low, low_factor, formula.offset - slope * high, high_factor,
                                      norm};
        if (query.column == 0) params.formulas[query.formula] = formula;
    }
    __syncthreads();
    return has_direction;
}

// A query's unit vector, in `values`. Called by all threads.
__device__ __forceinline__ void unit_vector(const PrepareQueriesParams& params, const QueryHeader& query, double* values) {
    const int dim = params.table.dim;
    const double inverse_norm = 1.0 / query.norm;
    if (query.row != NOT_A_ROW) {
        const float* const row = components(params.table, query.row);
        for (int i = threadIdx.x; i < dim; i += blockDim.x) values[i] = static_cast<double>(row[i]) * inverse_norm;
    } else {
        const size_t first = static_cast<size_t>(query.vector) * dim;
        for (int i = threadIdx.x; i < dim; i += blockDim.x) {
            const float component = params.uploaded_vectors[first + i];
            params.vectors[first + i] = component;
            values[i] = static_cast<double>(component) * inverse_norm;
        }
    }
    __syncthreads();
}

template <bool FORMULAS>
__device__ __forceinline__ void prepare(const PrepareQueriesParams& params) {
    const int padded = params.padded;
    const Layout layout = params.layout;
    uint8_t* const bytes = params.bytes;
    extern __shared__ double values[];
    __shared__ QueryHeader header;
    __shared__ double space[16];
    __shared__ int sum_space[16];
    const int q = blockIdx.x;
    wait_for_previous();
    let_next_start();
    if (threadIdx.x == 0) {
        header = params.uploaded[q];
        params.headers[q] = header;
        params.ends[q] = header.norm == 0.0 ? ~0u : header.tiles_covering;
        params.candidate_counts[counter(q)] = 0;
        params.survivor_counts[counter(q)] = 0;
        params.tickets[counter(q)] = 0;
    }
    __syncthreads();
    const QueryHeader query = header;
    if (query.norm == 0.0) {
        for (int i = threadIdx.x; i < padded; i += blockDim.x) bytes[byte_index(layout, q, i, padded)] = 0;
        if (threadIdx.x == 0) {
            params.scales[q] = {1.0f, 0.0f, 1.0f, 0};
            params.thresholds[q] = UNREACHABLE;
            params.floors[q] = 2.0f;
        }
        return;
    }
    copy_list(params, query);
    if (!FORMULAS || !is_formula(query)) {
        unit_vector(params, query, values);
    } else if (!make_normal(params, query, values, space) && threadIdx.x == 0) {
        params.candidate_counts[counter(q)] = FORMULA_FAILED;
    }
    const int dim = params.table.dim;
    rotate(values, dim);
    double peak = 0.0;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) peak = fmax(peak, fabs(values[i]));
    peak = block_combine(peak, space, [](double a, double b) { return fmax(a, b); });
    const float step = __double2float_ru(peak / 127.0);
    const double inverse_step = 1.0 / step;
    double rest_square = 0.0;
    int sum = 0, square = 0;  // at most 4096 * 127 * 127 < 2^31
    for (int i = threadIdx.x; i < padded; i += blockDim.x) {
        const double z = i < dim ? values[i] : 0.0;
        const int n = max(-127, min(127, __double2int_rn(z * inverse_step)));
        const double rest = z - static_cast<double>(n) * step;
        rest_square += rest * rest;
        sum += n;
        square += n * n;
        bytes[byte_index(layout, q, i, padded)] = static_cast<uint8_t>(static_cast<int8_t>(n));
    }
    const auto add_int = [](int a, int b) { return a + b; };
    rest_square = block_combine(rest_square, space, [](double a, double b) { return a + b; });
    sum = block_combine(sum, sum_space, add_int);
    square = block_combine(square, sum_space, add_int);
    if (threadIdx.x == 0) {
        const float residual = __double2float_ru(sqrt(rest_square) * (1.0 + 1e-9) + 1e-9);
        const float norm = __double2float_ru(sqrt(static_cast<double>(square)) * step * (1.0 + 1e-9));
        params.scales[q] = {step, residual, norm, sum};
    }
}

// Grid: (batch), where empty queries pad the batch. Dynamic shared memory: [dim] float64.
extern "C" __global__ void prepare_queries(const PrepareQueriesParams params) { prepare<false>(params); }

// For passes with formulas: grid and shared memory as for prepare_queries.
extern "C" __global__ void prepare_formulas(const PrepareQueriesParams params) { prepare<true>(params); }

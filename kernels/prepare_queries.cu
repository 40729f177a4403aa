// Prepares queries for the scans: gathers them from the table or the host's memory, scales them to
// at most unit length, rotates them, rounds them to 8 bits and lays them out as the next scan needs
// them.
#include "bounds.cuh"
#include "formula_normal.cuh"
#include "launch.cuh"
#include "round_query.cuh"

// Copies the query's list of excluded rows, and of their slots, from the host's memory for the
// kernels that follow. Called by all threads.
__device__ __forceinline__ void copy_list(const PrepareQueriesParams& params, const QueryHeader& query) {
    if (query.excluded_count < 2) return;
    const uint32_t count = query.excluded_count > FEW_EXCLUDED ? 2 * query.excluded_count : query.excluded_count;
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        params.excluded[query.excluded + i] = params.uploaded_excluded[query.excluded + i];
    }
}

// A query as the scans compare it with rows, in `values`: its unit vector, or under the metric
// `dot` its lifted vector, which is at most 1 long. Called by all threads.
__device__ __forceinline__ void lifted_vector(const PrepareQueriesParams& params, const QueryHeader& query, double* values) {
    const int dim = params.pass.table.dim;
    const double inverse_norm = 1.0 / query.norm;
    if (threadIdx.x == 0 && params.lift.dim > dim) values[dim] = params.lift.beta * inverse_norm;
    if (query.row != NOT_A_ROW) {
        const float* const row = components(params.pass.table, query.row);
        for (int i = threadIdx.x; i < dim; i += blockDim.x) values[i] = static_cast<double>(row[i]) * inverse_norm;
    } else {
        const size_t first = static_cast<size_t>(query.vector) * dim;
        // Each wait for the host's memory takes microseconds, so several components are loaded in
        // one.
        constexpr int TOGETHER = 8;
        for (int i = threadIdx.x; i < dim; i += TOGETHER * blockDim.x) {
            float components[TOGETHER];
#pragma unroll
            for (int j = 0; j < TOGETHER; j++) {
                const int at = i + j * static_cast<int>(blockDim.x);
                components[j] = params.uploaded_vectors[first + min(at, dim - 1)];
            }
#pragma unroll
            for (int j = 0; j < TOGETHER; j++) {
                const int at = i + j * static_cast<int>(blockDim.x);
                if (at >= dim) break;
                if (params.vectors != nullptr) params.vectors[first + at] = components[j];
                values[at] = static_cast<double>(components[j]) * inverse_norm;
            }
        }
    }
    __syncthreads();
}

// The first normal of a column of a formula, in `normal`, for the sample: with what that finds,
// `first_formula_thresholds` makes a better one. Called by all threads.
__device__ __forceinline__ void first_normal(const PrepareQueriesParams& params, const QueryHeader& query, double* normal) {
    __shared__ Formula formula;
    __shared__ uint32_t words[FORMULA_WORDS];
    copy_words(words, query, params.uploaded_excluded);
    copy_formula(formula, params.uploaded_formulas[query.formula]);
    if (query.column == 0) {
        if (threadIdx.x < formula.count) params.excluded[query.words + threadIdx.x] = words[threadIdx.x];
        if (threadIdx.x == 0) params.formulas[query.formula] = formula;
    }
    make_normal(formula, params.pass.table, words, query.column, formula.likely, normal);
}

template <bool FORMULAS>
__device__ __forceinline__ void prepare(const PrepareQueriesParams& params) {
    const int padded = params.padded;
    extern __shared__ double values[];
    __shared__ QueryHeader header;
    const int q = blockIdx.x;
    wait_for_previous();
    let_next_start();
    if (FORMULAS && q == 0 && threadIdx.x == WARP) *params.formula_count = *params.uploaded_formula_count;
    if (threadIdx.x == 0) {
        header = params.uploaded[q];
        params.headers[q] = header;
        params.pass.sets[q] = header.set_of_slots;
        params.pass.ends[q] = header.norm == 0.0 ? ~0u : header.tiles_covering;
        params.pass.candidate_counts[counter(q)] = 0;
        params.pass.survivor_counts[counter(q)] = 0;
        params.pass.tickets[counter(q)] = 0;
    }
    __syncthreads();
    const QueryHeader query = header;
    if (query.norm == 0.0) {
        for (int i = threadIdx.x; i < padded; i += blockDim.x) params.pass.bytes[byte_index(params.layout, q, i, padded)] = 0;
        if (threadIdx.x == 0) {
            params.pass.scales[q] = {1.0f, 0.0f, 1.0f, 0};
            params.pass.thresholds[q] = UNREACHABLE;
            params.pass.floors[q] = 2.0f;
        }
        return;
    }
    if (!FORMULAS || !is_formula(query)) {
        copy_list(params, query);
        lifted_vector(params, query, values);
    } else {
        if (query.column == 0) copy_list(params, query);
        first_normal(params, query, values);
    }
    const QueryScale scale = round_query(values, params.lift.dim, padded, params.layout, params.pass.bytes, q);
    if (threadIdx.x == 0) params.pass.scales[q] = scale;
}

// Grid: (batch), where empty queries pad the batch. Dynamic shared memory: [lift.dim] float64.
extern "C" __global__ void prepare_queries(const PrepareQueriesParams params) { prepare<false>(params); }

// For passes with formulas: grid and shared memory as for prepare_queries.
extern "C" __global__ void prepare_formulas(const PrepareQueriesParams params) { prepare<true>(params); }

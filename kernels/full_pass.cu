// Full passes: every row's score by the contract's formula, for queries that no other pass answers.
// The cosine of each row with each vector (under the metric `dot`, the score) is computed once;
// then each query takes its own, and keeps or counts rows by its formula.
#include "abi/full_pass.cuh"
#include "formula_score.cuh"
#include "metric.cuh"
#include "prefetch.cuh"
#include "row_set.cuh"

// Sums each of 2 STEP values over a warp's lanes: in the end lane i has the sum of the i-th of 32.
// In the contract's order: by 16, 8, 4, 2, 1; additions commute. In each step a lane gives away
// half of its values and gets the other lane's half of them, so that 31 exchanges do the work of
// 160.
template <int STEP>
__device__ __forceinline__ double fold(const double (&values)[2 * STEP]) {
    const bool is_upper = threadIdx.x & STEP;
    double sums[STEP];
#pragma unroll
    for (int i = 0; i < STEP; i++) {
        const double kept = is_upper ? values[i + STEP] : values[i], given = is_upper ? values[i] : values[i + STEP];
        sums[i] = add(kept, __shfl_xor_sync(ALL_LANES, given, STEP));
    }
    if constexpr (STEP == 1) return sums[0];
    else return fold<STEP / 2>(sums);
}

// Widens vectors to float64, once for all rows. Grid: (vectors).
extern "C" __global__ void widen_vectors(const RowCosinesParams params) {
    const int dim = params.table.dim;
    const PassVector vector = params.vectors[blockIdx.x];
    const float* const from = vector.row != NOT_A_ROW ? components(params.table, vector.row)
                                                      : params.uploaded + static_cast<size_t>(vector.uploaded) * dim;
    double* const to = params.widened + static_cast<size_t>(blockIdx.x) * dim;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) to[i] = from[i];
}

// With AHEAD, the next rows are on their way to the second-level cache meanwhile.
template <int ROWS, int VECTORS, bool AHEAD>
__device__ __forceinline__ void compute_cosines(const RowCosinesParams& params) {
    constexpr int EACH = ROWS * VECTORS / WARP;  // cosines of a lane
    const TableView& table = params.table;
    const int lane = threadIdx.x % WARP, warps_of_block = blockDim.x / WARP;
    const uint32_t first_vector = blockIdx.y * VECTORS;
    const double* vectors[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        vectors[v] = params.widened + static_cast<size_t>(min(first_vector + v, params.vector_count - 1)) * table.dim;
    }
    const uint32_t warp = blockIdx.x * warps_of_block + threadIdx.x / WARP, warps = gridDim.x * warps_of_block;
    for (uint32_t from = ROWS * warp; from < params.rows; from += ROWS * warps) {
        const float* rows[ROWS];
        float next[ROWS] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            rows[r] = components(table, params.first + min(from + r, params.rows - 1));
            if (lane < table.dim) next[r] = rows[r][lane];
        }
        if (AHEAD && from + ROWS * (warps + 1) <= params.rows) {
            const float* const after = components(table, params.first + from + ROWS * warps);
            for (int i = lane * 32; i < ROWS * table.dim; i += WARP * 32) prefetch_line(after + i);
        }
        double sums[EACH][WARP] = {};  // of row r and vector v: the (v * ROWS + r)-th
#pragma unroll 1
        for (int i = lane; i < table.dim; i += WARP) {
            double x[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++) x[r] = next[r];
            if (i + WARP < table.dim) {
#pragma unroll
                for (int r = 0; r < ROWS; r++) next[r] = rows[r][i + WARP];
            }
#pragma unroll
            for (int v = 0; v < VECTORS; v++) {
                const double component = vectors[v][i];
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    double& sum = sums[(v * ROWS + r) / WARP][(v * ROWS + r) % WARP];
                    // The product of two float32 is exact, so this rounds as the contract does.
                    sum = __fma_rn(x[r], component, sum);
                }
            }
        }
        const uint32_t own_row = from + lane % ROWS;
        const double of_row = own_row < params.rows ? norm_or_bias(table, params.first + own_row) : 0.0;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const double dot = fold<WARP / 2>(sums[i]);
            const uint32_t own_vector = first_vector + (i * WARP + lane) / ROWS;
            if (own_vector >= params.vector_count || own_row >= params.rows) continue;
            const double vector_norm = params.vectors[own_vector].norm;
            const double score = has_score(table, of_row) ? score_under(table, dot, vector_norm, of_row) : __longlong_as_double(0x7ff8000000000000ll);
            params.cosines[static_cast<size_t>(own_vector) * params.rows + own_row] = score;
        }
    }
}

// The cosines of rows with vectors, in groups of vectors. Grid: (any, groups).
extern "C" __global__ void row_cosines(const RowCosinesParams params) {
    compute_cosines<TOGETHER_ROWS, TOGETHER_VECTORS, true>(params);
}
// The same for groups of half as many vectors, and twice the rows.
extern "C" __global__ void few_row_cosines(const RowCosinesParams params) {
    compute_cosines<2 * TOGETHER_ROWS, TOGETHER_VECTORS / 2, false>(params);
}

// Whether a row is among a query's excluded rows.
__device__ __forceinline__ bool is_excluded(const PassQuery& query, const uint32_t* excluded, uint32_t row) {
    uint32_t low = query.excluded, high = low + query.excluded_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (excluded[middle] == row) return true;
        if (excluded[middle] < row) low = middle + 1;
        else high = middle;
    }
    return false;
}

// The score of the i-th row. NaN if it has none.
__device__ __forceinline__ double score_of(const TakeRowsParams& params, const PassQuery& query, uint32_t i) {
    const auto cosine_with = [&](uint32_t word) {
        return params.cosines[static_cast<size_t>(params.words[query.words + word]) * params.rows + i];
    };
    if (query.kind == FORMULA_COSINE) return __dadd_rn(cosine_with(0), 0.0);
    FormulaScore<PassQuery> score(query);
    for (uint32_t word = 0; word < query.count; word++) score.add(word, cosine_with(word));
    return score.score();
}

// Adds 1 to the same counter for several of a warp's lanes at once.
__device__ __forceinline__ void add_together(uint32_t* counters, uint32_t index, bool adds) {
    const unsigned adding = __ballot_sync(ALL_LANES, adds);
    if (!adds) return;
    const unsigned same = __match_any_sync(adding, index);
    if (threadIdx.x % WARP == __ffs(same) - 1) atomicAdd(counters + index, static_cast<uint32_t>(__popc(same)));
}

// Keeps the rows that are hits of a query, as far as is known, and counts those that rank before
// its ranked rows. Grid: (blocks of rows, queries).
extern "C" __global__ void take_rows(const TakeRowsParams params) {
    const PassQuery& query = params.queries[blockIdx.y];
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = params.first + i;
    const bool is_there = i < params.rows && row < query.first_rows;
    const double score = is_there ? score_of(params, query, i) : __longlong_as_double(0x7ff8000000000000ll);
    // A comparison with NaN is false.
    bool is_hit = score >= query.least_kept, is_counted = score >= query.least_ranked;
    if ((is_hit || is_counted) && (!(score <= query.max_score) || !is_member(query.set, row) || is_excluded(query, params.excluded, row))) {
        is_hit = is_counted = false;
    }
    // How many of the ranked rows rank before this one, or are it.
    uint32_t low = 0, high = is_counted ? query.ranked_count : 0;
    while (low < high) {
        const uint32_t middle = (low + high) / 2, ranked = query.ranked + middle;
        if (ranks_before(score, row, params.ranked_scores[ranked], params.ranked_rows[ranked])) high = middle;
        else low = middle + 1;
    }
    add_together(params.counts, query.ranked + low, is_counted && low < query.ranked_count);
    const unsigned hits = __ballot_sync(ALL_LANES, is_hit);
    if (hits == 0) return;
    const int lane = threadIdx.x % WARP;
    uint32_t place = lane == 0 ? atomicAdd(params.found_count, static_cast<uint32_t>(__popc(hits))) : 0;
    place = __shfl_sync(ALL_LANES, place, 0) + __popc(hits & ((1u << lane) - 1));
    if (is_hit && place < params.capacity) params.found[place] = {score, row, blockIdx.y};
}

// Formulas of several cosines: 3CosMul and PairDirection. Their half-spaces are in
// docs/certificate.md, theorem 5.
#pragma once
#include "contract.cuh"
#include "formula_score.cuh"
#include "query.cuh"

// The scores of ROWS rows, by one warp, together so that their loads overlap. `words` are the
// formula's. Lane i gets the score of row i % ROWS; NaN if the row has none. With Sum = double
// these are the contract's bits.
template <typename Sum, int ROWS>
__device__ __forceinline__ double formula_score(const Formula& formula, const TableView& table, const uint32_t (&words)[FORMULA_WORDS],
                                                const uint32_t (&rows)[ROWS]) {
    constexpr int TOGETHER = 3;  // words; most formulas have three
    const int lane = threadIdx.x % WARP, own = lane % ROWS;
    // Lanes divide the words' cosines among themselves: a division takes as long for one as for
    // all.
    const uint32_t own_word = lane / ROWS % TOGETHER;
    const float* addresses[ROWS];
    double row_norm = 0.0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        addresses[r] = components(table, rows[r]);
        if (own == r) row_norm = table.norms[rows[r]];
    }
    FormulaScore<Formula> score(formula);
    for (uint32_t first = 0; first < formula.count; first += TOGETHER) {
        const float* vectors[TOGETHER];
        double norm = 0.0;
#pragma unroll
        for (uint32_t i = 0; i < TOGETHER; i++) {
            const uint32_t word = words[min(first + i, formula.count - 1)];
            vectors[i] = components(table, word);
            if (own_word == i) norm = table.norms[word];
        }
        Sum dots[TOGETHER][ROWS];
        warp_dots(addresses, vectors, table.dim, dots);
        Sum dot = dots[0][0];
#pragma unroll
        for (int i = 0; i < TOGETHER * ROWS; i++) {
            if (own_word == i / ROWS && own == i % ROWS) dot = dots[i / ROWS][i % ROWS];
        }
        const double cosine_of_word = cosine(dot, norm, row_norm);
#pragma unroll
        for (uint32_t i = 0; i < TOGETHER; i++) {
            const double one = __shfl_sync(ALL_LANES, cosine_of_word, i * ROWS + own);
            if (first + i < formula.count) score.add(first + i, one);
        }
    }
    return row_norm == 0.0 ? __longlong_as_double(0x7ff8000000000000ll) : score.score();
}

// A column with a shorter normal has no certificate: divided by it, roundings would be too large.
constexpr double LEAST_NORMAL = 0.01;
// The least guess of a score: a slope of zero would leave out Y.
constexpr double LEAST_LIKELY = 0.01;

// A formula's power. Those of few words need no general one, which takes about a microsecond.
__device__ __forceinline__ double formula_power(double x, double power) {
    return power == 1.0 ? x : power == 0.5 ? sqrt(x) : pow(x, power);
}

// A lower bound of the cosine between a column's vector and every row of its piece whose score is
// at least `floor`.
// -infinity if there is none.
__device__ __forceinline__ float column_floor(const FormulaColumn& column, double power, double floor) {
    if (!(floor > 0.0)) return -INFINITY;
    const double low = column.low_offset + formula_power(column.low_factor * floor, power) * (1.0 - FORMULA_ROUNDING);
    const double high = column.high_offset + formula_power(column.high_factor * floor, power) * (1.0 - FORMULA_ROUNDING);
    return __double2float_rd((fmin(low, high) - FORMULA_ROUNDING) / column.norm - FORMULA_ROUNDING);
}

// Copies the words of a formula into shared memory. Called by all threads.
__device__ __forceinline__ void copy_words(uint32_t (&to)[FORMULA_WORDS], const QueryHeader& query, const uint32_t* excluded) {
    if (threadIdx.x < FORMULA_WORDS) to[threadIdx.x] = excluded[query.words + threadIdx.x];
}

// Copies a formula into shared memory: in registers it would take as many as a row. Called by all
// threads; ends with a barrier.
__device__ __forceinline__ void copy_formula(Formula& to, const Formula& from) {
    constexpr int PARTS = sizeof(Formula) / sizeof(double);
    if (threadIdx.x < PARTS) reinterpret_cast<double*>(&to)[threadIdx.x] = reinterpret_cast<const double*>(&from)[threadIdx.x];
    __syncthreads();
}

__device__ __forceinline__ bool is_formula(const QueryHeader& query) { return query.formula != NOT_A_FORMULA; }

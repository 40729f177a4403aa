// The normals of a formula's half-spaces.
#pragma once
#include "formula.cuh"
#include "rotation.cuh"

// Makes the unit normal of a column of a formula, [dim] in shared memory. Its slope depends on
// `likely`, a guess of the k-th best score. `formula` and its `words` are in shared memory. Called
// by all threads, at most 512; ends with a barrier.
__device__ __forceinline__ FormulaColumn make_normal(const Formula& formula, const TableView& table, const uint32_t (&words)[FORMULA_WORDS],
                                                     uint32_t column, double likely, double* normal) {
    __shared__ double weights[FORMULA_WORDS];  // over the words' norms
    __shared__ double space[16];
    static_assert(FORMULA_COLUMNS == 3, "four cuts");
    const double low = column == 0 ? formula.cut_0 : column == 1 ? formula.cut_1 : formula.cut_2;
    const double high = column == 0 ? formula.cut_1 : column == 1 ? formula.cut_2 : formula.cut_3;
    const double low_factor = column == 0 ? formula.factor_0 : column == 1 ? formula.factor_1 : formula.factor_2;
    const double high_factor = column == 0 ? formula.factor_1 : column == 1 ? formula.factor_2 : formula.factor_3;
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
    for (int i = threadIdx.x; i < table.dim; i += blockDim.x) {
        double sum = 0.0;
#pragma unroll 4
        for (uint32_t w = 0; w < formula.count; w++) sum += weights[w] * components(table, words[w])[i];
        normal[i] = sum;
        square += sum * sum;
    }
    square = block_combine(square, space, [](double a, double b) { return a + b; });
    const double norm = sqrt(square);
    for (int i = threadIdx.x; i < table.dim; i += blockDim.x) {
        normal[i] = norm > LEAST_NORMAL ? normal[i] / norm : i == 0 ? 1.0 : 0.0;
    }
    __syncthreads();
    return {formula.offset - slope * low, low_factor, formula.offset - slope * high, high_factor, norm};
}

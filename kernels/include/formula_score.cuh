// The formulas of several cosines: 3CosMul and PairDirection.
#pragma once
#include "abi/formulas.cuh"
#include "contract.cuh"

// A formula's score, from a row's cosines in the order of its words. Sums and products are rounded
// one by one, as the contract's are (crates/contract/src/scoring). A Formula has `kind`,
// `positive`, `at_c` and `length`.
template <class Formula>
struct FormulaScore {
    const Formula& formula;
    double above = 1.0, below = 1.0;
    double cosines[3];

    __device__ explicit FormulaScore(const Formula& f) : formula(f) {}

    __device__ void add(uint32_t word, double cosine) {
        if (formula.kind == FORMULA_DIRECTION) {
            cosines[0] = word == 0 ? cosine : cosines[0];
            cosines[1] = word == 1 ? cosine : cosines[1];
            cosines[2] = word == 2 ? cosine : cosines[2];
            return;
        }
        const double factor = __dmul_rn(__dadd_rn(cosine, 1.0), 0.5);  // half of it is exact
        if (word < formula.positive) above = __dmul_rn(above, factor);
        else below = __dmul_rn(below, __dadd_rn(factor, FORMULA_EPSILON));
    }

    // NaN if the row is skipped.
    __device__ double score() const {
        if (formula.kind != FORMULA_DIRECTION) return __dadd_rn(__ddiv_rn(above, below), 0.0);
        const double square = __dsub_rn(2.0, __dmul_rn(2.0, cosines[1]));
        if (square < FORMULA_LEAST_SQUARE) return __longlong_as_double(0x7ff8000000000000ll);
        const double step = __dsub_rn(__dsub_rn(cosines[0], cosines[2]), formula.at_c);
        return __dadd_rn(__ddiv_rn(step, __dmul_rn(__dsqrt_rn(square), formula.length)), 0.0);
    }
};

// The contract's score: float64 from float32 components, in the one order of summation that every
// engine keeps. A warp's lanes are the contract's 32 lanes.
#pragma once
#include <cstdint>

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

// Dot product of two vectors of `dim` float32, by one warp; every lane gets the result.
//
// Component i goes to lane i mod 32 in ascending order; then the lanes fold by 16, 8, 4, 2, 1. The
// product of two float32 is exact in float64, so the fused multiply-add rounds as the contract does.
// A butterfly adds the same pairs as the fold (addition commutes), so all lanes hold lane 0's bits.
template <class Query>
__device__ __forceinline__ double warp_dot(const float* __restrict__ row, const Query* query, int dim) {
    double sum = 0.0;
#pragma unroll 4
    for (int i = threadIdx.x % WARP; i < dim; i += WARP) {
        sum = __fma_rn(static_cast<double>(row[i]), static_cast<double>(query[i]), sum);
    }
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        sum = __dadd_rn(sum, __shfl_xor_sync(ALL_LANES, sum, step));
    }
    return sum;
}

// Cosine similarity from a dot product and two norms, neither of them zero; clamped to [-1, 1].
__device__ __forceinline__ double cosine(double dot, double query_norm, double row_norm) {
    return fmin(fmax(__ddiv_rn(dot, __dmul_rn(query_norm, row_norm)), -1.0), 1.0);
}

// The contract's ranking: the higher score first, between equal scores the lower row.
__device__ __forceinline__ bool ranks_before(double score, uint32_t row, double other_score, uint32_t other_row) {
    return score > other_score || (score == other_score && row < other_row);
}

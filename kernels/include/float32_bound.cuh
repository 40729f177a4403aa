// A bound of the contract's score from a dot product in float32, as `warp_dot<float>` makes it. The
// theorem is in docs/certificate.md.
#pragma once
#include <cuda_runtime.h>

// Between these, neither norms nor their product nor any partial sum leave float32's normal range by
// enough to matter; outside, a row is scored in float64 at once.
constexpr float SMALLEST_NORM = 0x1p-100f, LARGEST_NORM = 0x1p100f;

// How far the float32 cosine of vectors of `dim` components is from the true one, at most: one rounding
// for each of a lane's additions and of the fold's five, and for norms, product, quotient and the sum
// below; the rest is to spare.
__device__ __forceinline__ float float32_error(int dim) { return static_cast<float>((dim + 31) / 32 + 16) * 0x1p-24f; }

// Whether the score of a row with this float32 dot product may reach `floor`.
__device__ __forceinline__ bool may_reach(float dot, float query_norm, double row_norm, float error, float floor) {
    const float norm = static_cast<float>(row_norm), product = __fmul_rn(query_norm, norm);
    const bool within = query_norm >= SMALLEST_NORM && norm >= SMALLEST_NORM && product >= SMALLEST_NORM &&
                        product <= LARGEST_NORM;
    return !within || __fadd_rn(__fdiv_rn(dot, product), error) >= floor;
}

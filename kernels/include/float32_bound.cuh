// Bounds the contract's score, given a dot product in float32 as `warp_dot<float>` computes it. The
// theorem is in docs/certificate.md.
#pragma once
#include <cuda_runtime.h>

// If the norms and their product are within these limits, neither they nor any partial sum leave
// float32's normal range by enough to matter. Otherwise the row is scored in float64 without a
// float32 test.
constexpr float SMALLEST_NORM = 0x1p-100f, LARGEST_NORM = 0x1p100f;

// The maximum error of the float32 cosine of vectors of `dim` components. It counts one rounding
// for each addition of a lane and each of the fold's five, and those of norms, product, quotient
// and the sum below. The rest of the 16 is reserve.
__device__ __forceinline__ float float32_error(int dim) { return static_cast<float>((dim + 31) / 32 + 16) * 0x1p-24f; }

// Whether the score of a row with this float32 dot product may reach `floor`.
__device__ __forceinline__ bool may_reach(float dot, float query_norm, double row_norm, float error, float floor) {
    const float norm = static_cast<float>(row_norm), product = __fmul_rn(query_norm, norm);
    const bool within = query_norm >= SMALLEST_NORM && norm >= SMALLEST_NORM && product >= SMALLEST_NORM &&
                        product <= LARGEST_NORM;
    return !within || __fadd_rn(__fdiv_rn(dot, product), error) >= floor;
}

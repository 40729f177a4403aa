// What the kernels for hidden dense layers share: a ReLU that hides no overflow, and where outputs
// are.
#pragma once
#include <cuda_fp16.h>

#include "abi/heads.cuh"

// NaN stays NaN, and what float16 can't hold becomes NaN. So a class score is finite only if
// nothing overflowed on the way.
__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }
__device__ __forceinline__ __half2 activation(float x, float y) {
    const auto held = [](float z) { return relu(z) <= 65504.0f ? relu(z) : __int_as_float(0x7fffffff); };
    return __floats2half2_rn(held(x), held(y));
}

// The place of an output of a text in a tile's outputs, `[output_count / 8, HEAD_TEXTS, 8]`.
__device__ __forceinline__ __half* place_of(__half* tile, uint32_t output, int text) {
    return tile + (static_cast<size_t>(output / 8) * HEAD_TEXTS + text) * 8 + output % 8;
}

// A fixed random rotation of a vector: signs, then a Hadamard transform, over the first p
// components and again over the last p, where p is the largest power of two that is at most `dim`.
// It is the rotation of contract's certificate/rotation.rs, with the same constants.
//
// It is orthogonal, so cosines do not change. It spreads a heavy component over many others, so
// that 8 or 4 bits represent the vector better. It is computed in float64: a component has at most
// 2 * (12 + 2) roundings, each of at most 2^-53 of the norm, so the result for a unit vector is
// within 2^-47 of the exact one (docs/certificate.md).
#pragma once
#include "abi/resident.cuh"

__device__ __forceinline__ double rotation_sign(uint32_t component, uint32_t half) {
    uint32_t h = component * ROTATION_HASH_0 + half * ROTATION_HASH_1 + ROTATION_HASH_2;
    h ^= h >> 15;
    h *= ROTATION_HASH_3;
    h ^= h >> 12;
    h *= ROTATION_HASH_4;
    h ^= h >> 15;
    return h & 1u ? 1.0 : -1.0;
}

// One signed, normalised Hadamard transform of `size` values (a power of two), in place, by a
// block.
__device__ __forceinline__ void hadamard(double* values, int size, uint32_t half) {
    const double scale = rsqrt(static_cast<double>(size));
    // Steps within a warp's values need neither shared memory nor barriers.
    const int in_warp = min(size, 32);
    for (int i = threadIdx.x; i < (size + 31) / 32 * 32; i += blockDim.x) {
        double value = i < size ? values[i] * (rotation_sign(i, half) * scale) : 0.0;
        for (int step = 1; step < in_warp; step *= 2) {
            const double other = __shfl_xor_sync(0xffffffffu, value, step);
            value = i & step ? other - value : value + other;
        }
        if (i < size) values[i] = value;
    }
    __syncthreads();
    for (int step = in_warp; step < size; step *= 2) {
        for (int i = threadIdx.x; i < size / 2; i += blockDim.x) {
            const int a = 2 * step * (i / step) + i % step, b = a + step;
            const double x = values[a], y = values[b];
            values[a] = x + y;
            values[b] = x - y;
        }
        __syncthreads();
    }
}

// Rotates `values` [dim] in shared memory. Called by all threads of the block; ends with a barrier.
__device__ __forceinline__ void rotate(double* values, int dim) {
    const int size = 1 << (31 - __clz(dim));
    hadamard(values, size, 1);
    if (size < dim) hadamard(values + dim - size, size, 2);
}

// The sum or maximum of one value per thread, over the whole block, which has at most WARPS warps.
template <class Value, int WARPS, class Combine>
__device__ __forceinline__ Value block_combine(Value value, Value (&space)[WARPS], Combine combine) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) space[threadIdx.x / 32] = value;
    __syncthreads();
    value = space[0];
    for (int warp = 1; warp < static_cast<int>(blockDim.x) / 32; warp++) value = combine(value, space[warp]);
    return value;
}

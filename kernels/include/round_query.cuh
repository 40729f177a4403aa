// Rounds a unit vector to 8 bits: rotated, scaled and laid out as the next scan needs it.
#pragma once
#include "query.cuh"
#include "rotation.cuh"

// The index of the byte of component `i` of query `q`; `padded` is the number of components with
// padding.
__device__ __forceinline__ size_t byte_index(Layout layout, int q, int i, int padded) {
    const int chunk = i / 16, in_chunk = i % 16;
    if (layout == Layout::Fragments16) {
        // 64 components are two steps of 32. Lane t of a quad has the whole chunk 4 * (i / 64) + t,
        // whose four words are both halves of both steps.
        const int t = chunk % 4, word = in_chunk / 4, step = 2 * (i / 64) + word / 2;
        const int lane = (q % 8) * 4 + t, reg = 2 * (word % 2) + q % 16 / 8;
        return ((static_cast<size_t>(q / 16) * (padded / 32) + step) * 32 + lane) * 16 + reg * 4 + i % 4;
    }
    if (layout == Layout::Fragments64) {
        const int step = i / 32, warp = q % 64 / 16, lane = (q % 8) * 4 + in_chunk / 4;
        const int reg = 2 * (chunk % 2) + q % 16 / 8;
        return (((static_cast<size_t>(q / 64) * (padded / 32) + step) * 4 + warp) * 32 + lane) * 16 + reg * 4 + i % 4;
    }
    if (layout == Layout::Chunks64) {
        return ((static_cast<size_t>(q / 64) * (padded / 16) + chunk) * 64 + q % 64) * 16 + in_chunk;
    }
    return static_cast<size_t>(q) * padded + i;
}

// Rounds the unit vector `values`, [dim] in shared memory, which it overwrites, to those of `bytes`,
// [batch, padded], that are query `q`'s. `padded` is the number of components with padding. Returns
// its scale, in thread 0. Called by all threads, at most 512.
__device__ __forceinline__ QueryScale round_query(double* values, int dim, int padded, Layout layout, uint8_t* bytes, int q) {
    __shared__ double space[16];
    __shared__ int sum_space[16];
    rotate(values, dim);
    double peak = 0.0;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) peak = fmax(peak, fabs(values[i]));
    peak = block_combine(peak, space, [](double a, double b) { return fmax(a, b); });
    const float step = __double2float_ru(peak / 127.0);
    const double inverse_step = 1.0 / step;
    double rest_square = 0.0;
    int sum = 0, square = 0;  // at most 4096 * 127 * 127 < 2^31
    for (int i = threadIdx.x; i < padded; i += blockDim.x) {
        const double z = i < dim ? values[i] : 0.0;
        const int n = max(-127, min(127, __double2int_rn(z * inverse_step)));
        const double rest = z - static_cast<double>(n) * step;
        rest_square += rest * rest;
        sum += n;
        square += n * n;
        bytes[byte_index(layout, q, i, padded)] = static_cast<uint8_t>(static_cast<int8_t>(n));
    }
    const auto add_int = [](int a, int b) { return a + b; };
    rest_square = block_combine(rest_square, space, [](double a, double b) { return a + b; });
    sum = block_combine(sum, sum_space, add_int);
    square = block_combine(square, sum_space, add_int);
    const float residual = __double2float_ru(sqrt(rest_square) * (1.0 + 1e-9) + 1e-9);
    const float norm = __double2float_ru(sqrt(static_cast<double>(square)) * step * (1.0 + 1e-9));
    return {step, residual, norm, sum};
}

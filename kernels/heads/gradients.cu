// Gradients of an expander: sums of rows with weights. `dW[v]` is a sum of tokens' vectors, and
// `dX[l]` one of terms' vectors.
//
// A group of entries is one sum, in float64 from +0.0 in the order of its entries, rounded to
// float32 once. The product of two float32 is exact in float64. So the CPU gives the same bits.
#include "abi/heads/expand.cuh"

// Where the sum of a group goes.
__device__ __forceinline__ float* sum_of(const SumRowsParams& params, uint32_t group) {
    const uint32_t to = params.targets != nullptr ? params.targets[group] : group;
    return params.sums + static_cast<size_t>(to) * params.dim;
}

// The sum of the weights of a group, by one thread of it.
__device__ __forceinline__ void sum_weights(const SumRowsParams& params, uint32_t group, uint32_t begin, uint32_t end) {
    double total = 0.0;
    for (uint32_t entry = begin; entry < end; entry++) total = __dadd_rn(total, static_cast<double>(params.weights[entry]));
    params.totals[group] = __double2float_rn(total);
}

// Entries whose rows a warp loads before it adds them.
constexpr int AHEAD = 2;

// A warp has a group and part of its components, several for each lane, so that their loads
// overlap: 32 would wait for memory ten times as often. Grid: (groups / warps of a block,
// components / (32 * SUMMED_TOGETHER)).
extern "C" __global__ void sum_by_group(const SumRowsParams params) {
    constexpr int TOGETHER = SUMMED_TOGETHER;
    const uint32_t group = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const int first = blockIdx.y * 32 * TOGETHER + threadIdx.x % 32, dim = params.dim;
    if (group >= params.groups) return;
    const uint32_t begin = params.begins[group], end = params.begins[group + 1];
    double sums[TOGETHER] = {};
    for (uint32_t at = begin; at < end; at += AHEAD) {
        float weights[AHEAD], components[AHEAD][TOGETHER];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const bool is_entry = at + k < end;
            const uint32_t entry = is_entry ? at + k : at;
            const float* const row = params.rows + static_cast<size_t>(params.indices[entry]) * dim;
            weights[k] = is_entry ? params.weights[entry] : 0.0f;
#pragma unroll
            for (int j = 0; j < TOGETHER; j++) components[k][j] = is_entry && first + 32 * j < dim ? row[first + 32 * j] : 0.0f;
        }
        // Where there is no entry, 0 times 0 is added, which changes no sum: none is -0.0.
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const double weight = weights[k];
#pragma unroll
            for (int j = 0; j < TOGETHER; j++) sums[j] = __fma_rn(weight, static_cast<double>(components[k][j]), sums[j]);
        }
    }
    float* const to = sum_of(params, group);
#pragma unroll
    for (int j = 0; j < TOGETHER; j++) {
        if (first + 32 * j < dim) to[first + 32 * j] = __double2float_rn(sums[j]);
    }
    if (first == 0 && params.totals != nullptr) sum_weights(params, group, begin, end);
}

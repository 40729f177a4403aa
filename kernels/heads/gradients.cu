// Gradients of an expander: sums of rows with weights. `dW[v]` is a sum of tokens' vectors, and `dX[l]` one of terms' vectors.
//
// A group of entries is one sum, in float64 from +0.0 in the order of its entries, rounded to float32 once. The product of two
// float32 is exact in float64. So both ways, and the CPU, give the same bits.
#include "abi/heads/expand.cuh"

// Where the sum of a group goes.
__device__ __forceinline__ float* sum_of(const SumRowsParams& params, uint32_t group) {
    const uint32_t to = params.targets != nullptr ? params.targets[group] : group;
    return params.sums + static_cast<size_t>(to) * params.dim;
}

// Components that a lane sums together, so that their loads overlap: a warp then takes 320.
constexpr int TOGETHER = 10;

__device__ __forceinline__ void sum_weights(const SumRowsParams& params, uint32_t group, uint32_t begin, uint32_t end) {
    double total = 0.0;
    for (uint32_t entry = begin; entry < end; entry++) total = __dadd_rn(total, static_cast<double>(params.weights[entry]));
    params.totals[group] = __double2float_rn(total);
}

// A warp has a group, and its lanes the components. Grid: (groups / warps of a block).
extern "C" __global__ void sum_by_group(const SumRowsParams params) {
    const uint32_t group = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32, dim = params.dim;
    if (group >= params.groups) return;
    const uint32_t begin = params.begins[group], end = params.begins[group + 1];
    float* const to = sum_of(params, group);
    for (int first = lane; first < dim; first += 32 * TOGETHER) {
        double sums[TOGETHER] = {};
        for (uint32_t entry = begin; entry < end; entry++) {
            const float* const row = params.rows + static_cast<size_t>(params.indices[entry]) * dim;
            const double weight = params.weights[entry];
            float components[TOGETHER];
#pragma unroll
            for (int j = 0; j < TOGETHER; j++) components[j] = row[min(first + 32 * j, dim - 1)];
#pragma unroll
            for (int j = 0; j < TOGETHER; j++) sums[j] = __fma_rn(weight, static_cast<double>(components[j]), sums[j]);
        }
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            if (first + 32 * j < dim) to[first + 32 * j] = __double2float_rn(sums[j]);
        }
    }
    if (lane == 0 && params.totals != nullptr) sum_weights(params, group, begin, end);
}

// A block has 32 components of some groups, one warp each: so all blocks that run read the same part of the rows, which stays in
// the second-level cache if it is used again. Grid: (groups / warps of a block, components / 32).
extern "C" __global__ void sum_by_component(const SumRowsParams params) {
    const uint32_t group = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32, i = blockIdx.y * 32 + lane;
    if (group >= params.groups) return;
    const uint32_t begin = params.begins[group], end = params.begins[group + 1];
    if (i >= params.dim) return;
    double sum = 0.0;
#pragma unroll 4
    for (uint32_t entry = begin; entry < end; entry++) {
        const float component = params.rows[static_cast<size_t>(params.indices[entry]) * params.dim + i];
        sum = __fma_rn(static_cast<double>(params.weights[entry]), static_cast<double>(component), sum);
    }
    sum_of(params, group)[i] = __double2float_rn(sum);
    if (i == 0 && params.totals != nullptr) sum_weights(params, group, begin, end);
}

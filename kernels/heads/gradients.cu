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

// Component `i` of the sum of the entries [begin, end).
__device__ __forceinline__ float sum_component(const SumRowsParams& params, uint32_t begin, uint32_t end, int i) {
    double sum = 0.0;
#pragma unroll 4
    for (uint32_t entry = begin; entry < end; entry++) {
        const float component = params.rows[static_cast<size_t>(params.indices[entry]) * params.dim + i];
        sum = __fma_rn(static_cast<double>(params.weights[entry]), static_cast<double>(component), sum);
    }
    return __double2float_rn(sum);
}

// A block has a group, and its threads the components. Grid: (groups).
extern "C" __global__ void sum_by_group(const SumRowsParams params) {
    const uint32_t group = blockIdx.x, begin = params.begins[group], end = params.begins[group + 1];
    float* const to = sum_of(params, group);
    for (int i = threadIdx.x; i < params.dim; i += blockDim.x) to[i] = sum_component(params, begin, end, i);
    if (threadIdx.x != 0 || params.totals == nullptr) return;
    double total = 0.0;
    for (uint32_t entry = begin; entry < end; entry++) total = __dadd_rn(total, static_cast<double>(params.weights[entry]));
    params.totals[group] = __double2float_rn(total);
}

// A block has 32 components of some groups, one warp each: so all blocks that run read the same part of the rows, which stays in
// the second-level cache if it is used again. Grid: (groups / warps of a block, components / 32).
extern "C" __global__ void sum_by_component(const SumRowsParams params) {
    const uint32_t group = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32, i = blockIdx.y * 32 + lane;
    if (group >= params.groups) return;
    const uint32_t begin = params.begins[group], end = params.begins[group + 1];
    if (i < params.dim) sum_of(params, group)[i] = sum_component(params, begin, end, i);
    if (i != 0 || params.totals == nullptr) return;
    double total = 0.0;
    for (uint32_t entry = begin; entry < end; entry++) total = __dadd_rn(total, static_cast<double>(params.weights[entry]));
    params.totals[group] = __double2float_rn(total);
}

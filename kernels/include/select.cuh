// Finds the k-th largest of many certified lower bounds, rounded down, with one block.
#pragma once
#include "contract.cuh"

// Lower bounds of cosines become integers, called keys: steps of 2^-20 from -2 up, clamped at both
// ends.
constexpr int SELECT_BITS = 11;  // for each of the two digits
constexpr int SELECT_BINS = 1 << SELECT_BITS;
constexpr float NO_THRESHOLD = -2.0f;  // below every score

constexpr int SELECT_CACHED = 2560;  // keys kept in shared memory between the two digits

struct SelectSpace {
    unsigned cached[SELECT_CACHED];
    unsigned histogram[SELECT_BINS];
    unsigned warp_sum[32];
    int bin;
    unsigned above;
};

__device__ __forceinline__ unsigned bound_key(float bound) {
    // NaN becomes 0: it bounds nothing, so it must not raise a threshold.
    const float scaled = (bound + 2.0f) * 1048576.0f;
    return scaled > 0.0f ? min(static_cast<unsigned>(scaled), (1u << (2 * SELECT_BITS)) - 1u) : 0u;
}

// The lower edge of the key's step, minus one step for the rounding of `bound + 2`.
__device__ __forceinline__ float key_edge(unsigned key) {
    return key <= 1u ? NO_THRESHOLD : static_cast<float>(static_cast<int>(key) - 1 - (2 << 20)) * (1.0f / 1048576.0f);
}

// Finds the bin of the histogram that contains the k-th largest key. Called by all threads: 256 or
// more, a multiple of 32 that divides SELECT_BINS.
__device__ __forceinline__ void find_bin(SelectSpace& space, unsigned k) {
    const int threads = blockDim.x, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int each = SELECT_BINS / threads;
    // Thread 0 has the highest bins, so that sums run from the largest value down.
    const int first = SELECT_BINS - each * (threadIdx.x + 1);
    unsigned own = 0;
    for (int i = 0; i < each; i++) own += space.histogram[first + i];
    unsigned before = own;
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
        const unsigned other = __shfl_up_sync(ALL_LANES, before, step);
        if (lane >= step) before += other;
    }
    if (lane == WARP - 1) space.warp_sum[warp] = before;
    __syncthreads();
    for (int w = 0; w < warp; w++) before += space.warp_sum[w];
    before -= own;
    if (before < k && before + own >= k) {
        unsigned above = before;
        for (int i = each - 1; i >= 0; i--) {
            const unsigned here = space.histogram[first + i];
            if (above + here >= k) {
                space.bin = first + i;
                space.above = above;
                break;
            }
            above += here;
        }
    }
    __syncthreads();
}

// The k-th largest (k from 1) of the keys `key(0)` to `key(count - 1)`, or 0 if there are fewer
// than k. Called by all threads.
template <class Key>
__device__ unsigned select_key(SelectSpace& space, int count, unsigned k, Key key) {
    if (k == 0 || count < 0 || static_cast<unsigned>(count) < k) return 0;
    unsigned high = 0;
#pragma unroll 1
    for (int digit = 1; digit >= 0; digit--) {
        for (int i = threadIdx.x; i < SELECT_BINS; i += blockDim.x) space.histogram[i] = 0;
        __syncthreads();
        if (digit == 1) {
#pragma unroll 4
            for (int i = threadIdx.x; i < count; i += blockDim.x) {
                const unsigned value = key(i);
                if (i < SELECT_CACHED) space.cached[i] = value;
                atomicAdd(&space.histogram[value >> SELECT_BITS], 1u);
            }
        } else {
#pragma unroll 4
            for (int i = threadIdx.x; i < count; i += blockDim.x) {
                // A thread reads the keys that it wrote itself.
                const unsigned value = i < SELECT_CACHED ? space.cached[i] : key(i);
                if (value >> SELECT_BITS == high) atomicAdd(&space.histogram[value % SELECT_BINS], 1u);
            }
        }
        __syncthreads();
        find_bin(space, k);
        if (digit == 1) {
            high = space.bin;
            k -= space.above;
        } else {
            high = high << SELECT_BITS | space.bin;
        }
        __syncthreads();
    }
    return high;
}

// The k-th largest of `count` lower bounds, rounded down by at most 2^-19; NO_THRESHOLD if there
// are fewer than k.
template <class Bound>
__device__ float select_bound(SelectSpace& space, int count, unsigned k, Bound bound) {
    return key_edge(select_key(space, count, k, [&](int i) { return bound_key(bound(i)); }));
}

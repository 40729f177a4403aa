// Which tiles a scan reads. `TileWalk` is made in crates/gpu-core/src/search/plan.rs.
#pragma once
#include "abi/search.cuh"

// The tile of index `i` of a walk.
__device__ __forceinline__ uint32_t tile_at(const TileWalk& walk, uint32_t i) {
    if (i < walk.dense) return i;
    const uint32_t j = i - walk.dense;
    return walk.dense + walk.start + (j + __umulhi(j, walk.reciprocal)) * walk.spacing;
}

// The number of a sample's tiles below `tile`. A sample has no `start` and no `reciprocal`.
__device__ __forceinline__ uint32_t walked_before(const TileWalk& sample, uint32_t tile) {
    const uint32_t dense = min(tile, sample.dense);
    return min(sample.count, dense + (tile - dense + sample.spacing - 1) / sample.spacing);
}

// The lowest of the ends of the queries of a warp.
__device__ __forceinline__ uint32_t lowest_in_warp(uint32_t end) {
    for (int step = 16; step > 0; step /= 2) end = min(end, __shfl_xor_sync(~0u, end, step));
    return end;
}

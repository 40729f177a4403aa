// What the rows of a tile of the 8-bit table share.
#pragma once
#include "abi/resident.cuh"

// The least step, for rows that are much shorter than the longest (metric `dot`): thresholds in
// smaller steps would overflow float32. What rounding to it loses is below `SLACK`.
constexpr float LEAST_STEP = 0x1p-24f;

// The residual of tiles that are empty or not full. It is so large that none of their rows is ever
// skipped and none raises a threshold.
constexpr float UNBOUNDED_RESIDUAL = 4.0f;

// The step for rows whose largest component this is.
__device__ __forceinline__ float step_for(float peak) { return fmaxf(__fdiv_ru(peak, 127.0f), LEAST_STEP); }

// The scale of a tile with this step and, if it is full, this residual.
__device__ __forceinline__ TileScale tile_scale(float step, float residual, bool full) {
    const float r = full ? residual : UNBOUNDED_RESIDUAL;
    return {1.0f / step, __fdiv_ru(r, step), step, r};
}

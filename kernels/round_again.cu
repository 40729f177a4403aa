// Rounds all rows of a table again after they have changed, much faster than they were rounded at
// first (docs/certificate.md): a row stays in its slot, a tile's step is made from the largest
// component that the tile had before, and the rotation is in float32.
#include "abi/resident.cuh"
#include "rotation.cuh"
#include "tile_scale.cuh"

// By how much a row rotated in float32 may differ from the rotated row, which is at most 1 long: 2
// * (10 levels + 2 for the scale) + 2 for the lifting, each 2^-24, is less.
constexpr float ROTATION_ERROR = 2e-6f;

// Covers the roundings of sums of squares.
constexpr float SQUARE_ERROR = 1e-5f;

// The least peak of a tile: zero stands for no peak.
constexpr float LEAST_PEAK = 0x1p-126f;

// One signed, normalised Hadamard transform of 32 * VALUES values of a warp: lane + 32 j is
// `values[j]`. The signs of a lane are bits.
template <int VALUES>
__device__ __forceinline__ void warp_hadamard(float (&values)[VALUES], uint32_t signs, float scale) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < VALUES; j++) values[j] *= signs >> j & 1 ? -scale : scale;
#pragma unroll
    for (int step = 1; step < VALUES; step *= 2) {
#pragma unroll
        for (int j = 0; j < VALUES; j++) {
            if (j & step) continue;
            const float a = values[j], b = values[j + step];
            values[j] = a + b;
            values[j + step] = a - b;
        }
    }
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
#pragma unroll
        for (int j = 0; j < VALUES; j++) {
            const float other = __shfl_xor_sync(0xffffffffu, values[j], step);
            values[j] = lane & step ? other - values[j] : values[j] + other;
        }
    }
}

// Dynamic shared memory: [warps of a block, lift.dim] float32. Grid: (tiles). `lift.dim` is from 32
// * VALUES to 64 * VALUES - 1.
template <int VALUES>
__device__ __forceinline__ void round_again(const RoundAgainParams& params) {
    constexpr int SIZE = 32 * VALUES;
    extern __shared__ float buffers[];
    __shared__ float peak_space[32], residual_space[32], square_space[32];
    const TableView& table = params.table;
    const LiftView& lift = params.lift;
    const int dim = lift.dim, chunks = (dim + CHUNK8 - 1) / CHUNK8;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float* const row_values = buffers + warp * dim;
    const float divided = static_cast<float>(1.0 / lift.longest), scale = static_cast<float>(rsqrt(static_cast<double>(SIZE)));
    uint32_t signs[2] = {};
    for (int j = 0; j < VALUES; j++) {
        for (int half = 0; half < 2; half++) signs[half] |= (rotation_sign(lane + 32 * j, half + 1) < 0.0 ? 1u : 0u) << j;
    }
    const float peak_before = params.tile_peaks[blockIdx.x];
    const float step = peak_before > 0.0f ? step_for(peak_before) : params.scales[blockIdx.x].step;
    const float inverse_step = 1.0f / step;
    uint8_t* const tile = params.tiles8 + static_cast<size_t>(blockIdx.x) * chunks * TILE_ROWS * CHUNK_BYTES;
    float peak = 0.0f, residual_square = 0.0f, longest_square = 0.0f;
    bool full = true;
    for (int j = warp; j < TILE_ROWS; j += warps) {
        const uint32_t row = params.slot_rows[static_cast<size_t>(blockIdx.x) * TILE_ROWS + j];
        if (row == NOT_A_ROW) {
            full = false;
            continue;
        }
        const float* const components = table.components + static_cast<size_t>(row) * table.dim;
        for (int i = lane; i < table.dim; i += 32) row_values[i] = components[i] * divided;
        if (lane == 0 && dim > table.dim) row_values[table.dim] = static_cast<float>(table.biases[row] / lift.beta / lift.longest);
        __syncwarp();
        for (int half = 0; half < (SIZE < dim ? 2 : 1); half++) {
            float* const part = row_values + (half == 0 ? 0 : dim - SIZE);
            float values[VALUES];
#pragma unroll
            for (int k = 0; k < VALUES; k++) values[k] = part[lane + 32 * k];
            warp_hadamard(values, signs[half], scale);
#pragma unroll
            for (int k = 0; k < VALUES; k++) part[lane + 32 * k] = values[k];
            __syncwarp();
        }
        float rest_square = 0.0f, square = 0.0f;
        for (int i = lane; i < chunks * CHUNK8; i += 32) {
            const float y = i < dim ? row_values[i] : 0.0f;
            const int n = max(-127, min(127, __float2int_rn(y * inverse_step)));
            const float rest = fmaf(static_cast<float>(-n), step, y);
            rest_square += rest * rest;
            square += y * y;
            peak = fmaxf(peak, fabsf(y));
            tile[(i / CHUNK8) * (TILE_ROWS * CHUNK_BYTES) + j * CHUNK_BYTES + i % CHUNK8] = static_cast<uint8_t>(static_cast<int8_t>(n));
        }
        for (int other = 16; other > 0; other /= 2) {
            rest_square += __shfl_xor_sync(0xffffffffu, rest_square, other);
            square += __shfl_xor_sync(0xffffffffu, square, other);
        }
        residual_square = fmaxf(residual_square, rest_square);
        // Nothing is above NaN, so it stays.
        if (square > longest_square || isnan(square)) longest_square = square;
        __syncwarp();
    }
    peak = block_combine(peak, peak_space, [](float a, float b) { return fmaxf(a, b); });
    residual_square = block_combine(residual_square, residual_space, [](float a, float b) { return fmaxf(a, b); });
    longest_square = block_combine(longest_square, square_space, [](float a, float b) { return isnan(a) || a > b ? a : b; });
    full = __syncthreads_and(full);
    if (threadIdx.x != 0) return;
    const float residual = __fadd_ru(sqrtf(residual_square) * (1.0f + SQUARE_ERROR), ROTATION_ERROR);
    params.scales[blockIdx.x] = tile_scale(step, residual, full);
    params.tile_peaks[blockIdx.x] = fmaxf(peak, LEAST_PEAK);
    // The bits of numbers that are not negative have the order of the numbers, and those of NaN
    // come last.
    const auto bits = static_cast<unsigned long long>(__double_as_longlong(fabs(static_cast<double>(longest_square))));
    atomicMax(reinterpret_cast<unsigned long long*>(params.longest_square), bits);
}

#define ROUND_AGAIN(VALUES) \
    extern "C" __global__ void round_again_##VALUES(const RoundAgainParams params) { round_again<VALUES>(params); }

ROUND_AGAIN(1)
ROUND_AGAIN(2)
ROUND_AGAIN(4)
ROUND_AGAIN(8)
ROUND_AGAIN(16)
ROUND_AGAIN(32)

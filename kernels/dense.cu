// Hidden dense layers: outputs = ReLU(weights · inputs + bias), for tiles of texts.
#include "cp_async.cuh"
#include "dense.cuh"
#include "float_tile.cuh"
#include "ldmatrix.cuh"
#include "mma.cuh"

constexpr int PIECES = DENSE_INPUTS / 8;  // of a step
constexpr int WARPS = 8;

struct Stage {
    uint4 texts[PIECES][HEAD_TEXTS], outputs[PIECES][DENSE_OUTPUTS];
};
// Shared memory in bytes that the host asks for.
static_assert(sizeof(Stage) == 2 * DENSE_INPUTS * (HEAD_TEXTS + DENSE_OUTPUTS));

// On tensor cores. Grid: (tiles of outputs, tiles of texts). Dynamic shared memory: DENSE_STAGES
// stages.
extern "C" __global__ void dense_half(const DenseParams params) {
    extern __shared__ __align__(128) unsigned char memory[];
    Stage* const stages = reinterpret_cast<Stage*>(memory);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first_text = warp / 4 * 64, first_output = warp % 4 * 32;  // of the warp's 64 x 32
    const uint32_t steps = params.input_count / DENSE_INPUTS;
    const size_t tile_pieces = static_cast<size_t>(params.input_count / 8) * HEAD_TEXTS;
    const uint4* const texts = reinterpret_cast<const uint4*>(params.inputs) + blockIdx.y * tile_pieces;
    const uint4* const outputs = reinterpret_cast<const uint4*>(params.weights) + blockIdx.x * tile_pieces;
    static_assert(HEAD_TEXTS == DENSE_OUTPUTS);
    const auto load = [&](uint32_t step) {
        if (step < steps) {
            Stage& stage = stages[step % DENSE_STAGES];
            const size_t from = static_cast<size_t>(step) * PIECES * HEAD_TEXTS;
#pragma unroll
            for (int i = threadIdx.x; i < PIECES * HEAD_TEXTS; i += WARPS * 32) {
                copy_16(&stage.texts[0][i], texts + from + i);
                copy_16(&stage.outputs[0][i], outputs + from + i);
            }
        }
        copies_commit();
    };
    float sums[4][4][4] = {};  // by 16 texts, by 8 outputs
    for (int step = 0; step < DENSE_STAGES - 1; step++) load(step);
    for (uint32_t step = 0; step < steps; step++) {
        copies_wait<DENSE_STAGES - 2>();
        __syncthreads();
        load(step + DENSE_STAGES - 1);
        const Stage& stage = stages[step % DENSE_STAGES];
#pragma unroll
        for (int k = 0; k < PIECES; k += 2) {
            uint32_t a[4][4], b[2][4];
            // Four matrices are two pieces of 16 texts or outputs: lanes 0 to 15 have the first
            // piece's 16, lanes 16 to 31 the second's.
#pragma unroll
            for (int i = 0; i < 4; i++) load_matrices(a[i], &stage.texts[k + lane / 16][first_text + 16 * i + lane % 16]);
#pragma unroll
            for (int i = 0; i < 2; i++) load_matrices(b[i], &stage.outputs[k + lane / 16][first_output + 16 * i + lane % 16]);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint4 own = make_uint4(a[i][0], a[i][1], a[i][2], a[i][3]);
#pragma unroll
                for (int j = 0; j < 4; j++) multiply(sums[i][j], own, b[j / 2][j % 2], b[j / 2][j % 2 + 2]);
            }
        }
    }
    __half* const to = reinterpret_cast<__half*>(params.outputs) + static_cast<size_t>(blockIdx.y) * params.output_count * HEAD_TEXTS;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const uint32_t output = blockIdx.x * DENSE_OUTPUTS + first_output + 8 * j + lane % 4 * 2;
        const float2 bias = *reinterpret_cast<const float2*>(params.bias + output);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int text = first_text + 8 * i + lane / 4;
            const float* const pair = sums[i / 2][j] + i % 2 * 2;
            *reinterpret_cast<__half2*>(place_of(to, output, text)) = activation(pair[0] + bias.x, pair[1] + bias.y);
        }
    }
}

// In float32, 64 texts x 64 outputs in a block, 4 x 4 in a thread. Grid: (tiles of 64 outputs,
// tiles of 64 texts).
extern "C" __global__ void dense_float(const DenseParams params) {
    constexpr int TILE = 64, STEP = 16, EACH = 4;
    __shared__ float texts[STEP][TILE + 4], weights[STEP][TILE + 4];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const uint32_t first_text = blockIdx.y * TILE, first_output = blockIdx.x * TILE, in_tile = first_text % HEAD_TEXTS;
    const float4* const inputs = reinterpret_cast<const float4*>(params.inputs) +
                                 static_cast<size_t>(first_text / HEAD_TEXTS) * (params.input_count / 4) * HEAD_TEXTS;
    const float* const own_weights = reinterpret_cast<const float*>(params.weights);
    float sums[EACH][EACH] = {};
    for (uint32_t from = 0; from < params.input_count; from += STEP) {
        const int text = threadIdx.x % TILE, piece = threadIdx.x / TILE;
        const float4 four = inputs[static_cast<size_t>(from / 4 + piece) * HEAD_TEXTS + in_tile + text];
        texts[4 * piece][text] = four.x, texts[4 * piece + 1][text] = four.y;
        texts[4 * piece + 2][text] = four.z, texts[4 * piece + 3][text] = four.w;
        for (int i = threadIdx.x; i < STEP * TILE; i += 256) {
            weights[i / TILE][i % TILE] = own_weights[static_cast<size_t>(from + i / TILE) * params.output_count + first_output + i % TILE];
        }
        __syncthreads();
        multiply_step(sums, texts, weights, ty * EACH, tx * EACH);
        __syncthreads();
    }
    float4* const to = reinterpret_cast<float4*>(params.outputs) +
                       static_cast<size_t>(first_text / HEAD_TEXTS) * (params.output_count / 4) * HEAD_TEXTS;
    const uint32_t output = first_output + tx * EACH;
    const float4 bias = *reinterpret_cast<const float4*>(params.bias + output);
    for (int i = 0; i < EACH; i++) {
        const float* const four = sums[i];
        to[static_cast<size_t>(output / 4) * HEAD_TEXTS + in_tile + ty * EACH + i] =
            make_float4(relu(four[0] + bias.x), relu(four[1] + bias.y), relu(four[2] + bias.z), relu(four[3] + bias.w));
    }
}

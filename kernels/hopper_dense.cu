// Hidden dense layers as dense.cu has them, with Hopper's own instructions (compute capability
// 9.0a).
//
// One warp copies tiles of texts and of weights to a ring in shared memory. Two warpgroups multiply
// them, 64 texts each.
#include "dense.cuh"
#include "hopper.cuh"

constexpr int GROUP = 128;                // threads of a warpgroup
constexpr int PIECES = DENSE_INPUTS / 8;  // of a step

template <int OUTPUTS>
struct __align__(128) Stage {
    uint4 texts[PIECES][HEAD_TEXTS];
    uint4 outputs[OUTPUTS / DENSE_OUTPUTS][PIECES][DENSE_OUTPUTS];
};
// Shared memory in bytes that the host asks for.
static_assert(sizeof(Stage<256>) == 2 * DENSE_INPUTS * (HEAD_TEXTS + 256) && sizeof(Stage<128>) == 2 * DENSE_INPUTS * (HEAD_TEXTS + 128));

template <int OUTPUTS>
__device__ __forceinline__ void dense(const DenseParams& params) {
    constexpr int BLOCKS = OUTPUTS / DENSE_OUTPUTS;
    constexpr uint32_t STEP_BYTES = PIECES * HEAD_TEXTS * sizeof(uint4);
    static_assert(HEAD_TEXTS == DENSE_OUTPUTS);
    extern __shared__ __align__(128) unsigned char memory[];
    Stage<OUTPUTS>* const ring = reinterpret_cast<Stage<OUTPUTS>*>(memory);
    __shared__ uint64_t filled[HOPPER_DENSE_STAGES], emptied[HOPPER_DENSE_STAGES];
    if (threadIdx.x == 0) {
        for (int i = 0; i < HOPPER_DENSE_STAGES; i++) barrier_init(filled + i, 1 + BLOCKS), barrier_init(emptied + i, 2 * GROUP / 32);
        publish_barriers();
    }
    __syncthreads();
    const uint32_t steps = params.input_count / DENSE_INPUTS;
    const size_t tile_bytes = static_cast<size_t>(params.input_count) * HEAD_TEXTS * sizeof(__half);
    Turn<HOPPER_DENSE_STAGES> turn;
    if (threadIdx.x >= 2 * GROUP) {
        if (threadIdx.x > 2 * GROUP) return;
        const unsigned char* const texts = params.inputs + blockIdx.y * tile_bytes;
        const unsigned char* const outputs = params.weights + static_cast<size_t>(blockIdx.x) * BLOCKS * tile_bytes;
        for (uint32_t step = 0; step < steps; step++, turn.next()) {
            Stage<OUTPUTS>& stage = ring[turn.place];
            const size_t from = static_cast<size_t>(step) * STEP_BYTES;
            barrier_wait(emptied + turn.place, turn.parity ^ 1);
            bulk_copy(stage.texts, texts + from, STEP_BYTES, filled + turn.place);
#pragma unroll
            for (int i = 0; i < BLOCKS; i++) bulk_copy(stage.outputs[i], outputs + i * tile_bytes + from, STEP_BYTES, filled + turn.place);
        }
        return;
    }
    const int warpgroup = threadIdx.x / GROUP, lane = threadIdx.x % 32;
    float sums[BLOCKS][64];
    for (uint32_t step = 0; step < steps; step++, turn.next()) {
        const Stage<OUTPUTS>& stage = ring[turn.place];
        barrier_wait(filled + turn.place, turn.parity);
        const uint64_t texts = tile_descriptor(stage.texts[0] + 64 * warpgroup);
        products_begin();
#pragma unroll
        for (int k = 0; k < PIECES / 2; k++) {
#pragma unroll
            for (int i = 0; i < BLOCKS; i++) {
                product_64x128x16(sums[i], texts + k * DESCRIPTOR_STEP, tile_descriptor(stage.outputs[i]) + k * DESCRIPTOR_STEP,
                                  step > 0 || k > 0);
            }
        }
        products_commit();
        // The step before has been multiplied.
        products_wait<1>();
        if (step > 0 && lane == 0) {
            barrier_arrive(emptied + (turn.place + HOPPER_DENSE_STAGES - 1) % HOPPER_DENSE_STAGES);
        }
    }
    products_wait<0>();
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) products_done(sums[i]);
    __half* const to = reinterpret_cast<__half*>(params.outputs) + static_cast<size_t>(blockIdx.y) * params.output_count * HEAD_TEXTS;
    const int text = warpgroup * 64 + threadIdx.x % GROUP / 32 * 16 + lane / 4;  // and text + 8
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
#pragma unroll
        for (int n = 0; n < 16; n++) {
            const uint32_t output = blockIdx.x * OUTPUTS + i * DENSE_OUTPUTS + 8 * n + lane % 4 * 2;
            const float2 bias = *reinterpret_cast<const float2*>(params.bias + output);
            const float* const four = sums[i] + 4 * n;
            __half* const own = place_of(to, output, text);
            *reinterpret_cast<__half2*>(own) = activation(four[0] + bias.x, four[1] + bias.y);
            *reinterpret_cast<__half2*>(own + 8 * 8) = activation(four[2] + bias.x, four[3] + bias.y);
        }
    }
}

// Grid: (tiles of outputs, tiles of texts). Dynamic shared memory: HOPPER_DENSE_STAGES stages.
extern "C" __global__ void hopper_dense_128(const DenseParams params) { dense<128>(params); }
extern "C" __global__ void hopper_dense_256(const DenseParams params) { dense<256>(params); }

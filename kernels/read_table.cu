// Reads an array once and does nothing with it: the limit that benchmarks hold the scans against.
#include "abi/baselines.cuh"

// Grid-stride, four loads of 16 bytes in flight a thread.
extern "C" __global__ void read_table(const ReadTableParams params) {
    const uint4* const data = params.data;
    const size_t count = params.count;
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    uint4 all = make_uint4(0, 0, 0, 0);
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += 4 * stride) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (i + j * stride < count) {
                const uint4 x = data[i + j * stride];
                all.x ^= x.x, all.y ^= x.y, all.z ^= x.z, all.w ^= x.w;
            }
        }
    }
    // Never so, but the compiler can't know.
    if ((all.x & all.y & all.z & all.w) == 0x9e3779b9u) *params.never = all;
}

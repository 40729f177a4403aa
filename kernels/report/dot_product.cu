// The cosine of one query with every row, in the four generations of the 2020 report (README.md). They
// are the steps of a ladder to measure against, not part of the engine: float32 throughout, and sums in
// an order of their own.
//
// Arguments of all four:
//   table       [rows][dim], row after row without padding
//   norms       [rows], of norm 0 where a row is zero
//   query       [dim]; version 2 does not read it, but report_query
//   query_norm  greater than 0
//   scores      [rows], out: the cosine, or NO_NEIGHBOUR for a row of norm 0
//   positions   [rows], out: the row's number, which moves along when the scores are sorted
// Finite sums and products of norms that neither overflow nor vanish in float32 are taken for granted.
#include <cstddef>
#include <cstdint>

constexpr int BLOCK = 256;               // threads a block, in every version
constexpr int THREADS_A_ROW = 8;         // versions 3 and 4: 8 float32 are one memory sector of 32 bytes
constexpr int ROWS_A_BLOCK = BLOCK / THREADS_A_ROW;
constexpr int MAX_DIM = 4096;            // 16 KiB of the 64 KiB of constant memory
constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr float NO_NEIGHBOUR = -2.0f;    // sorts behind every cosine

// The query of version 2: [dim], copied here by the host before the launch.
extern "C" {
__constant__ float report_query[MAX_DIM];
}

__device__ __forceinline__ void write(float dot, const float* __restrict__ norms, float query_norm, uint32_t row,
                                      float* __restrict__ scores, uint32_t* __restrict__ positions) {
    const float norm = norms[row];
    scores[row] = norm > 0.0f ? dot / (query_norm * norm) : NO_NEIGHBOUR;
    positions[row] = row;
}

// One thread a row. Neighbouring threads read addresses a whole row apart.
// Grid: ceil(rows / 256) blocks of 256 threads. Dynamic shared memory: [dim] float32.
extern "C" __global__ void __launch_bounds__(BLOCK)
dot_product_v1(const float* __restrict__ table, const float* __restrict__ norms, const float* __restrict__ query,
               float query_norm, uint32_t rows, int dim, float* __restrict__ scores,
               uint32_t* __restrict__ positions) {
    extern __shared__ float shared_query[];
    for (int i = threadIdx.x; i < dim; i += BLOCK) shared_query[i] = query[i];
    __syncthreads();
    const size_t row = static_cast<size_t>(blockIdx.x) * BLOCK + threadIdx.x;
    if (row >= rows) return;
    const float* const components = table + row * dim;
    float sum = 0.0f;
    for (int i = 0; i < dim; ++i) sum += components[i] * shared_query[i];
    write(sum, norms, query_norm, static_cast<uint32_t>(row), scores, positions);
}

// One thread a row. All threads of a warp want the same component of the query at the same time, which
// constant memory gives to all of them at once.
// Grid: ceil(rows / 256) blocks of 256 threads. No dynamic shared memory.
extern "C" __global__ void __launch_bounds__(BLOCK)
dot_product_v2(const float* __restrict__ table, const float* __restrict__ norms, const float* /* query */,
               float query_norm, uint32_t rows, int dim, float* __restrict__ scores,
               uint32_t* __restrict__ positions) {
    const size_t row = static_cast<size_t>(blockIdx.x) * BLOCK + threadIdx.x;
    if (row >= rows) return;
    const float* const components = table + row * dim;
    float sum = 0.0f;
    for (int i = 0; i < dim; ++i) sum += components[i] * report_query[i];
    write(sum, norms, query_norm, static_cast<uint32_t>(row), scores, positions);
}

// What one of a row's eight threads adds up: every eighth component. 0 for rows past the end, whose
// threads stay, because the whole warp takes part in what follows.
__device__ __forceinline__ float partial_dot(const float* __restrict__ table, const float* __restrict__ query,
                                             size_t row, uint32_t rows, int dim, int lane) {
    if (row >= rows) return 0.0f;
    const float* const components = table + row * dim;
    float sum = 0.0f;
    for (int i = lane; i < dim; i += THREADS_A_ROW) sum += components[i] * query[i];
    return sum;
}

// Eight threads a row; their partial sums meet in shared memory. A row's threads are of one warp, so
// the warp's own barrier is enough.
// Grid: ceil(rows / 32) blocks of 256 threads. No dynamic shared memory; static: [256] float32.
extern "C" __global__ void __launch_bounds__(BLOCK)
dot_product_v3(const float* __restrict__ table, const float* __restrict__ norms, const float* __restrict__ query,
               float query_norm, uint32_t rows, int dim, float* __restrict__ scores,
               uint32_t* __restrict__ positions) {
    __shared__ float partial[BLOCK];
    const int lane = threadIdx.x % THREADS_A_ROW;
    const size_t row = static_cast<size_t>(blockIdx.x) * ROWS_A_BLOCK + threadIdx.x / THREADS_A_ROW;
    partial[threadIdx.x] = partial_dot(table, query, row, rows, dim, lane);
    __syncwarp(ALL_LANES);
    for (int offset = THREADS_A_ROW / 2; offset > 0; offset /= 2) {
        if (lane < offset) partial[threadIdx.x] += partial[threadIdx.x + offset];
        __syncwarp(ALL_LANES);
    }
    if (lane == 0 && row < rows) {
        write(partial[threadIdx.x], norms, query_norm, static_cast<uint32_t>(row), scores, positions);
    }
}

// Eight threads a row; their partial sums stay in registers and meet by shuffles. Adds in the order of
// version 3, so it gives the same bits.
// Grid: ceil(rows / 32) blocks of 256 threads. No shared memory.
extern "C" __global__ void __launch_bounds__(BLOCK)
dot_product_v4(const float* __restrict__ table, const float* __restrict__ norms, const float* __restrict__ query,
               float query_norm, uint32_t rows, int dim, float* __restrict__ scores,
               uint32_t* __restrict__ positions) {
    const int lane = threadIdx.x % THREADS_A_ROW;
    const size_t row = static_cast<size_t>(blockIdx.x) * ROWS_A_BLOCK + threadIdx.x / THREADS_A_ROW;
    float sum = partial_dot(table, query, row, rows, dim, lane);
    for (int offset = THREADS_A_ROW / 2; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(ALL_LANES, sum, offset, THREADS_A_ROW);
    }
    if (lane == 0 && row < rows) write(sum, norms, query_norm, static_cast<uint32_t>(row), scores, positions);
}

// Computes the cosine of one query with every row, in the four versions of the 2020 report
// (README.md). They are baselines for benchmarks, not part of the engine: they use float32
// throughout and their own order of summation.
//
// They assume that sums are finite, and that products of norms neither overflow nor underflow in
// float32.
#include "abi/versions.cuh"

constexpr int BLOCK = 256;               // threads a block, in every version
constexpr int THREADS_PER_ROW = 8;         // versions 3 and 4: 8 float32 are one memory sector of 32 bytes
constexpr int ROWS_A_BLOCK = BLOCK / THREADS_PER_ROW;
static_assert(ROWS_A_BLOCK == REPORT_ROWS_WIDE && BLOCK == REPORT_ROWS_NARROW, "grids go by them");
constexpr unsigned ALL_LANES = 0xffffffffu;

// The query of version 2: [dim], copied here by the host before the launch. It takes 16 KiB of the
// 64 KiB of constant memory.
extern "C" {
__constant__ float report_query[REPORT_MAX_DIM];
}

__device__ __forceinline__ void write(const ReportDotParams& params, float dot, uint32_t row) {
    const float norm = params.norms[row];
    params.scores[row] = norm > 0.0f ? dot / (params.query_norm * norm) : NO_NEIGHBOUR;
    params.positions[row] = row;
}

// One thread per row. Neighbouring threads read addresses that are a whole row apart. Grid:
// ceil(rows / 256) blocks. Dynamic shared memory: [dim] float32.
extern "C" __global__ void dot_product_v1(const ReportDotParams params) {
    const uint32_t rows = params.rows;
    const int dim = params.dim;
    extern __shared__ float shared_query[];
    for (int i = threadIdx.x; i < dim; i += BLOCK) shared_query[i] = params.query[i];
    __syncthreads();
    const size_t row = static_cast<size_t>(blockIdx.x) * BLOCK + threadIdx.x;
    if (row >= rows) return;
    const float* const components = params.table + row * dim;
    float sum = 0.0f;
    for (int i = 0; i < dim; ++i) sum += components[i] * shared_query[i];
    write(params, sum, static_cast<uint32_t>(row));
}

// One thread per row. All threads of a warp need the same component of the query at the same time,
// and constant memory broadcasts it to them. Grid: ceil(rows / 256) blocks. No dynamic shared
// memory.
extern "C" __global__ void dot_product_v2(const ReportDotParams params) {
    const uint32_t rows = params.rows;
    const int dim = params.dim;
    const size_t row = static_cast<size_t>(blockIdx.x) * BLOCK + threadIdx.x;
    if (row >= rows) return;
    const float* const components = params.table + row * dim;
    float sum = 0.0f;
    for (int i = 0; i < dim; ++i) sum += components[i] * report_query[i];
    write(params, sum, static_cast<uint32_t>(row));
}

// The sum of one of a row's eight threads, over every eighth component. 0 for rows past the end;
// their threads must not return early, because the whole warp takes part in the steps that follow.
__device__ __forceinline__ float partial_dot(const ReportDotParams& params, size_t row, int lane) {
    const int dim = params.dim;
    if (row >= params.rows) return 0.0f;
    const float* const components = params.table + row * dim;
    float sum = 0.0f;
    for (int i = lane; i < dim; i += THREADS_PER_ROW) sum += components[i] * params.query[i];
    return sum;
}

// Eight threads per row; their partial sums are added in shared memory. A row's threads are in one
// warp, so a barrier of the warp is enough. Grid: ceil(rows / 32) blocks. No dynamic shared memory;
// static: [256] float32.
extern "C" __global__ void dot_product_v3(const ReportDotParams params) {
    const uint32_t rows = params.rows;
    __shared__ float partial[BLOCK];
    const int lane = threadIdx.x % THREADS_PER_ROW;
    const size_t row = static_cast<size_t>(blockIdx.x) * ROWS_A_BLOCK + threadIdx.x / THREADS_PER_ROW;
    partial[threadIdx.x] = partial_dot(params, row, lane);
    __syncwarp(ALL_LANES);
    for (int offset = THREADS_PER_ROW / 2; offset > 0; offset /= 2) {
        if (lane < offset) partial[threadIdx.x] += partial[threadIdx.x + offset];
        __syncwarp(ALL_LANES);
    }
    if (lane == 0 && row < rows) {
        write(params, partial[threadIdx.x], static_cast<uint32_t>(row));
    }
}

// Eight threads per row; their partial sums stay in registers and are added by shuffles. The order
// is that of version 3, so the bits are the same. Grid: ceil(rows / 32) blocks. No shared memory.
extern "C" __global__ void dot_product_v4(const ReportDotParams params) {
    const uint32_t rows = params.rows;
    const int lane = threadIdx.x % THREADS_PER_ROW;
    const size_t row = static_cast<size_t>(blockIdx.x) * ROWS_A_BLOCK + threadIdx.x / THREADS_PER_ROW;
    float sum = partial_dot(params, row, lane);
    for (int offset = THREADS_PER_ROW / 2; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(ALL_LANES, sum, offset, THREADS_PER_ROW);
    }
    if (lane == 0 && row < rows) write(params, sum, static_cast<uint32_t>(row));
}

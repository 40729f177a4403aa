// Queries made ready for the scans: gathered from the table or from what was uploaded, made unit
// vectors, rotated, rounded to 8 bits and laid out as the scan at hand wants them.
#include "launch.cuh"
#include "query.cuh"
#include "rotation.cuh"

// Where a query's bytes go.
enum Layout : int {
    PLAIN = 0,          // [batch][padded], component after component
    FRAGMENTS_16 = 1,   // mma.sync m16n8k32: operand A, 16 queries, the chunks of int8_scan.cu
    FRAGMENTS_64 = 2,   // wgmma m64n128k32: operand A in registers, 64 queries
};

// The byte of component `i` of query `q`; `padded` is the number of components with padding.
__device__ __forceinline__ size_t place(Layout layout, int q, int i, int padded) {
    const int chunk = i / 16, in_chunk = i % 16;
    if (layout == FRAGMENTS_16) {
        // 64 components are two steps of 32. Lane t of a quad has chunk 4 * (i / 64) + t as a whole:
        // its four words are both halves of both steps.
        const int t = chunk % 4, word = in_chunk / 4, step = 2 * (i / 64) + word / 2;
        const int lane = (q % 8) * 4 + t, reg = 2 * (word % 2) + q % 16 / 8;
        return ((static_cast<size_t>(q / 16) * (padded / 32) + step) * 32 + lane) * 16 + reg * 4 + i % 4;
    }
    if (layout == FRAGMENTS_64) {
        const int step = i / 32, warp = q % 64 / 16, lane = (q % 8) * 4 + in_chunk / 4;
        const int reg = 2 * (chunk % 2) + q % 16 / 8;
        return (((static_cast<size_t>(q / 64) * (padded / 32) + step) * 4 + warp) * 32 + lane) * 16 + reg * 4 + i % 4;
    }
    return static_cast<size_t>(q) * padded + i;
}

// `uploaded` is `queries` itself, or the host's memory, from which a few queries come quicker than by a
// copy beforehand; later kernels read `queries`.
//
// Grid: (batch, padded with empty queries); blocks of 128 threads. Dynamic shared memory: [dim] float64.
extern "C" __global__ void __launch_bounds__(128)
prepare_queries(const float* __restrict__ table, const float* __restrict__ vectors,
                const QueryHeader* uploaded, QueryHeader* queries, int dim, int padded, int layout,
                uint8_t* __restrict__ bytes,
                QueryScale* __restrict__ scales, Threshold* __restrict__ thresholds, float* __restrict__ floors,
                uint32_t* __restrict__ candidate_counts, uint32_t* __restrict__ survivor_counts,
                uint32_t* __restrict__ tickets) {
    extern __shared__ double values[];
    __shared__ QueryHeader header;
    __shared__ double space[4];
    __shared__ int sum_space[4];
    const int q = blockIdx.x;
    wait_for_previous();
    let_next_start();
    if (threadIdx.x == 0) {
        header = uploaded[q];
        queries[q] = header;
        candidate_counts[counter(q)] = 0;
        survivor_counts[counter(q)] = 0;
        tickets[counter(q)] = 0;
    }
    __syncthreads();
    const QueryHeader query = header;
    const Layout where = static_cast<Layout>(layout);
    if (query.norm == 0.0) {
        for (int i = threadIdx.x; i < padded; i += blockDim.x) bytes[place(where, q, i, padded)] = 0;
        if (threadIdx.x == 0) {
            scales[q] = {1.0f, 0.0f, 1.0f, 0};
            thresholds[q] = {1e30f, 0.0f};  // nothing reaches it
            floors[q] = 2.0f;
        }
        return;
    }
    const float* const components_ = components(query, table, vectors, dim);
    const double inverse_norm = 1.0 / query.norm;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) values[i] = static_cast<double>(components_[i]) * inverse_norm;
    __syncthreads();
    rotate(values, dim);
    double peak = 0.0;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) peak = fmax(peak, fabs(values[i]));
    peak = block_combine(peak, space, [](double a, double b) { return fmax(a, b); });
    const float step = __double2float_ru(peak / 127.0);
    const double inverse_step = 1.0 / step;
    double rest_square = 0.0;
    int sum = 0, square = 0;  // at most 4096 * 127 * 127 < 2^31
    for (int i = threadIdx.x; i < padded; i += blockDim.x) {
        const double z = i < dim ? values[i] : 0.0;
        const int n = max(-127, min(127, __double2int_rn(z * inverse_step)));
        const double rest = z - static_cast<double>(n) * step;
        rest_square += rest * rest;
        sum += n;
        square += n * n;
        bytes[place(where, q, i, padded)] = static_cast<uint8_t>(static_cast<int8_t>(n));
    }
    const auto add_int = [](int a, int b) { return a + b; };
    rest_square = block_combine(rest_square, space, [](double a, double b) { return a + b; });
    sum = block_combine(sum, sum_space, add_int);
    square = block_combine(square, sum_space, add_int);
    if (threadIdx.x == 0) {
        const float residual = __double2float_ru(sqrt(rest_square) * (1.0 + 1e-9) + 1e-9);
        const float norm = __double2float_ru(sqrt(static_cast<double>(square)) * step * (1.0 + 1e-9));
        scales[q] = {step, residual, norm, sum};
    }
}

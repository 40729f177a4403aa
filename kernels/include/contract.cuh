// The contract's score: float64 from float32 components, in the one order of summation that every
// engine keeps. A warp's lanes are the contract's 32 lanes.
#pragma once
#include <cstdint>

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

// Components that a lane loads together. A warp then loads 320, so a row of 300 waits for memory
// only once.
constexpr int DOT_STEP = 10;

// The product of two float32 is exact in float64, so the fused multiply-add rounds as the contract
// does.
__device__ __forceinline__ double multiply_add(float a, float b, double sum) {
    return __fma_rn(static_cast<double>(a), static_cast<double>(b), sum);
}
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }

// The same in float32: not the contract's bits, but within a proven error of them
// (float32_bound.cuh).
__device__ __forceinline__ float multiply_add(float a, float b, float sum) { return __fmaf_rn(a, b, sum); }
__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }

// Dot products of ROWS rows with VECTORS vectors, each of `dim` float32, by one warp; every lane
// gets the results. It takes several together, so that their loads overlap.
//
// Component i goes to lane i mod 32 in ascending order; then the lanes fold by 16, 8, 4, 2, 1.
// A butterfly adds the same pairs as the fold (addition commutes), so all lanes hold lane 0's bits.
template <int ROWS, int VECTORS, typename Sum>
__device__ __forceinline__ void warp_dots(const float* const (&rows)[ROWS], const float* const (&vectors)[VECTORS], int dim,
                                          Sum (&sums)[VECTORS][ROWS]) {
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < VECTORS * ROWS; i++) sums[i / ROWS][i % ROWS] = 0;
    for (int first = lane; first < dim; first += WARP * DOT_STEP) {
        float x[ROWS][DOT_STEP], q[VECTORS][DOT_STEP];
#pragma unroll
        for (int j = 0; j < DOT_STEP; j++) {
            // Past the end, the last component is read again and multiplied by zero. This changes
            // no bit of a sum that started at +0, and no load waits for a branch.
            const int i = first + WARP * j, within = min(i, dim - 1);
#pragma unroll
            for (int v = 0; v < VECTORS; v++) {
                const float component = vectors[v][within];
                q[v][j] = i < dim ? component : 0.0f;
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) x[r][j] = rows[r][within];
        }
#pragma unroll
        for (int j = 0; j < DOT_STEP; j++) {
#pragma unroll
            for (int i = 0; i < VECTORS * ROWS; i++) {
                const int v = i / ROWS, r = i % ROWS;
                sums[v][r] = multiply_add(x[r][j], q[v][j], sums[v][r]);
            }
        }
    }
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
#pragma unroll
        for (int i = 0; i < VECTORS * ROWS; i++) {
            const int v = i / ROWS, r = i % ROWS;
            sums[v][r] = add(sums[v][r], __shfl_xor_sync(ALL_LANES, sums[v][r], step));
        }
    }
}

// The same for one vector.
template <int ROWS, typename Sum>
__device__ __forceinline__ void warp_dots(const float* const (&rows)[ROWS], const float* vector, int dim, Sum (&sums)[ROWS]) {
    const float* const vectors[1] = {vector};
    Sum of_vector[1][ROWS];
    warp_dots(rows, vectors, dim, of_vector);
#pragma unroll
    for (int r = 0; r < ROWS; r++) sums[r] = of_vector[0][r];
}

template <typename Sum = double>
__device__ __forceinline__ Sum warp_dot(const float* row, const float* query, int dim) {
    const float* const rows[1] = {row};
    Sum sums[1];
    warp_dots(rows, query, dim, sums);
    return sums[0];
}

// Cosine similarity from a dot product and two norms, neither of them zero; clamped to [-1, 1].
__device__ __forceinline__ double cosine(double dot, double query_norm, double row_norm) {
    return fmin(fmax(__ddiv_rn(dot, __dmul_rn(query_norm, row_norm)), -1.0), 1.0);
}

// The contract's ranking: the higher score first, between equal scores the lower row.
__device__ __forceinline__ bool ranks_before(double score, uint32_t row, double other_score, uint32_t other_row) {
    return score > other_score || (score == other_score && row < other_row);
}

// How many of `count` scores rank before that of index `own`, if the lower index ranks first
// between equal scores.
__device__ __forceinline__ uint32_t ranked_before(const double* scores, int count, int own) {
    const double score = scores[own];
    uint32_t before = 0;
#pragma unroll 8
    for (int i = 0; i < count; i++) before += scores[i] > score || (scores[i] == score && i < own);
    return before;
}

// Counts of ranks: what both scans share. See docs/certificate.md, theorem 6.
#pragma once
#include <cuda_fp16.h>

#include "abi/ranks.cuh"
#include "contract.cuh"
#include "row_set.cuh"

constexpr int BINS = RANK_THRESHOLDS;
static_assert(BINS == 16, "a search of four steps; bins of 4 bits in 64");

// A component of a scaled unit vector as the sum of two float16, up to 2^-22 of it.
struct Halves {
    __half2 high, low;
};
__device__ __forceinline__ Halves split(float x, float y) {
    const __half2 high = __floats2half2_rn(x, y);
    const float2 back = __half22float2(high);
    return {high, __floats2half2_rn(__fsub_rn(x, back.x), __fsub_rn(y, back.y))};
}

__device__ __forceinline__ bool has_inverse(double norm) { return norm >= 1.0 / RANK_MAX_NORM && norm <= RANK_MAX_NORM; }

// By what components are multiplied to become those of a scaled unit vector.
__device__ __forceinline__ float unit_scale(double norm) {
    return static_cast<float>(static_cast<double>(RANK_SCALE) / norm);
}

// The scale of a row, by its norm, 0 for no row: zero if the row does not count, negative zero if
// it is always in doubt.
__device__ __forceinline__ float row_scale(double norm) {
    return has_inverse(norm) ? unit_scale(norm) : norm > 0.0 ? -0.0f : 0.0f;
}

// What is added to the scores of a row of this scale: rows that do not count are below every
// threshold; NaN is always in doubt.
__device__ __forceinline__ float row_mask(float scale) {
    if (scale > 0.0f) return 0.0f;
    return signbit(scale) ? __int_as_float(0x7fc00000) : -NO_THRESHOLD;
}

// A query's thresholds in shared memory, ascending.
struct Thresholds {
    float all[RANK_THRESHOLDS];
    float2 around[BINS];  // of a bin: the threshold below it and the one above it
    uint64_t set;         // the address of the set of rows that count, by rows
    uint32_t first_rows;  // rows that count
    uint32_t unused;      // so that a bin of 8 queries is in different banks
};

// Copies the thresholds of `queries` queries into shared memory. Called by all threads.
__device__ __forceinline__ void copy_thresholds(Thresholds* to, const RankScanParams& params, int queries) {
    for (int i = threadIdx.x; i < queries * BINS; i += blockDim.x) {
        const int bin = i % BINS;
        Thresholds& own = to[i / BINS];
        own.all[bin] = params.pass.thresholds[i];
        own.around[bin] = make_float2(bin == 0 ? -2.0f * NO_THRESHOLD : params.pass.thresholds[i - 1], params.pass.thresholds[i]);
        own.set = params.pass.queries[i / BINS].set;
        own.first_rows = params.pass.queries[i / BINS].first_rows;
    }
}

// The numbers of scores in each of 16 bins: 4 bits each.
struct Bins {
    uint32_t low = 0, high = 0;
};

// Finds the bins of COUNT scores of a query: the n-th bin has the scores that n thresholds are not
// above. Returns those in doubt, as bits, which no bin has; NaN always is. All scores take each
// step together, because the next needs what shared memory answers.
template <int COUNT>
__device__ __forceinline__ uint32_t find_bins(const Thresholds& own, const float (&scores)[COUNT], float error, Bins& bins) {
    static_assert(COUNT <= 15);
    const char* const all = reinterpret_cast<const char*>(own.all);
    const char* const around = reinterpret_cast<const char*>(own.around);
    const float middle = own.all[7], lower = own.all[3], upper = own.all[11];
    uint32_t at[COUNT];  // 4 times the bin: bytes in `all`, bits in `bins`
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
        const bool is_upper = scores[n] >= middle;
        at[n] = (is_upper ? 32u : 0u) + (scores[n] >= (is_upper ? upper : lower) ? 16u : 0u);
    }
#pragma unroll
    for (int n = 0; n < COUNT; n++) at[n] += scores[n] >= *reinterpret_cast<const float*>(all + at[n] + 4) ? 8u : 0u;
#pragma unroll
    for (int n = 0; n < COUNT; n++) at[n] += scores[n] >= *reinterpret_cast<const float*>(all + at[n]) ? 4u : 0u;
    uint32_t doubtful = 0;
#pragma unroll
    for (int n = 0; n < COUNT; n++) {
        const float2 ends = *reinterpret_cast<const float2*>(around + 2 * at[n]);
        const bool is_sure = fminf(__fsub_rn(scores[n], ends.x), __fsub_rn(ends.y, scores[n])) > error;
        doubtful |= is_sure ? 0u : 1u << n;
        const uint32_t one = is_sure ? 1u << at[n] % 32 : 0u;
        const uint32_t high = at[n] >= 32 ? one : 0u;
        bins.high += high;
        bins.low += one - high;
    }
    return doubtful;
}

// Four registers have the counts of 16 bins as bytes: of bins 0, 2, 4, 6; 1, 3, 5, 7; 8, 10, ... Of
// the j-th half register, every other byte, the bin of the first; that of the second is four bins
// further.
__device__ __forceinline__ int bin_of(int j) { return j / 4 * 8 + j / 2 % 2 + j % 2 * 2; }

// Adds the j-th half register of all lanes of a quad, two bins in 16 bits each, to a query's BINS.
// Called by all lanes.
__device__ __forceinline__ void add_to_bins(uint32_t* bins, int j, uint32_t two) {
    const int t = threadIdx.x % 4;
    two += __shfl_xor_sync(ALL_LANES, two, 1);
    two += __shfl_xor_sync(ALL_LANES, two, 2);
    const uint32_t count = t % 2 == 0 ? two & 0xffff : two >> 16;
    // Two of the four lanes have one bin each.
    if (t / 2 == j % 2 && count != 0) atomicAdd(bins + bin_of(j) + t % 2 * 4, count);
}

// Takes room in a query's list for rows in doubt, of which `doubtful` has a bit each. Returns the
// index of the first.
__device__ __forceinline__ uint32_t take_room(const RankScanParams& params, int query, uint32_t doubtful) {
    return doubtful == 0 ? 0 : atomicAdd(params.pass.doubtful_counts + query, static_cast<uint32_t>(__popc(doubtful)));
}

// Lists them there: row(n) for the n-th bit.
template <class Row>
__device__ __forceinline__ void list_doubtful(const RankScanParams& params, int query, uint32_t index, uint32_t doubtful, Row row) {
    for (; doubtful != 0 && index < RANK_CAPACITY; index++) {
        const int n = __ffs(doubtful) - 1;
        doubtful &= doubtful - 1;
        params.pass.doubtful[static_cast<size_t>(query) * RANK_CAPACITY + index] = row(n);
    }
}

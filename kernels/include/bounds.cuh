// The certificate's arithmetic: bounds of cosines from integer dot products. The theorems are in
// docs/certificate.md.
#pragma once
#include "query.cuh"

// SLACK covers every float32 rounding of the bounds below and the contract's own float64 roundings; the
// build passes it, the same for all engines (model-store, certificate/constants.rs).

// No row of a tile with this bound has a cosine lower (-) or higher (+) than its rounded score by more.
__device__ __forceinline__ float error_bound(const QueryScale& query, float tile_residual) {
    return query.residual + query.norm * tile_residual + SLACK;
}

// The threshold of a query from a lower bound of its k-th best cosine, for the scan's epilogue.
__device__ __forceinline__ Threshold make_threshold(const QueryScale& query, float floor) {
    return {(floor - query.residual - SLACK) / query.step, query.norm / query.step};
}

// Rows whose integer dot product is below this are certainly not among a query's best.
__device__ __forceinline__ int integer_threshold(const Threshold& query, const TileScale& tile) {
    const float a = query.offset * tile.inverse_step, b = query.slope * tile.residual_over_step;
    return __float2int_rd(a - b - ((fabsf(a) + fabsf(b)) * 1e-6f + 1.0f));
}

// What the scan of the 8-bit table writes, and what it goes by.
struct ScanOutput {
    const Threshold* thresholds;    // [batch]
    const QueryScale* scales;       // [batch]
    float* group_bounds;            // [batch, groups]: the sampling scan's lower bounds
    uint32_t* candidate_counts;     // [batch], counters
    Candidate* candidates;          // [batch, capacity]
    uint32_t capacity;
    uint32_t groups;
};

// A row joins a query's candidates. Beyond the capacity only the count goes on: then there is no
// certificate, and whoever reads the count knows.
__device__ __forceinline__ void add_candidate(const ScanOutput& out, int query, uint32_t slot, float score) {
    const uint32_t place = atomicAdd(out.candidate_counts + counter(query), 1u);
    if (place < out.capacity) out.candidates[static_cast<size_t>(query) * out.capacity + place] = {slot, score};
}

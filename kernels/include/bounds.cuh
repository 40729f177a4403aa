// The certificate's arithmetic: bounds of cosines from integer dot products. The theorems are in
// docs/certificate.md.
#pragma once
#include "query.cuh"

// The maximum difference between a row's cosine and its rounded score, for all rows of a tile.
__device__ __forceinline__ float error_bound(const QueryScale& query, float tile_residual) {
    return query.residual + query.norm * tile_residual + SLACK;
}

// A query's threshold for the scan's epilogue, from `floor`, a lower bound of its k-th best cosine.
__device__ __forceinline__ Threshold make_threshold(const QueryScale& query, float floor) {
    return {(floor - query.residual - SLACK) / query.step, query.norm / query.step};
}

// No row reaches it.
constexpr Threshold UNREACHABLE = {1e30f, 0.0f};

// Rows whose integer dot product is below this are certainly not among a query's best.
__device__ __forceinline__ int integer_threshold(const Threshold& query, const TileScale& tile) {
    const float a = query.offset * tile.inverse_step, b = query.slope * tile.residual_over_step;
    return __float2int_rd(a - b - ((fabsf(a) + fabsf(b)) * 1e-6f + 1.0f));
}

// A group's best lower bound, a little lower still, with the index of its row among the group's in
// the last bits.
constexpr uint32_t GROUP_INDEX_MASK = 31;
__device__ __forceinline__ float group_bound(float bound, uint32_t index) {
    return __uint_as_float((__float_as_uint(bound - fabsf(bound) * 1e-5f) & ~GROUP_INDEX_MASK) | index);
}

// A lower bound of a candidate's cosine, for a threshold; -infinity if the query's filter may leave
// the row out.
__device__ __forceinline__ float threshold_bound(const QueryHeader& query, const uint32_t* excluded,
                                                 const uint32_t* slot_rows, const Candidate& candidate, float error) {
    if (query.is_filtered != 0) {
        if (candidate.score + error > query.max_score) return -INFINITY;
        if (!admits_row(query, excluded, slot_rows[candidate.slot])) return -INFINITY;
    }
    return candidate.score - error;
}

// Adds a row to a query's candidates. Beyond the capacity only the count grows; a count above the
// capacity means that the query has no certificate.
__device__ __forceinline__ void add_candidate(const ScanOutput& out, int query, uint32_t slot, float score) {
    const uint32_t index = atomicAdd(out.candidate_counts + counter(query), 1u);
    if (index < out.capacity) out.candidates[static_cast<size_t>(query) * out.capacity + index] = {slot, score};
}

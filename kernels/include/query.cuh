// A query on the device: its counters, its filter, its components. The structures are declared in
// crates/gpu-core/src/search/abi.rs.
#pragma once
#include "abi/search.cuh"
#include "metric.cuh"
#include "row_set.cuh"

// Counters of different queries are in different cache lines: many blocks add to them at the same
// time, and additions to one line wait for one another.
__host__ __device__ constexpr size_t counter(int query) { return static_cast<size_t>(query) * COUNTER_STRIDE; }

// Whether a row may be a neighbour if its score is in range. `NOT_A_ROW` may not. `excluded` is the
// list of the pass, of which the query's header has the part that is its own.
__device__ __forceinline__ bool admits_row(const QueryHeader& query, const uint32_t* excluded, uint32_t row) {
    if (row >= query.first_rows || !is_member(query.set, row)) return false;
    if (query.excluded_count == 1) return row != query.excluded;
    uint32_t low = query.excluded, high = query.excluded + query.excluded_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (excluded[middle] < row) low = middle + 1;
        else high = middle;
    }
    return low == query.excluded + query.excluded_count || excluded[low] != row;
}

// Whether a row with this score may be a neighbour. The score is checked first, because that is
// cheapest.
__device__ __forceinline__ bool admits(const QueryHeader& query, const uint32_t* excluded, uint32_t row,
                                       double score) {
    // Negated, so that a minimum of NaN admits nothing, as on the CPU.
    if (!(score >= query.min_score && score <= query.max_score)) return false;
    return admits_row(query, excluded, row);
}

// The score of a row as the search compares it: multiplied by the query's factor, which is exact.
__device__ __forceinline__ double search_score(const TableView& table, const QueryHeader& query, double dot,
                                               double norm_or_bias) {
    const double score = score_under(table, dot, query.norm, norm_or_bias);
    return table.metric == Metric::Cosine ? score : __dmul_rn(score, query.factor);
}

// The address of a query's components: a row of the table, or an uploaded vector.
__device__ __forceinline__ const float* components(const QueryHeader& query, const TableView& table,
                                                   const float* vectors) {
    return query.row != NOT_A_ROW ? table.components + static_cast<size_t>(query.row) * table.dim
                                  : vectors + static_cast<size_t>(query.vector) * table.dim;
}

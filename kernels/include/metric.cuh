// Rows of a table, and their scores under its metric.
#pragma once
#include "abi/resident.cuh"
#include "contract.cuh"

// The address of a row's components, of which there are `table.dim`.
__device__ __forceinline__ const float* components(const TableView& table, uint32_t row) {
    return table.components + static_cast<size_t>(row) * table.dim;
}

// What the score of a row is made of, beside the dot product: its norm, or under the metric `dot`
// its bias.
__device__ __forceinline__ double norm_or_bias(const TableView& table, uint32_t row) {
    if (table.metric == Metric::Cosine) return table.norms[row];
    return table.biases != nullptr ? static_cast<double>(table.biases[row]) : 0.0;
}

// Whether a row with this norm or bias has scores.
__device__ __forceinline__ bool has_score(const TableView& table, double norm_or_bias) {
    return table.metric == Metric::Dot || norm_or_bias != 0.0;
}

// The contract's score of a row, by its dot product with a query of this norm.
__device__ __forceinline__ double score_under(const TableView& table, double dot, double query_norm, double norm_or_bias) {
    return table.metric == Metric::Cosine ? cosine(dot, query_norm, norm_or_bias) : add(dot, norm_or_bias);
}

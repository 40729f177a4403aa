// What the host and the kernels tell each other. Mirrored in crates/gpu-core/src/cuda/engine/wire.rs,
// where the sizes are checked.
#pragma once
#include <cstdint>

constexpr uint32_t NOT_A_ROW = 0xffffffffu;

// One query, as the host uploads it. 40 bytes.
struct QueryHeader {
    double norm;              // the query's norm, above zero; 0 marks a place of the batch that is empty
    double min_score;         // only scores of at least this; -infinity for all
    uint32_t row;             // the table's row that is the query, or NOT_A_ROW
    uint32_t vector;          // else: which of the uploaded vectors it is
    uint32_t k;               // how many neighbours at most
    uint32_t first_rows;      // only the first so many rows may be neighbours
    uint32_t excluded;        // if one row is excluded, that row; if more, where they begin in the list
    uint32_t excluded_count;  // how many they are, ascending
};
static_assert(sizeof(QueryHeader) == 40, "mirrored on the host");

// What a query is after rotation and rounding to 8 bits. The theorem is in docs/certificate.md.
struct QueryScale {
    float step;      // s_q: the rounded query is step * integers
    float residual;  // e_q >= ||z - z'||, rounded up, all roundings included
    float norm;      // n_q >= ||z'||, rounded up
    int sum;         // sum of the integers
};

// One neighbour that was scored in float64.
struct Hit {
    double score;
    uint32_t row;
    uint32_t unused;
};

enum Status : uint32_t {
    ANSWERED = 0,
    CANDIDATES_OVERFLOWED = 1,  // no certificate: more rows stayed in doubt than there is room for
    SURVIVORS_OVERFLOWED = 2,
};

// What came of one query, beside its hits. 16 bytes.
struct QueryResult {
    uint32_t count;       // how many hits there are
    uint32_t status;      // a Status
    uint32_t candidates;  // rows that the scan could not rule out
    uint32_t survivors;   // rows that were scored in float64
};
static_assert(sizeof(QueryResult) == 16, "mirrored on the host");

// A query's answer is 1 + stride of these: its result, then its hits.
union Answer {
    QueryResult result;
    Hit hit;
};
static_assert(sizeof(Answer) == 16, "mirrored on the host");

// A row that the scan of the 8-bit table could not rule out.
struct Candidate {
    uint32_t slot;  // its place in the tiles
    float score;    // the score of the rounded vectors
};

// A tile of the 8-bit table: TILE_ROWS rows that share one step and one bound of their residuals.
struct TileScale {
    float inverse_step;           // 1 / s_t
    float residual_over_step;     // r_t / s_t
    float step;                   // s_t: the rounded rows are step * integers
    float residual;               // r_t >= ||y - y'|| for every row of the tile, rounded up
};

// A query's threshold, in the form that the scan's epilogue wants: the integer dot product of a row
// that may be an answer is at least `offset / s_t - slope * r_t / s_t`.
struct Threshold {
    float offset;  // (T - e_q - slack) / s_q
    float slope;   // n_q / s_q
};

// Counters of different queries lie in different lines of the cache: many blocks add to them at once,
// and additions to one line wait for one another.
__host__ __device__ constexpr size_t counter(int query) { return static_cast<size_t>(query) * COUNTER_STRIDE; }

// Whether a row that has this score may be a neighbour (the score first: it is cheapest).
__device__ __forceinline__ bool admits(const QueryHeader& query, const uint32_t* __restrict__ excluded,
                                       uint32_t row, double score) {
    // Written so that a minimum that is NaN admits nothing, as on the CPU.
    if (!(score >= query.min_score) || row >= query.first_rows) return false;
    if (query.excluded_count == 1) return row != query.excluded;
    uint32_t low = query.excluded, high = query.excluded + query.excluded_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (excluded[middle] < row) low = middle + 1;
        else high = middle;
    }
    return low == query.excluded + query.excluded_count || excluded[low] != row;
}

// Where a query's components are: a row of the table, or a vector that was uploaded.
__device__ __forceinline__ const float* components(const QueryHeader& query, const float* __restrict__ table,
                                                   const float* __restrict__ vectors, int dim) {
    return query.row != NOT_A_ROW ? table + static_cast<size_t>(query.row) * dim
                                  : vectors + static_cast<size_t>(query.vector) * dim;
}

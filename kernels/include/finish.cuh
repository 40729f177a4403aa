// The end of a certified search: rows in doubt are scored in float64, and the last block ranks
// them.
#pragma once
#include "query.cuh"
#include "top_k_list.cuh"

// Scores `count` rows by the contract's formula, and gives those that pass the query's filter to
// `add(score, row)`. Each warp scores two rows together, so that their loads overlap. Called by all
// threads.
template <class Add>
__device__ __forceinline__ void score_rows(const TableView& table, const float* vector, const QueryHeader& query,
                                           const uint32_t* excluded, const uint32_t* rows, int count, Add add) {
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (int i = 2 * warp; i < count; i += 2 * warps) {
        const bool pair = i + 1 < count;
        const uint32_t two[2] = {rows[i], rows[pair ? i + 1 : i]};
        const float* const addresses[2] = {components(table, two[0]), components(table, two[1])};
        const double own[2] = {norm_or_bias(table, two[0]), norm_or_bias(table, two[1])};
        double dots[2];
        warp_dots(addresses, vector, table.dim, dots);
        const int lane = threadIdx.x % WARP;
        if (lane < (pair ? 2 : 1)) {
            const double score = search_score(table, query, lane == 0 ? dots[0] : dots[1], lane == 0 ? own[0] : own[1]);
            const uint32_t row = lane == 0 ? two[0] : two[1];
            if (admits(query, excluded, row, score)) add(score, row);
        }
    }
}

// Adds a row to a query's survivors. Beyond the capacity only the count grows.
__device__ __forceinline__ void add_survivor(ScoredRow* survivors, uint32_t* count, uint32_t capacity, double score,
                                             uint32_t row) {
    const uint32_t index = atomicAdd(count, 1u);
    if (index < capacity) survivors[index] = {score, row, 0};
}

// The same for several blocks: those that reach `floor` become survivors.
__device__ __forceinline__ void score_survivors(const TableView& table, const float* vector, const QueryHeader& query,
                                                const uint32_t* excluded, const uint32_t* rows, int count, double floor,
                                                ScoredRow* survivors, uint32_t* survivor_count, uint32_t capacity) {
    score_rows(table, vector, query, excluded, rows, count, [&](double score, uint32_t row) {
        if (score >= floor) add_survivor(survivors, survivor_count, capacity, score, row);
    });
}

// Whether this block is the last of `blocks` blocks to call this. If so, it sees what the others
// wrote before their calls. Called by all threads.
__device__ __forceinline__ bool last_block(uint32_t* ticket, uint32_t blocks) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(ticket, 1u) == blocks - 1;
    __syncthreads();
    if (last) __threadfence();
    return last;
}

// Writes the hits of a list, best first, as the answer. A row may be in the list up to `copies`
// times. `result` lacks only the number of hits. Called by all threads of one block.
__device__ __forceinline__ void finish_list(TopKList& list, int copies, const QueryHeader& query, QueryResult result, int stride,
                                            Answer* answer) {
    __syncthreads();
    const int k = min(static_cast<int>(query.k), stride);
    if (copies == 1 && list.count <= blockDim.x) {
        // Few rows are ranked by counting, which takes less time than sorting.
        const int own = threadIdx.x, count = list.count;
        if (own < count) {
            int before = 0;
            for (int i = 0; i < count; i++) before += ranks_before(list.score[i], list.row[i], list.score[own], list.row[own]);
            if (before < k) answer[1 + before].hit = {list.score[own], list.row[own], 0};
        }
        result.count = static_cast<uint32_t>(min(count, k));
        if (threadIdx.x == 0) answer->result = result;
        return;
    }
    list.sort_and_cut();
    if (copies == 1) {
        for (int i = threadIdx.x; i < list.count; i += blockDim.x) answer[1 + i].hit = {list.score[i], list.row[i], 0};
        result.count = static_cast<uint32_t>(list.count);
        if (threadIdx.x == 0) answer->result = result;
        return;
    }
    // Copies of a row have the same score, so they are next to each other. One warp leaves them
    // out.
    if (threadIdx.x >= WARP) return;
    int hits = 0;
    for (int first = 0; first < list.count && hits < k; first += WARP) {
        const int i = first + threadIdx.x;
        const bool is_first = i < list.count && (i == 0 || list.row[i] != list.row[i - 1]);
        const uint32_t lanes = __ballot_sync(ALL_LANES, is_first);
        const int index = hits + __popc(lanes & ((1u << threadIdx.x) - 1));
        if (is_first && index < k) answer[1 + index].hit = {list.score[i], list.row[i], 0};
        hits += __popc(lanes);
    }
    result.count = static_cast<uint32_t>(min(hits, k));
    if (threadIdx.x == 0) answer->result = result;
}

// Ranks the survivors and writes the answer. A row may be among them up to `copies` times. Called
// by all threads of one block. Loads bypass the first-level cache, because other blocks wrote the
// survivors.
__device__ __forceinline__ void finish_query(TopKList& list, const QueryHeader& query, int copies,
                                             const ScoredRow* survivors,
                                             const uint32_t& survivor_count, uint32_t capacity, uint32_t candidates,
                                             bool certified, int stride, Answer* answer) {
    const uint32_t all = __ldcg(&survivor_count);
    const uint32_t kept = min(all, capacity);
    const uint32_t status = !certified ? CANDIDATES_OVERFLOWED : all > capacity ? SURVIVORS_OVERFLOWED : ANSWERED;
    if (status != ANSWERED) {
        if (threadIdx.x == 0) answer->result = {0, status, candidates, all};
        return;
    }
    const int k = min(static_cast<int>(query.k), stride);
    list.clear(copies * k);
    for (uint32_t round = 0; round < kept; round += LIST_ROUND) {
        for (uint32_t i = round + threadIdx.x; i < min(kept, round + LIST_ROUND); i += blockDim.x) {
            list.append(__ldcg(&survivors[i].score), __ldcg(&survivors[i].row));
        }
        list.make_room();
    }
    finish_list(list, copies, query, {0, ANSWERED, candidates, all}, stride, answer);
}

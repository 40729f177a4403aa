// The rows that stayed in doubt, scored by the contract's formula; the best k of them are the answer.
#include "bounds.cuh"
#include "finish.cuh"
#include "launch.cuh"
#include "select.cuh"

constexpr int DOUBTFUL = 1024;  // rows in shared memory between two rounds of scoring

// Grid: (batch, parts): the parts of a query share its candidates out; the last one to end ranks.
// Blocks of 512 threads. Dynamic shared memory: the larger of SelectSpace and TopKList.
extern "C" __global__ void __launch_bounds__(512)
rescore(const float* __restrict__ table, const double* __restrict__ norms, const float* __restrict__ vectors,
        const QueryHeader* queries, const uint32_t* __restrict__ excluded,
        const QueryScale* scales, const TileScale* __restrict__ tiles,
        const uint32_t* __restrict__ slot_rows, const Candidate* candidates,
        const uint32_t* candidate_counts, uint32_t capacity, const float* floors, int dim,
        Hit* survivors, uint32_t* survivor_counts, uint32_t survivor_capacity, uint32_t* tickets, int stride,
        Answer* __restrict__ answers) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ uint32_t doubtful[DOUBTFUL];
    __shared__ int doubtful_count;
    const int q = blockIdx.x;
    wait_for_previous();
    const QueryHeader query = queries[q];
    if (query.norm == 0.0) return;
    const uint32_t found = candidate_counts[counter(q)];
    const bool certified = found <= capacity;
    const QueryScale scale = scales[q];
    const Candidate* const mine = candidates + static_cast<size_t>(q) * capacity;
    if (certified) {
        const float floor = fmaxf(floors[q],
            select_bound(*reinterpret_cast<SelectSpace*>(memory), found, query.k + query.excluded_count, [&](int i) {
                return mine[i].score - error_bound(scale, tiles[mine[i].slot / TILE_ROWS].residual);
            }));
        const float* const vector = components(query, table, vectors, dim);
        const uint32_t each = (found + gridDim.y - 1) / gridDim.y;
        const uint32_t begin = min(found, blockIdx.y * each), end = min(found, begin + each);
        if (threadIdx.x == 0) doubtful_count = 0;
        __syncthreads();
        for (uint32_t round = begin; round < end; round += blockDim.x) {
            const uint32_t i = round + threadIdx.x;
            if (i < end) {
                const Candidate candidate = mine[i];
                const float bound = error_bound(scale, tiles[candidate.slot / TILE_ROWS].residual);
                const uint32_t row = slot_rows[candidate.slot];
                if (!(candidate.score + bound < floor) && row != NOT_A_ROW) doubtful[atomicAdd(&doubtful_count, 1)] = row;
            }
            __syncthreads();
            const bool last = round + blockDim.x >= end;
            if (last || doubtful_count > DOUBTFUL - static_cast<int>(blockDim.x)) {
                score_survivors(table, norms, vector, query, excluded, dim, doubtful, doubtful_count, -2.0,
                                survivors + static_cast<size_t>(q) * survivor_capacity, survivor_counts + counter(q),
                                survivor_capacity);
                __syncthreads();
                if (threadIdx.x == 0) doubtful_count = 0;
            }
            __syncthreads();
        }
    }
    if (last_block(tickets + counter(q), gridDim.y)) {
        finish_query(*reinterpret_cast<TopKList*>(memory), query, survivors + static_cast<size_t>(q) * survivor_capacity,
                     survivor_counts[counter(q)], survivor_capacity, found, certified, stride, answers + static_cast<size_t>(q) * (1 + stride));
    }
}

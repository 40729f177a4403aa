// A query's threshold: a certified lower bound of its k-th best cosine.
//
// With e excluded rows it is the (k + e)-th best of all rows, which is at most the k-th best of those
// that are not excluded. Grid: (batch); blocks of 256 threads.
#include "bounds.cuh"
#include "launch.cuh"
#include "select.cuh"

// The threshold follows from `floor` and from the query's own minimum score.
__device__ void set_threshold(const QueryHeader& query, const QueryScale& scale, float floor, float* floors,
                              Threshold* thresholds) {
    floor = fmaxf(floor, __double2float_rd(query.min_score));
    *floors = floor;
    *thresholds = make_threshold(scale, floor);
}

// From the lower bounds of a sample: the best of each group of rows, groups having no row in common.
extern "C" __global__ void __launch_bounds__(256)
first_thresholds(const QueryHeader* queries, const QueryScale* scales,
                 const float* group_bounds, uint32_t groups, float* floors,
                 Threshold* thresholds) {
    __shared__ SelectSpace space;
    let_next_start();
    wait_for_previous();
    const QueryHeader query = queries[blockIdx.x];
    if (query.norm == 0.0) return;
    const float* const bounds = group_bounds + static_cast<size_t>(blockIdx.x) * groups;
    const float floor = select_bound(space, groups, query.k + query.excluded_count, [&](int i) { return bounds[i]; });
    if (threadIdx.x == 0) {
        set_threshold(query, scales[blockIdx.x], floor, floors + blockIdx.x, thresholds + blockIdx.x);
    }
}

// From the candidates found so far.
extern "C" __global__ void __launch_bounds__(256)
raise_thresholds(const QueryHeader* queries, const QueryScale* scales,
                 const TileScale* __restrict__ tiles, const Candidate* candidates,
                 const uint32_t* candidate_counts, uint32_t capacity, float* floors,
                 Threshold* thresholds) {
    __shared__ SelectSpace space;
    let_next_start();
    wait_for_previous();
    const QueryHeader query = queries[blockIdx.x];
    if (query.norm == 0.0) return;
    const QueryScale scale = scales[blockIdx.x];
    const Candidate* const mine = candidates + static_cast<size_t>(blockIdx.x) * capacity;
    const int count = min(candidate_counts[counter(blockIdx.x)], capacity);
    const float floor = select_bound(space, count, query.k + query.excluded_count, [&](int i) {
        return mine[i].score - error_bound(scale, tiles[mine[i].slot / TILE_ROWS].residual);
    });
    if (threadIdx.x == 0) {
        set_threshold(query, scale, fmaxf(floor, floors[blockIdx.x]), floors + blockIdx.x, thresholds + blockIdx.x);
    }
}

// Computes each query's threshold: a certified lower bound of its k-th best cosine.
//
// With e excluded rows, it is a lower bound of the (k + e)-th best cosine of all rows, which is at most the
// k-th best of the rows that are not excluded. Grid: (batch).
#include "bounds.cuh"
#include "launch.cuh"
#include "select.cuh"

// Sets the threshold from `floor` or the query's own minimum score, whichever is higher.
__device__ void set_threshold(const QueryHeader& query, const QueryScale& scale, float floor, float* floors,
                              Threshold* thresholds) {
    floor = fmaxf(floor, __double2float_rd(query.min_score));
    *floors = floor;
    *thresholds = make_threshold(scale, floor);
}

// Sets the first thresholds from the bounds of a sample: the best lower bound of each group of rows. Groups
// share no rows.
extern "C" __global__ void first_thresholds(const FirstThresholdsParams params) {
    __shared__ SelectSpace space;
    let_next_start();
    wait_for_previous();
    const QueryHeader query = params.headers[blockIdx.x];
    if (query.norm == 0.0) return;
    const float* const bounds = params.group_bounds + static_cast<size_t>(blockIdx.x) * params.groups;
    const float floor = select_bound(space, params.groups, query.k + query.excluded_count, [&](int i) { return bounds[i]; });
    if (threadIdx.x == 0) {
        set_threshold(query, params.scales[blockIdx.x], floor, params.floors + blockIdx.x, params.thresholds + blockIdx.x);
    }
}

// Raises the thresholds from the candidates found so far.
extern "C" __global__ void raise_thresholds(const RaiseThresholdsParams params) {
    __shared__ SelectSpace space;
    let_next_start();
    wait_for_previous();
    const QueryHeader query = params.headers[blockIdx.x];
    if (query.norm == 0.0) return;
    const QueryScale scale = params.scales[blockIdx.x];
    const Candidate* const mine = params.candidates + static_cast<size_t>(blockIdx.x) * params.capacity;
    const int count = min(params.candidate_counts[counter(blockIdx.x)], params.capacity);
    const float floor = select_bound(space, count, query.k + query.excluded_count, [&](int i) {
        return mine[i].score - error_bound(scale, params.tile_scales[mine[i].slot / TILE_ROWS].residual);
    });
    if (threadIdx.x == 0) {
        set_threshold(query, scale, fmaxf(floor, params.floors[blockIdx.x]), params.floors + blockIdx.x,
                      params.thresholds + blockIdx.x);
    }
}

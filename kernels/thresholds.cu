// Computes each query's threshold: a certified lower bound of its k-th best cosine.
//
// For few hits, it is the k-th best of some exact scores. For more, it is the k-th best lower
// bound. With e excluded rows, if they are few, that is the (k + e)-th, which is at most the k-th
// of the rows that are not excluded. Other rows that a query's filter leaves out do not count.
// Grid: (batch).
#include "exact_floor.cuh"
#include "formula_floor.cuh"
#include "formula_normal.cuh"
#include "launch.cuh"
#include "round_query.cuh"
#include "select.cuh"
#include "tile_walk.cuh"

constexpr uint32_t RAISE_FORMULA_FROM = 384;  // candidates of a column

// Sets the threshold from `floor` or the query's own minimum score, whichever is higher.
__device__ void set_threshold(const QueryHeader& query, const QueryScale& scale, float floor, float* floors,
                              Threshold* thresholds) {
    floor = fmaxf(floor, __double2float_rd(query.min_score));
    *floors = floor;
    *thresholds = make_threshold(scale, floor);
}

// The groups of a sample's tile, as the scans cut them: both have the rows of a quad's lane
// together, and the portable scan has two halves.
struct Groups {
    const TileWalk& sample;
    uint32_t per_tile;

    __device__ uint32_t tile(int group) const { return tile_at(sample, group / per_tile); }

    // The slot of the row of this index in a group.
    __device__ uint32_t slot(int group, uint32_t index) const {
        const uint32_t part = group % per_tile;
        const uint32_t half = per_tile == HOPPER_GROUPS ? 0 : part / (INT8_GROUPS / 2) * (TILE_ROWS / 2);
        return tile(group) * TILE_ROWS + half + index / 2 * 8 + 2 * (part % 4) + index % 2;
    }

    // The group of a slot in a tile.
    __device__ uint32_t part(uint32_t slot) const {
        const uint32_t lane = slot % 8 / 2;
        return per_tile == HOPPER_GROUPS ? lane : slot % TILE_ROWS / (TILE_ROWS / 2) * (INT8_GROUPS / 2) + lane;
    }
};

// The best rows of a query's groups, with lower bounds as guesses.
__device__ __forceinline__ auto found_groups(const Groups& groups, const float* bounds, int count) {
    return found_rows(count, [=](int i) { return bounds[i]; },
                      [=](int i) { return groups.slot(i, __float_as_uint(bounds[i]) & GROUP_INDEX_MASK); });
}

// The k-th best of the groups' lower bounds, for many hits. Called by all threads.
__device__ __forceinline__ float floor_of_groups(const FirstThresholdsParams& params, const QueryHeader& query,
                                                 const QueryScale& scale, const Groups& groups, int count, float* bounds) {
    __shared__ SelectSpace space;
    if (query.excluded_count > FEW_EXCLUDED) {
        // A group with an excluded row gives no bound: the row may be its best.
        const uint32_t* const slots = params.pass.queries.excluded + query.excluded + query.excluded_count;
        for (uint32_t i = threadIdx.x; i < query.excluded_count; i += blockDim.x) {
            const uint32_t slot = slots[i], tile = slot / TILE_ROWS;
            if (slot == NOT_A_ROW || tile >= query.tiles_within) continue;
            const uint32_t index = walked_before(params.sample, tile);
            if (index >= params.sample.count || tile_at(params.sample, index) != tile) continue;
            bounds[index * groups.per_tile + groups.part(slot)] = -INFINITY;
        }
        __syncthreads();
    }
    const bool has_maximum = query.max_score < 2.0;
    const float most = __double2float_rd(query.max_score);
    return select_bound(space, count, query.rank, [&](int i) {
        const float bound = bounds[i];
        if (!has_maximum) return bound;
        // The group's best row has at most this cosine.
        const float error = error_bound(scale, params.pass.tile_scales[groups.tile(i)].residual);
        return bound + 2.0f * error + 1e-4f <= most ? bound : -INFINITY;
    });
}

// The first threshold of a query, from the bounds of a sample: the best lower bound of each group
// of rows. Groups share no rows. Called by all threads of a block.
__device__ __forceinline__ void set_first_threshold(const FirstThresholdsParams& params, const QueryHeader& query) {
    const QueryScale scale = params.pass.scales[blockIdx.x];
    float* const bounds = params.group_bounds + static_cast<size_t>(blockIdx.x) * params.groups;
    const Groups groups = {params.sample, params.groups_per_tile};
    float floor;
    if (query.k > FLOOR_HITS) {
        const int count = walked_before(params.sample, query.tiles_within) * groups.per_tile;
        floor = floor_of_groups(params, query, scale, groups, count, bounds);
    } else {
        const int count = walked_before(params.sample, query.tiles_covering) * groups.per_tile;
        __shared__ FloorSpace space;
        const auto found = found_groups(groups, bounds, count);
        // Groups have lower bounds.
        const float error = 4.0f * scale.residual;
        floor = __double2float_rd(exact_floor(space, params.pass.table, params.pass.queries, params.pass.slot_rows, query, found, error));
    }
    if (threadIdx.x == 0) set_threshold(query, scale, floor, params.pass.floors + blockIdx.x, params.pass.thresholds + blockIdx.x);
}

extern "C" __global__ void first_thresholds(const FirstThresholdsParams params) {
    let_next_start();
    wait_for_previous();
    const QueryHeader query = params.pass.queries.headers[blockIdx.x];
    if (query.norm != 0.0) set_first_threshold(params, query);
}

// For passes with formulas. Each column's block finds the formula's floor, which makes a better
// guess of the k-th best score, and rounds the column's normal again. Dynamic shared memory: [dim]
// float64.
extern "C" __global__ void first_formula_thresholds(const FirstThresholdsParams params) {
    extern __shared__ double normal[];
    let_next_start();
    wait_for_previous();
    const int q = blockIdx.x;
    const QueryHeader query = params.pass.queries.headers[q];
    if (query.norm == 0.0) return;
    if (!is_formula(query)) {
        set_first_threshold(params, query);
        return;
    }
    __shared__ FormulaSpace space;
    __shared__ Formula formula;
    __shared__ uint32_t words[FORMULA_WORDS];
    copy_words(words, query, params.pass.queries.excluded);
    copy_formula(formula, params.pass.formulas[query.formula]);
    const Groups groups = {params.sample, params.groups_per_tile};
    const int count = walked_before(params.sample, query.tiles_covering) * groups.per_tile;
    const auto found_for = [&](int column) {
        const float* const bounds = params.group_bounds + static_cast<size_t>(q - query.column + column) * params.groups;
        return found_groups(groups, bounds, count);
    };
    const double found =
        formula_floor(space, params.pass.table, params.pass.queries.excluded, words, params.pass.slot_rows, formula, query, found_for);
    const double floor = fmax(found, query.min_score);
    if (!(floor > 0.0)) {
        // The half-spaces have all rows. So there is no certificate, and no row reaches the
        // threshold.
        if (threadIdx.x == 0) {
            params.pass.candidate_counts[counter(q)] = FORMULA_FAILED;
            params.pass.thresholds[q] = UNREACHABLE;
            params.pass.formula_floors[q] = INFINITY;
        }
        return;
    }
    const double likely = formula.center + (floor - formula.center) * formula.stretch;
    const FormulaColumn column =
        make_normal(formula, params.pass.table, words, query.column, fmax(likely, LEAST_LIKELY), normal);
    const QueryScale scale = round_query(normal, params.pass.table.dim, params.padded, params.layout, params.pass.bytes, q);
    if (threadIdx.x != 0) return;
    if (!(column.norm > LEAST_NORMAL)) params.pass.candidate_counts[counter(q)] = FORMULA_FAILED;
    if (query.column == 0) params.pass.formula_floors[q] = floor;
    params.pass.columns[q] = column;
    params.pass.scales[q] = scale;
    params.pass.floors[q] = column_floor(column, formula.power, floor);
    params.pass.thresholds[q] = column.norm > LEAST_NORMAL ? make_threshold(scale, params.pass.floors[q]) : UNREACHABLE;
}

// Raises the threshold of a query from the candidates found so far. Called by all threads of a
// block.
__device__ __forceinline__ void raise(const RaiseThresholdsParams& params, const QueryHeader& query) {
    const QueryScale scale = params.pass.scales[blockIdx.x];
    const Candidate* const mine = params.pass.candidates + static_cast<size_t>(blockIdx.x) * params.pass.capacity;
    const int count = min(params.pass.candidate_counts[counter(blockIdx.x)], params.pass.capacity);
    float floor;
    if (query.k > FLOOR_HITS) {
        __shared__ SelectSpace space;
        floor = select_bound(space, count, query.rank, [&](int i) {
            return threshold_bound(query, params.pass.queries.excluded, params.pass.slot_rows, mine[i],
                                   error_bound(scale, params.pass.tile_scales[mine[i].slot / TILE_ROWS].residual));
        });
    } else {
        __shared__ FloorSpace space;
        const auto found = found_candidates(mine, count);
        const float error = 2.0f * scale.residual;
        floor = __double2float_rd(exact_floor(space, params.pass.table, params.pass.queries, params.pass.slot_rows, query, found, error));
    }
    if (threadIdx.x == 0) {
        set_threshold(query, scale, fmaxf(floor, params.pass.floors[blockIdx.x]), params.pass.floors + blockIdx.x,
                      params.pass.thresholds + blockIdx.x);
    }
}

// The same for all columns of a formula, if it has many candidates: fewer are scored in less time
// than a floor takes. Called by all threads of one block, for the formula's first column.
__device__ __forceinline__ void raise_formula(const RaiseThresholdsParams& params, const QueryHeader& query) {
    __shared__ FormulaSpace space;
    __shared__ Formula formula;
    __shared__ uint32_t words[FORMULA_WORDS];
    const int first = blockIdx.x;
    copy_words(words, query, params.pass.queries.excluded);
    copy_formula(formula, params.pass.formulas[query.formula]);
    uint32_t most = 0;
    for (uint32_t c = 0; c < formula.columns; c++) most = max(most, params.pass.candidate_counts[counter(first + c)]);
    if (most <= RAISE_FORMULA_FROM) return;
    const auto found_for = [&](int column) {
        return found_for_column(params.pass.candidates, params.pass.candidate_counts, params.pass.capacity, first + column);
    };
    const double floor =
        formula_floor(space, params.pass.table, params.pass.queries.excluded, words, params.pass.slot_rows, formula, query, found_for);
    if (floor <= params.pass.formula_floors[first]) return;
    __syncthreads();
    if (threadIdx.x == 0) params.pass.formula_floors[first] = floor;
    if (threadIdx.x >= formula.columns) return;
    const int q = first + threadIdx.x;
    // That of a column without a certificate stays.
    if (!(params.pass.columns[q].norm > LEAST_NORMAL)) return;
    params.pass.floors[q] = column_floor(params.pass.columns[q], formula.power, floor);
    params.pass.thresholds[q] = make_threshold(params.pass.scales[q], params.pass.floors[q]);
}

extern "C" __global__ void raise_thresholds(const RaiseThresholdsParams params) {
    let_next_start();
    wait_for_previous();
    const QueryHeader query = params.pass.queries.headers[blockIdx.x];
    if (query.norm != 0.0) raise(params, query);
}

// For passes with formulas.
extern "C" __global__ void raise_formula_thresholds(const RaiseThresholdsParams params) {
    let_next_start();
    wait_for_previous();
    const QueryHeader query = params.pass.queries.headers[blockIdx.x];
    if (query.norm == 0.0) return;
    if (!is_formula(query)) raise(params, query);
    else if (query.column == 0) raise_formula(params, query);
}

// Sets the thresholds of queries for every row from their minimum score on. Grid: enough blocks for
// the batch.
extern "C" __global__ void minimum_thresholds(const MinimumThresholdsParams params) {
    let_next_start();
    wait_for_previous();
    const int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= params.batch || params.pass.queries.headers[q].norm == 0.0) return;
    set_threshold(params.pass.queries.headers[q], params.pass.scales[q], -INFINITY, params.pass.floors + q, params.pass.thresholds + q);
}

// Gives up queries that have so many candidates in a part of the table that all of them will not
// fit: each of their candidates would cost time. Grid: as above.
extern "C" __global__ void stop_queries(const StopQueriesParams params) {
    let_next_start();
    wait_for_previous();
    const int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= params.batch || params.pass.candidate_counts[counter(q)] <= params.most) return;
    params.pass.candidate_counts[counter(q)] = params.pass.capacity + 1;
    params.pass.thresholds[q] = UNREACHABLE;
}

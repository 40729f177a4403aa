// Scans the 8-bit table with the tensor-core instructions of every supported device (mma.sync). It
// computes one integer dot product for each query and row. When sampling, it writes the best lower
// bound of each group of rows; otherwise the rows that reach the query's threshold. All other dot
// products never leave the registers.
//
// A warp multiplies half a tile (64 rows) by 16, 32 or 64 queries. Rows come directly from device
// memory: each lane loads 16 bytes, which are four operands. Queries come from the first-level
// cache.
#include "bounds.cuh"
#include "launch.cuh"
#include "mma.cuh"
#include "tile_walk.cuh"

constexpr int ROWS = TILE_ROWS / 2;     // a warp's
constexpr int COLUMN_TILES = ROWS / 8;  // of mma's 8 columns: 8 rows of the table
static_assert(CHUNK_BYTES == 16 && INT8_GROUPS == 8, "a lane's load; two halves of a tile, four lanes of a quad");

// MTILES: tiles of 16 queries. SAMPLING: write group bounds instead of candidates. For each column
// tile, a thread holds the products of two rows of the table with query g and with query g + 8.
template <int MTILES, bool SAMPLING, bool SETS>
__device__ __forceinline__ void scan(const Int8ScanParams& params) {
    const ScanOutput& out = params.out;
    const int chunks = params.chunks;
    const TileWalk walk = params.walk;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const uint32_t warp = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32;
    const uint32_t warps = gridDim.y * (blockDim.x / 32);
    const int steps = (chunks + 3) / 4;  // of 64 components
    const int first_query = blockIdx.x * MTILES * 16;
    wait_for_previous();
    let_next_start();
    Threshold thresholds[MTILES][2];
    QueryScale scales[MTILES][2];
    uint32_t lowest_end = ~0u;
#pragma unroll
    for (int m = 0; m < MTILES; m++) {
#pragma unroll
        for (int up = 0; up < 2; up++) {
            const int q = first_query + m * 16 + up * 8 + g;
            if (!SAMPLING) {
                thresholds[m][up] = out.thresholds[q];
                lowest_end = min(lowest_end, out.ends[q]);
            }
            scales[m][up] = out.scales[q];
        }
    }
    lowest_end = lowest_in_warp(lowest_end);
    const uint4* const a = reinterpret_cast<const uint4*>(params.fragments) +
                           static_cast<size_t>(blockIdx.x) * MTILES * steps * 2 * 32 + lane;
    for (uint32_t half = warp; half < 2 * walk.count; half += warps) {
        const uint32_t tile = tile_at(walk, half / 2);
        const uint4* rows = reinterpret_cast<const uint4*>(params.tiles) +
                            (static_cast<size_t>(tile) * chunks + t) * TILE_ROWS + half % 2 * ROWS + g;
        int d[MTILES][COLUMN_TILES][4] = {};
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            const int chunk = 4 * step + t;
            uint4 b[COLUMN_TILES];
#pragma unroll
            for (int n = 0; n < COLUMN_TILES; n++) {
                b[n] = chunk < chunks ? __ldcs(rows + n * 8) : make_uint4(0, 0, 0, 0);
            }
            rows += 4 * TILE_ROWS;
#pragma unroll
            for (int m = 0; m < MTILES; m++) {
                const uint4 low = a[(static_cast<size_t>(m) * steps * 2 + 2 * step) * 32];
                const uint4 high = a[(static_cast<size_t>(m) * steps * 2 + 2 * step + 1) * 32];
#pragma unroll
                for (int n = 0; n < COLUMN_TILES; n++) {
                    multiply(d[m][n], low, b[n].x, b[n].y);
                    multiply(d[m][n], high, b[n].z, b[n].w);
                }
            }
        }
        const TileScale scale = params.tile_scales[tile];
        // The members of query q's set among this thread's rows, as bits 2n + i.
        const auto members = [&](int q) {
            return SETS ? members_of_lane(out.sets[q], tile, t) >> half % 2 * (2 * COLUMN_TILES) : ~0u;
        };
#pragma unroll
        for (int m = 0; m < MTILES; m++) {
#pragma unroll
            for (int up = 0; up < 2; up++) {
                const int q = first_query + m * 16 + up * 8 + g;
                if (SAMPLING) {
                    // A product has at most 4096 * 127 * 127 < 2^26, so its row's index fits beside
                    // it.
                    int best = INT_MIN;
                    const uint32_t own = members(q);
#pragma unroll
                    for (int n = 0; n < COLUMN_TILES; n++) {
#pragma unroll
                        for (int i = 0; i < 2; i++) {
                            if (own >> (2 * n + i) & 1) best = max(best, d[m][n][2 * up + i] * 16 + 2 * n + i);
                        }
                    }
                    if (best == INT_MIN) {
                        out.group_bounds[static_cast<size_t>(q) * out.groups + half * (INT8_GROUPS / 2) + t] = -INFINITY;
                        continue;
                    }
                    const float bound = static_cast<float>(best >> 4) * (scale.step * scales[m][up].step) -
                                        error_bound(scales[m][up], scale.residual);
                    out.group_bounds[static_cast<size_t>(q) * out.groups + half * (INT8_GROUPS / 2) + t] =
                        group_bound(bound, best & 15);
                    continue;
                }
                int best = d[m][0][2 * up];
#pragma unroll
                for (int n = 0; n < COLUMN_TILES; n++) best = max(best, max(d[m][n][2 * up], d[m][n][2 * up + 1]));
                const int threshold = integer_threshold(thresholds[m][up], scale);
                if (best < threshold || (tile >= lowest_end && tile >= out.ends[q])) continue;
                const uint32_t own = members(q);
#pragma unroll
                for (int n = 0; n < COLUMN_TILES; n++) {
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        const int dot = d[m][n][2 * up + i];
                        if (dot >= threshold && (own >> (2 * n + i) & 1)) {
                            add_candidate(out, q, tile * TILE_ROWS + half % 2 * ROWS + n * 8 + 2 * t + i,
                                          static_cast<float>(dot) * (scale.step * scales[m][up].step));
                        }
                    }
                }
            }
        }
    }
}

// Grid: (batch / QUERIES, blocks).
#define INT8_SCAN(NAME, QUERIES, SAMPLING, SETS)                               \
    extern "C" __global__ void NAME##_##QUERIES(const Int8ScanParams params) { \
        scan<QUERIES / 16, SAMPLING, SETS>(params);                            \
    }
#define INT8_SCANS(NAME, SAMPLING, SETS)  \
    INT8_SCAN(NAME, 16, SAMPLING, SETS)   \
    INT8_SCAN(NAME, 32, SAMPLING, SETS)   \
    INT8_SCAN(NAME, 64, SAMPLING, SETS)
INT8_SCANS(int8_sample, true, false)
INT8_SCANS(int8_scan, false, false)
INT8_SCANS(int8_set_sample, true, true)
INT8_SCANS(int8_set_scan, false, true)

// Scans the 8-bit table with Hopper's own instructions (compute capability 9.0a).
//
// One thread copies tiles into a ring in shared memory by bulk copies; one or two warpgroups
// multiply each tile by 64 or 128 queries per warpgroup. The queries stay in registers, as operand
// A, for the whole scan. With 128 queries, the next product runs while the accumulators of the last
// one are compared. The output has the form of int8_scan.cu's.
#include "hopper_compare.cuh"
#include "launch.cuh"

// `fragments` are `[batch / 64, STEPS, 128]` of 16 bytes; `tile64` is one of the first.
template <int STEPS>
__device__ __forceinline__ void load_queries(uint4 (&a)[STEPS], const uint8_t* fragments, int tile64) {
    const uint4* const from = reinterpret_cast<const uint4*>(fragments) + threadIdx.x % 128;
#pragma unroll
    for (int step = 0; step < STEPS; step++) a[step] = from[(static_cast<size_t>(tile64) * STEPS + step) * 128];
}

// `tile` has 2 * STEPS chunks of TILE_ROWS rows, in shared memory.
template <int STEPS>
__device__ __forceinline__ void multiply(int (&d)[64], const uint4 (&a)[STEPS], const uint8_t* tile) {
    const uint64_t b = tile_descriptor(tile);
    products_begin();
#pragma unroll
    for (int step = 0; step < STEPS; step++) product_64x128x32(d, a[step], b + step * DESCRIPTOR_STEP, step > 0);
    products_commit();
}

// STEPS: steps of 32 components. Past the tile's own chunks operand A is zero, so the data there
// does not matter. WARPGROUPS: warpgroups that multiply; one more copies. WIDE: 128 queries per
// warpgroup instead of 64. SETS: queries have sets of rows.
template <int STEPS, int WARPGROUPS, bool WIDE, bool SAMPLING, bool SETS>
__device__ __forceinline__ void scan(const HopperScanParams& params) {
    const ScanOutput& out = params.out;
    const TileScale* const tile_scales = params.tile_scales;
    const int stages = params.stages, query_groups = params.query_groups;
    const TileWalk walk = params.walk;
    extern __shared__ __align__(1024) uint8_t ring[];
    __shared__ uint64_t filled[HOPPER_MAX_STAGES], emptied[HOPPER_MAX_STAGES];
    __shared__ Gathered of_warps[SAMPLING ? 1 : 4 * WARPGROUPS];
    const int warpgroup = threadIdx.x / 128;
    const int group = blockIdx.x % query_groups;
    const uint32_t stride = gridDim.x / query_groups;
    const uint32_t bytes = params.chunks * TILE_ROWS * CHUNK_BYTES;
    constexpr int EACH = WIDE ? 2 : 1;  // tiles of 64 queries
    // A sample has bounds of all of its tiles.
    constexpr bool SKIPS = SETS && !SAMPLING;
    __shared__ uint64_t common;  // registers are scarce
    if constexpr (SKIPS) {
        wait_for_previous();
        const uint64_t set = common_set(out, group * WARPGROUPS * EACH * 64, WARPGROUPS * EACH * 64);
        if (threadIdx.x == 0) common = set;
        __syncthreads();
    }
    const auto next_from = [&](uint32_t i) {
        if constexpr (SKIPS) return next_with_member(walk, i, stride, common);
        else return i;
    };
    const uint32_t begin = next_from(blockIdx.x / query_groups);
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; i++) {
            barrier_init(filled + i, 1);
            barrier_init(emptied + i, WARPGROUPS);
        }
        publish_barriers();
    }
    __syncthreads();
    if (warpgroup == WARPGROUPS) {
        if constexpr (WARPGROUPS == 2) registers_lower<24>();
        if (threadIdx.x % 128 == 0) {
            int stage = 0;
            uint32_t parity = 1;  // of a phase before the first: the ring is empty
            for (uint32_t i = begin; i < walk.count; i = next_from(i + stride)) {
                const uint8_t* const tile = params.tiles + static_cast<size_t>(tile_at(walk, i)) * bytes;
                barrier_wait(emptied + stage, parity);
                bulk_copy(ring + stage * bytes, tile, bytes, filled + stage);
                if (++stage == stages) stage = 0, parity ^= 1;
            }
        }
        // The table never changes, so the copies need not wait for earlier kernels. But this kernel
        // must end after them, because later kernels rely on that.
        wait_for_previous();
        let_next_start();
        return;
    }
    if constexpr (WARPGROUPS == 2) registers_raise<240>();
    wait_for_previous();
    let_next_start();
    const int tile64 = (group * WARPGROUPS + warpgroup) * EACH;
    uint4 a[STEPS];
    load_queries(a, params.fragments, tile64);
    const QueryPair c = compared<SAMPLING>(out, tile64 * 64);
    uint32_t lowest_end = lowest_in_warp(min(out.ends[c.query[0]], out.ends[c.query[1]]));
    Gathered& gathered = of_warps[SAMPLING ? 0 : threadIdx.x / 32];
    int count = 0;
    int d[64];
    int stage = 0;
    uint32_t parity = 0;
    const bool leads = threadIdx.x % 128 == 0;
    if constexpr (!WIDE) {
        for (uint32_t i = begin; i < walk.count; i = next_from(i + stride)) {
            const uint32_t tile = tile_at(walk, i);
            const TileScale scale = tile_scales[tile];
            const Members members = members_of<SETS>(out, c, tile);
            barrier_wait(filled + stage, parity);
            multiply(d, a, ring + stage * bytes);
            products_wait<0>();
            products_done(d);
            if (leads) barrier_arrive(emptied + stage);
            compare<SAMPLING, SETS>(d, c, members, scale, tile, i, lowest_end, out, gathered, count);
            if (++stage == stages) stage = 0, parity ^= 1;
        }
    } else {
        uint4 a2[STEPS];
        load_queries(a2, params.fragments, tile64 + 1);
        const QueryPair c2 = compared<SAMPLING>(out, tile64 * 64 + 64);
        lowest_end = min(lowest_end, lowest_in_warp(min(out.ends[c2.query[0]], out.ends[c2.query[1]])));
        int d2[64];
        if (begin >= walk.count) return;
        uint32_t tile = tile_at(walk, begin);
        TileScale scale = tile_scales[tile];
        Members members = members_of<SETS>(out, c, tile);
        barrier_wait(filled, 0);
        multiply(d, a, ring);
#pragma unroll 1
        for (uint32_t i = begin;;) {
            const Members members2 = members_of<SETS>(out, c2, tile);
            multiply(d2, a2, ring + stage * bytes);
            const uint32_t next = next_from(i + stride);
            products_wait<1>();
            products_done(d);
            compare<SAMPLING, SETS>(d, c, members, scale, tile, i, lowest_end, out, gathered, count);
            const int done_stage = stage;
            const uint32_t done_tile = tile;
            const TileScale done_scale = scale;
            if (next < walk.count) {
                if (++stage == stages) stage = 0, parity ^= 1;
                tile = tile_at(walk, next);
                scale = tile_scales[tile];
                members = members_of<SETS>(out, c, tile);
                barrier_wait(filled + stage, parity);
                multiply(d, a, ring + stage * bytes);
                products_wait<1>();
            } else {
                products_wait<0>();
            }
            products_done(d2);
            if (leads) barrier_arrive(emptied + done_stage);
            compare<SAMPLING, SETS>(d2, c2, members2, done_scale, done_tile, i, lowest_end, out, gathered, count);
            if (next >= walk.count) break;
            i = next;
        }
    }
    if constexpr (!SAMPLING) empty(out, gathered, count);
}

// Grid: a multiple of query_groups; blocks of 128 * (WARPGROUPS + 1) threads. Dynamic shared
// memory: stages * chunks * 2048 bytes, and 2048 for each chunk that the last product reads past
// the end.
#define HOPPER_SCAN(NAME, STEPS, WARPGROUPS, WIDE, SAMPLING, SETS)             \
    extern "C" __global__ void NAME##_##STEPS(const HopperScanParams params) { \
        scan<STEPS, WARPGROUPS, WIDE, SAMPLING, SETS>(params);                 \
    }
#define HOPPER_SCANS(KIND, STEPS, SAMPLING, SETS)                       \
    HOPPER_SCAN(hopper_##KIND##_64, STEPS, 1, false, SAMPLING, SETS)    \
    HOPPER_SCAN(hopper_##KIND##_128, STEPS, 2, false, SAMPLING, SETS)   \
    HOPPER_SCAN(hopper_##KIND##_256, STEPS, 2, true, SAMPLING, SETS)
#define HOPPER_KINDS(STEPS)                      \
    HOPPER_SCANS(sample, STEPS, true, false)     \
    HOPPER_SCANS(scan, STEPS, false, false)      \
    HOPPER_SCANS(set_sample, STEPS, true, true)  \
    HOPPER_SCANS(set_scan, STEPS, false, true)
HOPPER_KINDS(2)
HOPPER_KINDS(4)
HOPPER_KINDS(7)
HOPPER_KINDS(10)

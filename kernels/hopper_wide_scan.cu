// Scans the 8-bit table with Hopper's own instructions (compute capability 9.0a), for rows of more
// components than fit beside the queries in registers.
//
// The queries stay in shared memory, as operand A. One thread copies tiles, a slice of 128
// components at a time, into a ring beside them; each warpgroup multiplies the slices by its own 64
// queries. While one compares a tile's products, the others multiply. The output has the form of
// int8_scan.cu's.
#include "hopper_compare.cuh"
#include "launch.cuh"

constexpr uint32_t CHUNK_OF_TILE = TILE_ROWS * CHUNK_BYTES;
constexpr uint32_t SLICE_BYTES = SLICE_CHUNKS * CHUNK_OF_TILE;
constexpr uint32_t QUERIES_SLICE_BYTES = SLICE_CHUNKS * 64 * CHUNK_BYTES;  // of 64 queries
static_assert(SLICE_CHUNKS % 2 == 0, "a product takes two chunks");

template <int WARPGROUPS, bool SAMPLING, bool SETS>
__device__ __forceinline__ void scan(const HopperScanParams& params) {
    const ScanOutput& out = params.out;
    const int stages = params.stages, query_groups = params.query_groups;
    const int slices = (params.chunks + SLICE_CHUNKS - 1) / SLICE_CHUNKS;
    const TileWalk walk = params.walk;
    extern __shared__ __align__(1024) uint8_t queries[];
    __shared__ uint64_t filled[HOPPER_MAX_STAGES], emptied[HOPPER_MAX_STAGES], queries_are_there;
    __shared__ Gathered of_warps[SAMPLING ? 1 : 4 * WARPGROUPS];
    const uint32_t queries_bytes = slices * QUERIES_SLICE_BYTES;  // of one warpgroup
    uint8_t* const ring = queries + WARPGROUPS * queries_bytes;
    const int warpgroup = threadIdx.x / 128;
    const int group = blockIdx.x % query_groups;
    const uint32_t stride = gridDim.x / query_groups;
    // A sample has bounds of all of its tiles.
    constexpr bool SKIPS = SETS && !SAMPLING;
    __shared__ uint64_t common;  // registers are scarce
    if constexpr (SKIPS) {
        wait_for_previous();
        const uint64_t set = common_set(out, group * WARPGROUPS * 64, WARPGROUPS * 64);
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
        barrier_init(&queries_are_there, 1);
        publish_barriers();
    }
    __syncthreads();
    if (warpgroup == WARPGROUPS) {
        const int thread = threadIdx.x % 128;
        if (thread == 0) {
            int stage = 0;
            uint32_t parity = 1;  // of a phase before the first: the ring is empty
            for (uint32_t i = begin; i < walk.count; i = next_from(i + stride)) {
                const uint8_t* from = params.tiles + static_cast<size_t>(tile_at(walk, i)) * params.chunks * CHUNK_OF_TILE;
                for (int chunks = params.chunks; chunks > 0; chunks -= SLICE_CHUNKS) {
                    // The rest of the last slice is multiplied by zeros.
                    barrier_wait(emptied + stage, parity);
                    bulk_copy(ring + stage * SLICE_BYTES, from, min(chunks, SLICE_CHUNKS) * CHUNK_OF_TILE, filled + stage);
                    from += SLICE_BYTES;
                    if (++stage == stages) stage = 0, parity ^= 1;
                }
            }
        }
        // The table never changes, so its copies need not wait for earlier kernels. But this kernel
        // must end after them, because later kernels rely on that.
        wait_for_previous();
        let_next_start();
        if (thread == 32) {
            const size_t first = static_cast<size_t>(group) * WARPGROUPS * queries_bytes;
            bulk_copy(queries, params.fragments + first, WARPGROUPS * queries_bytes, &queries_are_there);
        }
        return;
    }
    wait_for_previous();
    let_next_start();
    const int tile64 = group * WARPGROUPS + warpgroup;
    const QueryPair c = compared<SAMPLING>(out, tile64 * 64);
    const uint32_t lowest_end = lowest_in_warp(min(out.ends[c.query[0]], out.ends[c.query[1]]));
    Gathered& gathered = of_warps[SAMPLING ? 0 : threadIdx.x / 32];
    const bool leads = threadIdx.x % 128 == 0;
    const uint64_t own = queries_descriptor(queries + warpgroup * queries_bytes);
    barrier_wait(&queries_are_there, 0);
    int d[64];
    int count = 0, stage = 0;
    uint32_t parity = 0;
    for (uint32_t i = begin; i < walk.count; i = next_from(i + stride)) {
        const uint32_t tile = tile_at(walk, i);
        const TileScale scale = params.tile_scales[tile];
        const Members members = members_of<SETS>(out, c, tile);
        int before = 0;
#pragma unroll 1
        for (int slice = 0; slice < slices; slice++) {
            barrier_wait(filled + stage, parity);
            const uint64_t a = own + slice * (QUERIES_SLICE_BYTES >> 4), b = tile_descriptor(ring + stage * SLICE_BYTES);
            products_begin();
#pragma unroll
            for (int step = 0; step < SLICE_CHUNKS / 2; step++) {
                product_64x128x32(d, a + step * QUERIES_STEP, b + step * DESCRIPTOR_STEP, slice > 0 || step > 0);
            }
            products_commit();
            // The slice before this one has been read.
            products_wait<1>();
            if (leads && slice > 0) barrier_arrive(emptied + before);
            before = stage;
            if (++stage == stages) stage = 0, parity ^= 1;
        }
        products_wait<0>();
        products_done(d);
        if (leads) barrier_arrive(emptied + before);
        compare<SAMPLING, SETS>(d, c, members, scale, tile, i, lowest_end, out, gathered, count);
    }
    if constexpr (!SAMPLING) empty(out, gathered, count);
}

// Grid: a multiple of query_groups; blocks of 128 * (WARPGROUPS + 1) threads, for 64 * WARPGROUPS
// queries. Dynamic shared memory: for each slice, QUERIES_SLICE_BYTES per warpgroup; then stages *
// SLICE_BYTES.
#define HOPPER_WIDE_SCAN(NAME, WARPGROUPS, SAMPLING, SETS) \
    extern "C" __global__ void NAME(const HopperScanParams params) { scan<WARPGROUPS, SAMPLING, SETS>(params); }
#define HOPPER_WIDE_SCANS(KIND, SAMPLING, SETS)                     \
    HOPPER_WIDE_SCAN(hopper_wide_##KIND##_64, 1, SAMPLING, SETS)    \
    HOPPER_WIDE_SCAN(hopper_wide_##KIND##_128, 2, SAMPLING, SETS)
HOPPER_WIDE_SCANS(sample, true, false)
HOPPER_WIDE_SCANS(scan, false, false)
HOPPER_WIDE_SCANS(set_sample, true, true)
HOPPER_WIDE_SCANS(set_scan, false, true)

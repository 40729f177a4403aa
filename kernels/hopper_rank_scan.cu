// Counts ranks as rank_scan.cu does, with Hopper's own instructions (compute capability 9.0a).
//
// One warpgroup copies rows to shared memory, some chunks ahead. One splits them into float16 and
// puts these into a ring, beside the queries' operands, which come by bulk copies. One or two
// multiply each chunk of a tile by 64 queries each, and put the sums into bins. So all of this
// happens at the same time.
#include "cp_async.cuh"
#include "hopper.cuh"
#include "ranks.cuh"

constexpr int GROUP = 128;              // threads of a warpgroup
constexpr int PARTS = RANK_CHUNK / 4;   // of a row in a chunk: 16 bytes of float32
constexpr int PIECES = RANK_CHUNK / 8;  // of 8 components: 16 bytes

// A chunk of a tile in the ring, and of the queries.
template <int WARPGROUPS>
struct __align__(128) Stage {
    __half high[PIECES][RANK_TILE][8], low[PIECES][RANK_TILE][8];
    __half queries[WARPGROUPS][2][PIECES][64][8];
    float masks[RANK_TILE];  // in the last chunk of a tile
};

template <int WARPGROUPS>
struct Space {
    Stage<WARPGROUPS> ring[RANK_RING];
    float4 raw[RANK_AHEAD][PARTS][RANK_TILE + 1];  // rows on their way; one more, so that those of a row are in different banks
    Thresholds thresholds[64 * WARPGROUPS];
};
static_assert(sizeof(Space<1>) <= RANK_HOPPER_SHARED + 64 * RANK_HOPPER_SHARED_PER_QUERY);
static_assert(sizeof(Space<2>) <= RANK_HOPPER_SHARED + 128 * RANK_HOPPER_SHARED_PER_QUERY);

// Of the ring, and of the rows on their way.
using RingBarriers = Barriers<RANK_RING>;
using RawBarriers = Barriers<RANK_AHEAD>;

// Copies rows to shared memory. What is not there becomes zero.
template <int WARPGROUPS>
__device__ __forceinline__ void copy_rows(const RankScanParams& params, Space<WARPGROUPS>& space, RawBarriers& barriers) {
    const TableView& table = params.pass.table;
    const int thread = threadIdx.x % GROUP, part = thread % PARTS, chunks = params.pass.stages * 2;
    Turn<RANK_AHEAD> turn;
    for (uint32_t tile = params.first_tile + blockIdx.x; tile < params.tiles; tile += gridDim.x) {
#pragma unroll 1
        for (int chunk = 0; chunk < chunks; chunk++, turn.next()) {
            turn.wait_emptied(barriers);
            const int column = chunk * RANK_CHUNK + part * 4, left = table.dim - column;
#pragma unroll
            for (int i = 0; i < PARTS; i++) {
                const int row = thread / PARTS + i * (GROUP / PARTS);
                const uint32_t own = min(tile * RANK_TILE + row, table.rows - 1);
                const float* const from = table.components + static_cast<size_t>(own) * table.dim;
                const uint32_t to = shared_address(&space.raw[turn.place][part][row]);
                if (table.dim % 4 == 0) {
                    copy_16_or_zeros(to, left > 0 ? from + column : from, left > 0 ? 16 : 0);
                } else {
                    for (int j = 0; j < 4; j++) {
                        copy_4_or_zeros(to + 4 * j, left > j ? from + column + j : from, left > j ? 4 : 0);
                    }
                }
            }
            copies_arrive(barriers.filled + turn.place);
        }
    }
    copies_wait_all();
}

// Splits rows into float16; each thread has one row of a tile.
template <int WARPGROUPS>
__device__ __forceinline__ void split_rows(const RankScanParams& params, Space<WARPGROUPS>& space, RawBarriers& raw_barriers,
                                           RingBarriers& barriers) {
    constexpr uint32_t BYTES = sizeof(Stage<WARPGROUPS>::queries);
    const TableView& table = params.pass.table;
    const int row = threadIdx.x % GROUP, chunks = params.pass.stages * 2;
    const unsigned char* const queries = reinterpret_cast<const unsigned char*>(params.pass.fragments);
    const auto norm_in = [&](uint32_t tile) {
        const uint32_t own = tile * RANK_TILE + row;
        return tile < params.tiles && own < table.rows ? table.norms[own] : 0.0;
    };
    Turn<RANK_AHEAD> raw_turn;
    Turn<RANK_RING> turn;
    double norm = norm_in(params.first_tile + blockIdx.x);
    for (uint32_t tile = params.first_tile + blockIdx.x; tile < params.tiles; tile += gridDim.x) {
        const float scale = row_scale(norm);
        norm = norm_in(tile + gridDim.x);
#pragma unroll 1
        for (int chunk = 0; chunk < chunks; chunk++, turn.next(), raw_turn.next()) {
            Stage<WARPGROUPS>& stage = space.ring[turn.place];
            turn.wait_emptied(barriers);
            if (row == 0) bulk_copy(stage.queries, queries + static_cast<size_t>(chunk) * BYTES, BYTES, barriers.filled + turn.place);
            raw_turn.wait_filled(raw_barriers);
            float4 parts[PARTS];
#pragma unroll
            for (int i = 0; i < PARTS; i++) parts[i] = space.raw[raw_turn.place][i][row];
#pragma unroll
            for (int i = 0; i < PIECES; i++) {
                Halves halves[4];
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const float4& part = parts[2 * i + j];
                    halves[2 * j] = split(__fmul_rn(part.x, scale), __fmul_rn(part.y, scale));
                    halves[2 * j + 1] = split(__fmul_rn(part.z, scale), __fmul_rn(part.w, scale));
                }
                const auto bits = [](const __half2& two) { return reinterpret_cast<const uint32_t&>(two); };
                *reinterpret_cast<uint4*>(stage.high[i][row]) =
                    make_uint4(bits(halves[0].high), bits(halves[1].high), bits(halves[2].high), bits(halves[3].high));
                *reinterpret_cast<uint4*>(stage.low[i][row]) =
                    make_uint4(bits(halves[0].low), bits(halves[1].low), bits(halves[2].low), bits(halves[3].low));
            }
            if (chunk + 1 == chunks) stage.masks[row] = row_mask(scale);
            // Products read shared memory by another way than threads write it. The fence waits for
            // all copies of its thread, so other threads copy rows.
            publish_writes();
            __syncwarp();
            if (row % WARP == 0) {
                barrier_arrive(raw_barriers.emptied + raw_turn.place);
                barrier_arrive(barriers.filled + turn.place);
            }
        }
    }
}

// The row of a tile in which a thread has its n-th sum of a query.
__device__ __forceinline__ uint32_t row_of(int n) { return n / 2 * 8 + threadIdx.x % 4 * 2 + n % 2; }

// Puts a query's sums of a tile into bins. `first` is the index of the query's first accumulator.
// Returns the sums in doubt, as bits.
template <class Stage>
__device__ __forceinline__ uint32_t count(float (&sums)[64], const Stage& stage, const Thresholds& own, int first, uint32_t tile,
                                          float error, uint32_t (&counts)[BINS / 2]) {
    uint32_t inside = ~0u;
    if ((tile + 1) * RANK_TILE > own.first_rows) {
#pragma unroll
        for (int n = 0; n < 32; n++) {
            if (tile * RANK_TILE + row_of(n) < own.first_rows) continue;
            // Rows that do not count are below every threshold.
            sums[n / 2 * 4 + first + n % 2] = -NO_THRESHOLD * RANK_SCALE * RANK_SCALE;
            inside &= ~(1u << n);
        }
    }
    if (own.set != 0) {
        const uint32_t* const words = reinterpret_cast<const uint32_t*>(own.set) + tile * (RANK_TILE / 32);
#pragma unroll
        for (int n = 0; n < 32; n++) {
            if (words[n / 8] >> row_of(n) % 32 & 1) continue;
            sums[n / 2 * 4 + first + n % 2] = -NO_THRESHOLD * RANK_SCALE * RANK_SCALE;
            inside &= ~(1u << n);
        }
    }
    uint32_t bytes[BINS / 4] = {};  // of four bins, of which two are even and two odd
    uint32_t doubtful = 0;
#pragma unroll
    for (int eight = 0; eight < 4; eight++) {
        float scores[8];
#pragma unroll
        for (int n = 0; n < 8; n += 2) {
            const float2 masks = *reinterpret_cast<const float2*>(stage.masks + row_of(8 * eight + n));
            const float* const two = sums + (eight * 4 + n / 2) * 4 + first;
            scores[n] = fmaf(two[0], 1.0f / (RANK_SCALE * RANK_SCALE), masks.x);
            scores[n + 1] = fmaf(two[1], 1.0f / (RANK_SCALE * RANK_SCALE), masks.y);
        }
        Bins bins;
        doubtful |= find_bins(own, scores, error, bins) << 8 * eight;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const uint32_t nibbles = j == 0 ? bins.low : bins.high;
            bytes[2 * j] += nibbles & 0x0f0f0f0f;
            bytes[2 * j + 1] += nibbles >> 4 & 0x0f0f0f0f;
        }
    }
#pragma unroll
    for (int j = 0; j < BINS / 2; j++) counts[j] += bytes[j / 2] >> j % 2 * 8 & 0x00ff00ff;
    return doubtful & inside;
}

template <int WARPGROUPS>
__device__ __forceinline__ void consume(const RankScanParams& params, Space<WARPGROUPS>& space, RingBarriers& barriers) {
    constexpr int TILES_BETWEEN_FLUSHES = 65535 / RANK_TILE;  // a quad's rows of so many tiles fit 16 bits
    const int warpgroup = threadIdx.x / GROUP, lane = threadIdx.x % WARP;
    const int query = warpgroup * 64 + threadIdx.x % GROUP / WARP * 16 + lane / 4;  // and query + 8
    const int chunks = params.pass.stages * 2;
    uint32_t counts[2][BINS / 2] = {};
    const auto flush = [&] {
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int j = 0; j < BINS / 2; j++) {
                add_to_bins(params.pass.bins + (query + 8 * i) * BINS, j, counts[i][j]);
                counts[i][j] = 0;
            }
        }
    };
    Turn<RANK_RING> turn;
    int tiles_done = 0;
    for (uint32_t tile = params.first_tile + blockIdx.x; tile < params.tiles; tile += gridDim.x) {
        float sums[64] = {};
#pragma unroll 1
        for (int chunk = 0; chunk < chunks; chunk++) {
            const Stage<WARPGROUPS>& stage = space.ring[turn.place];
            turn.wait_filled(barriers);
            const uint64_t rows[2] = {tile_descriptor(stage.high), tile_descriptor(stage.low)};
            const uint64_t queries[2] = {queries_descriptor(stage.queries[warpgroup][0]), queries_descriptor(stage.queries[warpgroup][1])};
            // The small products first, so that they lose nothing; and each chunk by itself,
            // because tensor cores may truncate. What a chunk loses is then a part of its own
            // products, not of all before it.
            float products[64];
            products_begin();
#pragma unroll
            for (int i = 0; i < 6; i++) {
                const uint64_t a = queries[i / 2 == 1 ? 1 : 0], b = rows[i / 2 == 0 ? 1 : 0];
                product_64x128x16(products, a + i % 2 * QUERIES_STEP, b + i % 2 * DESCRIPTOR_STEP, i > 0);
            }
            products_commit();
            products_wait<0>();
            products_done(products);
#pragma unroll
            for (int i = 0; i < 64; i++) sums[i] = __fadd_rn(sums[i], products[i]);
            if (chunk + 1 == chunks) break;
            if (lane == 0) barrier_arrive(barriers.emptied + turn.place);
            turn.next();
        }
        const Stage<WARPGROUPS>& last = space.ring[turn.place];
        const uint32_t doubtful[2] = {
            count(sums, last, space.thresholds[query], 0, tile, params.error, counts[0]),
            count(sums, last, space.thresholds[query + 8], 2, tile, params.error, counts[1]),
        };
        __syncwarp();
        if (lane == 0) barrier_arrive(barriers.emptied + turn.place);
        // Together, because each waits for memory.
        const uint32_t rooms[2] = {take_room(params, query, doubtful[0]), take_room(params, query + 8, doubtful[1])};
#pragma unroll
        for (int i = 0; i < 2; i++) {
            list_doubtful(params, query + 8 * i, rooms[i], doubtful[i], [&](int n) { return tile * RANK_TILE + row_of(n); });
        }
        turn.next();
        if (++tiles_done % TILES_BETWEEN_FLUSHES == 0) flush();
    }
    flush();
}

template <int WARPGROUPS>
__device__ __forceinline__ void scan(const RankScanParams& params) {
    extern __shared__ __align__(128) unsigned char memory[];
    Space<WARPGROUPS>& space = *reinterpret_cast<Space<WARPGROUPS>*>(memory);
    __shared__ RingBarriers ring;
    __shared__ RawBarriers raw;
    if (threadIdx.x == 0) {
        for (int i = 0; i < RANK_RING; i++) {
            barrier_init(ring.filled + i, GROUP / WARP + 1);  // and one for the bulk copy
            barrier_init(ring.emptied + i, WARPGROUPS * GROUP / WARP);
        }
        for (int i = 0; i < RANK_AHEAD; i++) {
            barrier_init(raw.filled + i, GROUP);
            barrier_init(raw.emptied + i, GROUP / WARP);
        }
        publish_barriers();
    }
    copy_thresholds(space.thresholds, params, 64 * WARPGROUPS);
    __syncthreads();
    const int warpgroup = threadIdx.x / GROUP;
    if (warpgroup >= WARPGROUPS) {
        if constexpr (WARPGROUPS == 2) registers_lower<72>();
        else registers_lower<104>();
        if (warpgroup == WARPGROUPS) copy_rows(params, space, raw);
        else split_rows(params, space, raw, ring);
    } else {
        registers_raise<184>();
        consume(params, space, ring);
    }
}

// Grid: any; the batch is as wide as the kernel's name says. Dynamic shared memory:
// RANK_HOPPER_SHARED, and RANK_HOPPER_SHARED_PER_QUERY for each.
extern "C" __global__ void hopper_rank_scan_64(const RankScanParams params) { scan<1>(params); }
extern "C" __global__ void hopper_rank_scan_128(const RankScanParams params) { scan<2>(params); }

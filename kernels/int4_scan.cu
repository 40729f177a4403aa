// One query over the 4-bit table: half the bytes of the 8-bit one, for when nobody else is asking.
//
// Every row's integer dot product is written (4 bytes a row), and each tile's best row. The best tiles'
// rows are scored in float64, which gives a threshold; all rows that may reach it are scored in float64
// straight away.
#include "bounds.cuh"
#include "finish.cuh"
#include "launch.cuh"
#include "select.cuh"

constexpr int WINNERS = 64;     // rows scored for the threshold; k must be well below
constexpr int DOUBTFUL = 2048;  // rows in doubt that a block of the last kernel can hold

// Eight components of 4 bits with eight of 8 bits.
__device__ __forceinline__ int dot8(uint32_t levels, uint32_t low, uint32_t high, int sum) {
    sum = __dp4a(static_cast<int>(levels & 0x0f0f0f0fu), static_cast<int>(low), sum);
    return __dp4a(static_cast<int>(levels >> 4 & 0x0f0f0f0fu), static_cast<int>(high), sum);
}

// dots [tiles * TILE_ROWS]: sum of (2n - 15) * z, n being the levels and z the query's integers; best
// [tiles]: the tile's best dot, shifted to be positive, above its row's number in the tile. A warp a
// tile, a lane a row. Blocks of 128 threads. Dynamic shared memory: the query's bytes, [32 * chunks].
extern "C" __global__ void __launch_bounds__(128)
int4_scan(const uint8_t* __restrict__ table4, const uint4* __restrict__ query_bytes,
          const QueryScale* __restrict__ scales, int chunks, uint32_t tiles, int* __restrict__ dots,
          uint32_t* __restrict__ best) {
    extern __shared__ uint4 query[];
    const int lane = threadIdx.x % 32;
    const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    wait_for_previous();
    let_next_start();
    for (int i = threadIdx.x; i < 2 * chunks; i += blockDim.x) query[i] = query_bytes[i];
    const int offset = -15 * scales[0].sum;
    __syncthreads();
    for (uint32_t tile = warp; tile < tiles; tile += warps) {
        const uint4* const rows = reinterpret_cast<const uint4*>(table4) + static_cast<size_t>(tile) * chunks * TILE_ROWS;
        uint32_t key = 0;
#pragma unroll 1
        for (int quarter = 0; quarter < TILE_ROWS / 32; quarter++) {
            const int row = quarter * 32 + lane;
            int even = 0, odd = 0;
#pragma unroll 5
            for (int c = 0; c < chunks; c++) {
                const uint4 x = __ldcs(rows + c * TILE_ROWS + row);
                const uint4 low = query[2 * c], high = query[2 * c + 1];
                even = dot8(x.x, low.x, low.y, even);
                odd = dot8(x.y, low.z, low.w, odd);
                even = dot8(x.z, high.x, high.y, even);
                odd = dot8(x.w, high.z, high.w, odd);
            }
            const int dot = 2 * (even + odd) + offset;
            dots[static_cast<size_t>(tile) * TILE_ROWS + row] = dot;
            // |dot| <= 15 * 127 * 4096 < 2^23, so the shifted dot and 7 bits of row fit.
            key = max(key, static_cast<uint32_t>(dot + (1 << 23)) << 7 | static_cast<uint32_t>(row));
        }
        for (int step = 16; step > 0; step /= 2) key = max(key, __shfl_xor_sync(ALL_LANES, key, step));
        if (lane == 0) best[tile] = key;
    }
}

// The threshold: the k-th best of the WINNERS best tiles' best rows, scored exactly. One block of 1024.
extern "C" __global__ void __launch_bounds__(1024)
int4_threshold(const float* __restrict__ table, const double* __restrict__ norms, const float* __restrict__ vectors,
               const QueryHeader* __restrict__ queries, const uint32_t* __restrict__ excluded, int dim,
               const uint32_t* __restrict__ slot_rows, const uint32_t* __restrict__ best, uint32_t tiles,
               float* __restrict__ floors) {
    __shared__ SelectSpace space;
    __shared__ uint32_t winners[WINNERS];
    __shared__ double scores[WINNERS];
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    wait_for_previous();
    let_next_start();
    const QueryHeader query = queries[0];
    // The key's upper 22 bits are what is selected by: dots in steps of 2^2.
    const unsigned edge = select_key(space, tiles, min(tiles, WINNERS - 16u), [&](int i) { return __ldcg(best + i) >> 9; });
    for (uint32_t tile = threadIdx.x; tile < tiles; tile += blockDim.x) {
        const uint32_t key = __ldcg(best + tile);
        if (key >> 9 >= edge) {
            const int place = atomicAdd(&count, 1);
            if (place < WINNERS) winners[place] = slot_rows[tile * TILE_ROWS + key % TILE_ROWS];
        }
    }
    __syncthreads();
    const int found = min(count, WINNERS);
    for (int i = threadIdx.x / WARP; i < found; i += blockDim.x / WARP) {
        const uint32_t row = winners[i];
        double score = -2.0;
        if (row != NOT_A_ROW) {
            score = cosine(warp_dot(table + static_cast<size_t>(row) * dim, components(query, table, vectors, dim), dim),
                           query.norm, norms[row]);
        }
        if (threadIdx.x % WARP == 0) scores[i] = row != NOT_A_ROW && admits(query, excluded, row, score) ? score : -2.0;
    }
    __syncthreads();
    // The k-th best by counting who is ahead.
    if (threadIdx.x < found) {
        const double own = scores[threadIdx.x];
        uint32_t ahead = 0;
        for (int i = 0; i < found; i++) ahead += scores[i] > own || (scores[i] == own && i < static_cast<int>(threadIdx.x));
        if (ahead == query.k - 1) floors[0] = fmaxf(__double2float_rd(own), __double2float_rd(query.min_score));
    }
    if (threadIdx.x == 0 && static_cast<uint32_t>(found) < query.k) {
        floors[0] = fmaxf(NO_THRESHOLD, __double2float_rd(query.min_score));
    }
}

// All rows whose upper bound reaches the threshold are scored; the last block ranks them. Blocks of 256
// threads. Dynamic shared memory: the TopKList.
extern "C" __global__ void __launch_bounds__(256)
int4_rescore(const float* __restrict__ table, const double* __restrict__ norms, const float* __restrict__ vectors,
             const QueryHeader* __restrict__ queries, const uint32_t* __restrict__ excluded, int dim,
             const QueryScale* __restrict__ scales, const float* __restrict__ residuals4, float half_step4,
             const uint32_t* __restrict__ slot_rows, const int* __restrict__ dots, uint32_t tiles,
             const float* __restrict__ floors, uint32_t* candidate_counts, Hit* survivors, uint32_t* survivor_counts,
             uint32_t survivor_capacity, uint32_t* tickets, int stride, Hit* __restrict__ hits,
             QueryResult* __restrict__ results) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ uint32_t doubtful[DOUBTFUL];
    __shared__ uint32_t doubtful_count;
    if (threadIdx.x == 0) doubtful_count = 0;
    wait_for_previous();
    __syncthreads();
    const QueryHeader query = queries[0];
    const QueryScale scale = scales[0];
    const float floor = __ldcg(floors);
    const float unit = scale.step * half_step4;
    const uint32_t each = (tiles + gridDim.x - 1) / gridDim.x;
    const uint32_t begin = min(tiles, blockIdx.x * each), end = min(tiles, begin + each);
    constexpr uint32_t QUADS = TILE_ROWS / 4;
    for (uint32_t i = begin * QUADS + threadIdx.x; i < end * QUADS; i += blockDim.x) {
        const uint32_t tile = i / QUADS;
        const float bound = error_bound(scale, residuals4[tile]);
        const int4 four = __ldcg(reinterpret_cast<const int4*>(dots) + i);
        const int dot[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (!(static_cast<float>(dot[j]) * unit + bound < floor)) {
                const uint32_t row = slot_rows[i * 4 + j];
                if (row != NOT_A_ROW) {
                    const uint32_t place = atomicAdd(&doubtful_count, 1u);
                    if (place < DOUBTFUL) doubtful[place] = row;
                }
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && doubtful_count > 0) {
        // A block that can't hold its rows says so by a count that no capacity reaches.
        atomicAdd(candidate_counts, doubtful_count > DOUBTFUL ? 1u << 24 : doubtful_count);
    }
    score_survivors(table, norms, components(query, table, vectors, dim), query, excluded, dim, doubtful,
                    static_cast<int>(min(doubtful_count, static_cast<uint32_t>(DOUBTFUL))), static_cast<double>(floor),
                    survivors, survivor_counts, survivor_capacity);
    if (last_block(tickets, gridDim.x)) {
        const uint32_t candidates = __ldcg(candidate_counts);
        finish_query(*reinterpret_cast<TopKList*>(memory), query, survivors, *survivor_counts, survivor_capacity,
                     candidates, candidates < 1u << 24, stride, hits, results);
    }
}

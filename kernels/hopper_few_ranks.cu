// Counts ranks as rank_scan.cu does, for few queries, with Hopper's bulk copies (compute capability
// 9.0a).
//
// Each warp works alone. A bulk copy brings its next rows to shared memory, whole rows one after
// another, as they are in the table. The warp splits them into float16 in its registers, where they
// are operand A. The queries stay in shared memory, as operand B.
#include "hopper.cuh"
#include "mma.cuh"
#include "ranks.cuh"

constexpr int STEP = 16;                     // components of mma
constexpr int STEPS = RANK_CHUNK / STEP;     // of a chunk
constexpr int PIECE = FEW_RANKS_ROWS;        // rows that a warp takes at a time
constexpr int QUERIES = FEW_RANKS_QUERIES;
constexpr int EIGHTS = QUERIES / 8;          // tiles of operand B
constexpr int PIECES_BETWEEN_FLUSHES = 7;    // a thread's two rows of so many pieces fit 4 bits
static_assert(PIECE == 16 && STEPS == 2, "one operand A; a chunk has two");
static_assert(PIECES_BETWEEN_FLUSHES * 2 <= 15 && PIECES_BETWEEN_FLUSHES * PIECE <= 255, "bins of 4 bits, then of 8");

// What a block has in shared memory, before the rows of its warps: the queries, of which each
// thread of a warp has, for each step and 8 queries, its two registers of operand B, upper and lower
// halves; and these.
struct __align__(128) Space {
    Thresholds thresholds[QUERIES];
    uint32_t counts[QUERIES][BINS];
};
static_assert(sizeof(Space) == QUERIES * FEW_RANKS_SHARED_PER_QUERY);

// The piece's row in which a thread has its first row, of the 8 first ones: so that the rows of
// neighbouring threads are in different banks. `parts` is the number of 16 bytes of a row.
__device__ __forceinline__ int row_of_group(int group, int parts) {
    const int position = parts % 2 != 0 ? 2 : parts % 4 != 0 ? 1 : 0, rest = group >> 1;
    const int low = rest & (1 << position) - 1;
    return low | (group & 1) << position | rest >> position << position + 1;
}

// A row's part, scaled and split: components 0 and 1, then 2 and 3.
struct Part {
    Halves first, second;
};
__device__ __forceinline__ Part split_part(const float4& part, float scale) {
    return {split(__fmul_rn(part.x, scale), __fmul_rn(part.y, scale)), split(__fmul_rn(part.z, scale), __fmul_rn(part.w, scale))};
}

__device__ __forceinline__ uint32_t bits(__half2 two) { return reinterpret_cast<const uint32_t&>(two); }

// Adds the bins of a warp's eight groups for one query of each thread of a quad to its counts.
__device__ __forceinline__ void flush_query(uint32_t* counts, Bins& bins) {
    const int group = threadIdx.x % WARP / 4;
    uint32_t bytes[4] = {bins.low & 0x0f0f0f0f, bins.low >> 4 & 0x0f0f0f0f, bins.high & 0x0f0f0f0f, bins.high >> 4 & 0x0f0f0f0f};
    bins = Bins();
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int lanes = 4; lanes < WARP; lanes *= 2) bytes[i] += __shfl_xor_sync(ALL_LANES, bytes[i], lanes);
    }
    // Each group adds two bins: those of two neighbouring bytes.
    const uint32_t low = group & 2 ? bytes[1] : bytes[0], high = group & 2 ? bytes[3] : bytes[2];
    const uint32_t two = (group & 4 ? high : low) >> group % 2 * 16;
    uint32_t* const to = counts + group / 4 * 8 + group / 2 % 2 + group % 2 * 4;
    atomicAdd(to, two & 0xff);
    atomicAdd(to + 2, two >> 8 & 0xff);
}

// Grid: any; blocks of up to FEW_RANKS_WARPS warps, for FEW_RANKS_QUERIES queries. The components of
// a row are a multiple of 4. Dynamic shared memory: for each query, FEW_RANKS_SHARED_PER_QUERY and 4
// bytes for each component up to a multiple of 16; for each warp, FEW_RANKS_ROWS rows.
extern "C" __global__ void few_ranks(const RankScanParams params) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t all_filled[FEW_RANKS_WARPS];
    const TableView& table = params.pass.table;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP, group = lane / 4, t = lane % 4;
    const int steps = (table.dim + STEP - 1) / STEP, operands = steps * EIGHTS * WARP;
    const uint32_t row_bytes = table.dim * static_cast<uint32_t>(sizeof(float));
    uint4* const queries = reinterpret_cast<uint4*>(memory);
    Space& space = *reinterpret_cast<Space*>(queries + operands);
    unsigned char* const piece = reinterpret_cast<unsigned char*>(&space + 1) + warp * PIECE * row_bytes;
    uint64_t* const filled = all_filled + warp;

    const uint32_t end = min(params.tiles * (RANK_TILE / PIECE), (table.rows + PIECE - 1) / PIECE);
    const uint32_t stride = gridDim.x * warps;
    uint32_t at = params.first_tile * (RANK_TILE / PIECE) + blockIdx.x * warps + warp;
    const auto fetch = [&](uint32_t next) {
        if (lane != 0 || next >= end) return;
        const uint32_t rows = min(table.rows - next * PIECE, static_cast<uint32_t>(PIECE));
        bulk_copy(piece, table.components + static_cast<size_t>(next) * PIECE * table.dim, rows * row_bytes, filled);
    };
    if (lane == 0) {
        barrier_init(filled, 1);
        publish_barriers();
    }
    fetch(at);

    const int row = row_of_group(group, table.dim / 4);
    double norms[2];
    const auto load_norms = [&](uint32_t next) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t own = next * PIECE + row + 8 * i;
            norms[i] = next < end && own < table.rows ? table.norms[own] : 0.0;
        }
    };
    load_norms(at);
    copy_thresholds(space.thresholds, params, QUERIES);
    for (int i = threadIdx.x; i < operands; i += blockDim.x) queries[i] = reinterpret_cast<const uint4*>(params.pass.fragments)[i];
    for (int i = threadIdx.x; i < QUERIES * BINS; i += blockDim.x) space.counts[0][i] = 0;
    __syncthreads();

    const float4* const own_rows[2] = {
        reinterpret_cast<const float4*>(piece) + row * (table.dim / 4) + t,
        reinterpret_cast<const float4*>(piece) + (row + 8) * (table.dim / 4) + t,
    };
    Bins bins[EIGHTS][2];
    const auto flush = [&] {
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) {
#pragma unroll
            for (int j = 0; j < 2; j++) flush_query(space.counts[8 * n + 2 * t + j], bins[n][j]);
        }
    };
    uint32_t parity = 0;
    int done = 0;
    for (; at < end; at += stride, parity ^= 1) {
        const float scales[2] = {row_scale(norms[0]), row_scale(norms[1])};
        load_norms(at + stride);
        float sums[EIGHTS][4] = {};
        barrier_wait(filled, parity);
#pragma unroll 1
        for (int first = 0; first < steps; first += STEPS) {
            uint4 high[STEPS], low[STEPS];
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                Part parts[2];
                const bool is_there = (first + step) * STEP + 4 * t < table.dim;
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const float4 part = is_there ? own_rows[i][(first + step) * (STEP / 4)] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    parts[i] = split_part(part, scales[i]);
                }
                high[step] = make_uint4(bits(parts[0].first.high), bits(parts[1].first.high),
                                        bits(parts[0].second.high), bits(parts[1].second.high));
                low[step] = make_uint4(bits(parts[0].first.low), bits(parts[1].first.low),
                                       bits(parts[0].second.low), bits(parts[1].second.low));
            }
            // The small products first, so that they lose nothing; and each chunk by itself,
            // because tensor cores may truncate. What a chunk loses is then a part of its own
            // products, not of all before it.
            float products[EIGHTS][4] = {};
            uint4 b[STEPS][EIGHTS];  // two registers of upper halves, then of lower ones
#pragma unroll
            for (int i = 0; i < STEPS * EIGHTS; i++) {
                const int step = i / EIGHTS, own = min(first + step, steps - 1);
                b[step][i % EIGHTS] = queries[(own * EIGHTS + i % EIGHTS) * WARP + lane];
            }
#pragma unroll
            for (int turn = 0; turn < 3; turn++) {
#pragma unroll
                for (int i = 0; i < STEPS * EIGHTS; i++) {
                    const int step = i / EIGHTS, n = i % EIGHTS;
                    const uint4& own = b[step][n];
                    multiply(products[n], turn == 0 ? low[step] : high[step], turn == 1 ? own.z : own.x, turn == 1 ? own.w : own.y);
                }
            }
#pragma unroll
            for (int i = 0; i < EIGHTS * 4; i++) sums[i / 4][i % 4] = __fadd_rn(sums[i / 4][i % 4], products[i / 4][i % 4]);
        }
        __syncwarp();
        fetch(at + stride);
        const float masks[2] = {row_mask(scales[0]), row_mask(scales[1])};
        const uint32_t base = at * PIECE + row;
        uint32_t doubtful = 0;
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) {
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const Thresholds& own = space.thresholds[8 * n + 2 * t + j];
                float scores[2];
                uint32_t inside = 0;
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const bool counts = base + 8 * i < own.first_rows && is_member(own.set, base + 8 * i);
                    // Rows that do not count are below every threshold.
                    scores[i] = counts ? fmaf(sums[n][2 * i + j], 1.0f / (RANK_SCALE * RANK_SCALE), masks[i]) : -NO_THRESHOLD;
                    inside |= counts ? 1u << i : 0u;
                }
                doubtful |= (find_bins(own, scores, params.error, bins[n][j]) & inside) << 4 * n + 2 * j;
            }
        }
        for (; doubtful != 0; doubtful &= doubtful - 1) {
            const int bit = __ffs(doubtful) - 1, query = bit / 4 * 8 + 2 * t + bit / 2 % 2;
            const uint32_t room = take_room(params, query, 1);
            list_doubtful(params, query, room, 1, [&](int) { return base + 8 * (bit % 2); });
        }
        if (++done % PIECES_BETWEEN_FLUSHES == 0) flush();
    }
    flush();
    __syncthreads();
    for (int i = threadIdx.x; i < QUERIES * BINS; i += blockDim.x) {
        if (const uint32_t count = space.counts[0][i]) atomicAdd(params.pass.bins + i, count);
    }
}

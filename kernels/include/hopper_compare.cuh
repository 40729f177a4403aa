// What both Hopper scans do with the products of a tile and 64 queries: bounds for a sample, or
// candidates.
#pragma once
#include "gathered.cuh"
#include "hopper.cuh"
#include "tile_walk.cuh"

static_assert(CHUNK_BYTES == 16 && HOPPER_GROUPS == 4, "the descriptor's core matrices; four lanes of a quad");

// What a thread needs to compare one product's accumulators. They belong to two queries, g and g +
// 8 of its warp.
struct QueryPair {
    int query[2];
    Threshold threshold[2];
    QueryScale scale[2];
};

template <bool SAMPLING>
__device__ __forceinline__ QueryPair compared(const ScanOutput& out, int first_query) {
    const int warp = threadIdx.x % 128 / 32, g = threadIdx.x % 32 / 4;
    QueryPair c;
#pragma unroll
    for (int up = 0; up < 2; up++) {
        c.query[up] = first_query + warp * 16 + up * 8 + g;
        c.scale[up] = out.scales[c.query[up]];
        if (!SAMPLING) c.threshold[up] = out.thresholds[c.query[up]];
    }
    return c;
}

// The members of a pair's sets among this thread's rows of a tile; all of them without SETS. It is
// loaded before the product that it is for, because it takes as long.
struct Members {
    uint32_t of[2];
};
template <bool SETS>
__device__ __forceinline__ Members members_of(const ScanOutput& out, const QueryPair& c, uint32_t tile) {
    Members members = {~0u, ~0u};
    if constexpr (SETS) {
#pragma unroll
        for (int up = 0; up < 2; up++) members.of[up] = members_of_lane(out.sets[c.query[up]], tile, threadIdx.x % 4);
    }
    return members;
}

// The set of rows that all queries of this block have, by slots; 0 if they differ. `queries` of them
// begin at `first`. Called by all threads of the block, once earlier kernels are over.
__device__ __forceinline__ uint64_t common_set(const ScanOutput& out, int first, int queries) {
    const uint64_t set = out.sets[first];
    bool is_same = true;
    for (int i = threadIdx.x; i < queries; i += blockDim.x) is_same &= out.sets[first + i] == set;
    return __syncthreads_and(is_same) ? set : 0;
}

// The first index of a walk, from `i` on in steps of `stride`, whose tile has a member of the common
// set, if there is one. Other tiles need not be read. All threads must ask the same.
__device__ __forceinline__ uint32_t next_with_member(const TileWalk& walk, uint32_t i, uint32_t stride, uint64_t common) {
    static_assert(SET_WORDS == 4, "a tile's words are one load");
    if (common == 0) return i;
    for (; i < walk.count; i += stride) {
        const uint4 words = reinterpret_cast<const uint4*>(common)[tile_at(walk, i)];
        if ((words.x | words.y | words.z | words.w) != 0) break;
    }
    return i;
}

// d[4j + 2 * up + i] is the product of query `up` and row 8j + 2t + i of the tile, where t is the
// lane's index in its quad. `index` is that of the tile in the walk. Before tile `lowest_end` no
// query ends.
template <bool SAMPLING, bool SETS>
__device__ __forceinline__ void compare(int (&d)[64], const QueryPair& c, const Members& members, const TileScale& scale,
                                        uint32_t tile, uint32_t index, uint32_t lowest_end, const ScanOutput& out, Gathered& gathered, int& count) {
    const int t = threadIdx.x % 4;
    int best[2];
    const auto find_best = [&](auto dot_of) {
        best[0] = max(dot_of(0), dot_of(1)), best[1] = max(dot_of(2), dot_of(3));
#pragma unroll
        for (int j = 1; j < 16; j++) {
            best[0] = __vimax3_s32(best[0], dot_of(4 * j), dot_of(4 * j + 1));
            best[1] = __vimax3_s32(best[1], dot_of(4 * j + 2), dot_of(4 * j + 3));
        }
    };
    // When sampling, a row's index is beside its product, which is at most 1024 * 127 * 127 < 2^24.
    const auto with_index = [&](int i) { return d[i] * 32 + 2 * (i / 4) + i % 2; };
    if constexpr (!SAMPLING) find_best([&](int i) { return d[i]; });
    else if constexpr (!SETS) find_best(with_index);
    else find_best([&](int i) { return members.of[i / 2 % 2] >> (2 * (i / 4) + i % 2) & 1 ? with_index(i) : INT_MIN; });
#pragma unroll
    for (int up = 0; up < 2; up++) {
        const float unit = scale.step * c.scale[up].step;
        if (SAMPLING) {
            const float bound = group_bound(static_cast<float>(best[up] >> 5) * unit - error_bound(c.scale[up], scale.residual), best[up] & 31);
            out.group_bounds[static_cast<size_t>(c.query[up]) * out.groups + index * HOPPER_GROUPS + t] =
                members.of[up] != 0 ? bound : -INFINITY;
            continue;
        }
        int threshold = integer_threshold(c.threshold[up], scale);
        if (tile >= lowest_end && tile >= out.ends[c.query[up]]) threshold = INT_MAX;
        if (!__any_sync(~0u, best[up] >= threshold && members.of[up] != 0)) continue;
        uint32_t reached = 0;
#pragma unroll
        for (int i = 0; i < 32; i++) reached |= d[4 * (i / 2) + 2 * up + i % 2] >= threshold ? 1u << i : 0u;
        reached &= members.of[up];
        while (__any_sync(~0u, reached != 0)) {
            const bool mine = reached != 0;
            const int which = __ffs(reached) - 1;
            reached &= reached - 1;
            int dot = 0;  // registers can't be indexed at run time
#pragma unroll
            for (int i = 0; i < 32; i++) dot = which == i ? d[4 * (i / 2) + 2 * up + i % 2] : dot;
            gather(out, gathered, count, mine, c.query[up], tile * TILE_ROWS + which / 2 * 8 + 2 * t + which % 2,
                   static_cast<float>(dot) * unit);
        }
    }
}

// Candidates of a warp on their way to the queries' lists. An append to a list costs an atomic addition
// and the wait for its result, about a thousand cycles in which the warp multiplies nothing; 32 candidates
// together cost no more than one. So they gather in shared memory first.
#pragma once
#include "bounds.cuh"

// One warp's, in shared memory: fewer than 32 between two calls of `gather`, and as many again within one.
struct Gathered {
    Candidate candidate[64];
    int query[64];
};

// For all lanes of a warp together: those with a candidate add it. `count`, the same in all lanes and 0 at
// first, is the number of candidates that wait.
__device__ __forceinline__ void gather(const ScanOutput& out, Gathered& gathered, int& count, bool mine, int query,
                                       uint32_t slot, float score) {
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t lanes = __ballot_sync(~0u, mine);
    if (mine) {
        const int index = count + __popc(lanes & ((1u << lane) - 1));
        gathered.candidate[index] = {slot, score};
        gathered.query[index] = query;
    }
    count += __popc(lanes);
    if (count < 32) return;
    __syncwarp();
    count -= 32;
    const Candidate last = gathered.candidate[count + lane];
    add_candidate(out, gathered.query[count + lane], last.slot, last.score);
    __syncwarp();
}

// For all lanes of a warp together, at the end: what still waits.
__device__ __forceinline__ void empty(const ScanOutput& out, const Gathered& gathered, int count) {
    const int lane = threadIdx.x % 32;
    __syncwarp();
    if (lane < count) {
        const Candidate one = gathered.candidate[lane];
        add_candidate(out, gathered.query[lane], one.slot, one.score);
    }
}

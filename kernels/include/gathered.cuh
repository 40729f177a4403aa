// Gathers the candidates of a warp in shared memory before they are appended to the queries' lists.
// An append takes an atomic addition and the wait for its result: about a thousand cycles in which
// the warp multiplies nothing. Appending 32 candidates together costs no more than appending one.
#pragma once
#include "bounds.cuh"

// The gathered candidates of one warp, in shared memory: fewer than 32 between two calls of
// `gather`, and up to 32 more within a call.
struct Gathered {
    Candidate candidate[64];
    int query[64];
};

// Adds the candidates of the lanes in which `mine` is set. Called by all lanes of a warp. `count`
// is the number of gathered candidates: 0 at first, and the same in all lanes.
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

// Appends the remaining candidates at the end. Called by all lanes of a warp.
__device__ __forceinline__ void empty(const ScanOutput& out, const Gathered& gathered, int count) {
    const int lane = threadIdx.x % 32;
    __syncwarp();
    if (lane < count) {
        const Candidate one = gathered.candidate[lane];
        add_candidate(out, gathered.query[lane], one.slot, one.score);
    }
}

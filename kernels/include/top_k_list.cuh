// The best k of a stream of hits, kept by one block in shared memory. Hits are appended in any
// order; when room runs short, the list is sorted and cut back to k.
#pragma once
#include "abi/search.cuh"
#include "contract.cuh"

struct TopKList {
    double score[LIST_CAPACITY];
    uint32_t row[LIST_CAPACITY];
    int count;
    int k;
    // The k-th best hit at the last cut; hits that rank after it are not appended.
    double worst_score;
    uint32_t worst_row;

    // Called by all threads; ends with a barrier.
    __device__ void clear(int keep) {
        if (threadIdx.x == 0) {
            count = 0;
            k = keep;
            worst_score = -2.0;
            worst_row = NOT_A_ROW;
        }
        __syncthreads();
    }

    // Called by any thread; at most LIST_ROUND times by the whole block between two calls of
    // `make_room`.
    __device__ void append(double s, uint32_t r) {
        if (ranks_before(s, r, worst_score, worst_row)) {
            const int index = atomicAdd(&count, 1);
            score[index] = s;
            row[index] = r;
        }
    }

    // Called by all threads, between rounds.
    __device__ void make_room() { cut_beyond(LIST_CAPACITY); }

    // As `make_room`, but cuts to k hits as soon as there are more than `hits`. Returns whether it
    // cut. Called by all threads, between rounds.
    __device__ bool cut_beyond(int hits) {
        __syncthreads();
        const bool cut = count > min(hits, LIST_CAPACITY - LIST_ROUND);
        if (cut) sort_and_cut();
        __syncthreads();
        return cut;
    }

    // Sorts the hits, best first, and keeps the best k: a bitonic sort, padded to the next power of
    // two with hits that rank after all others. Called by all threads.
    __device__ void sort_and_cut() {
        __syncthreads();
        const int filled = count;
        int size = 1;
        while (size < filled) size *= 2;
        for (int i = filled + threadIdx.x; i < size; i += blockDim.x) {
            score[i] = -3.0;
            row[i] = NOT_A_ROW;
        }
        __syncthreads();
        for (int run = 2; run <= size; run *= 2) {
            for (int step = run / 2; step > 0; step /= 2) {
                for (int i = threadIdx.x; i < size / 2; i += blockDim.x) {
                    const int a = 2 * step * (i / step) + i % step, b = a + step;
                    const bool best_first = (a & run) == 0;
                    if (ranks_before(score[b], row[b], score[a], row[a]) == best_first) {
                        const double s = score[a];
                        score[a] = score[b];
                        score[b] = s;
                        const uint32_t r = row[a];
                        row[a] = row[b];
                        row[b] = r;
                    }
                }
                __syncthreads();
            }
        }
        if (threadIdx.x == 0) {
            count = min(filled, k);
            if (k > 0 && filled >= k) {
                worst_score = score[k - 1];
                worst_row = row[k - 1];
            }
        }
        __syncthreads();
    }
};
static_assert(sizeof(TopKList) == LIST_BYTES, "what launches give it in dynamic shared memory");

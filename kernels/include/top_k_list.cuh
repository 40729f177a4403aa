// The best k of a stream of hits, kept by one block in shared memory: appended in any order, sorted
// and cut back to k whenever the room runs short.
#pragma once
#include "contract.cuh"

constexpr int LIST_CAPACITY = 2048;  // hits; k and one round of appends must fit
constexpr int LIST_ROUND = 1024;     // the most appends between two calls of `make_room`
constexpr int LIST_MAX_K = LIST_CAPACITY - LIST_ROUND;

struct TopKList {
    double score[LIST_CAPACITY];
    uint32_t row[LIST_CAPACITY];
    int count;
    int k;
    // The worst hit that is certain to stay out-ranked by k others; nothing behind it is appended.
    double worst_score;
    uint32_t worst_row;

    // All threads; ends with a barrier.
    __device__ void clear(int keep) {
        if (threadIdx.x == 0) {
            count = 0;
            k = keep;
            worst_score = -2.0;
            worst_row = 0xffffffffu;
        }
        __syncthreads();
    }

    // Any thread; at most LIST_ROUND calls of the whole block between two of `make_room`.
    __device__ void append(double s, uint32_t r) {
        if (ranks_before(s, r, worst_score, worst_row)) {
            const int place = atomicAdd(&count, 1);
            score[place] = s;
            row[place] = r;
        }
    }

    // All threads, between rounds.
    __device__ void make_room() { cut_beyond(LIST_CAPACITY); }

    // All threads, between rounds: the same, but no later than at so many hits. Whether it cut, to k hits.
    __device__ bool cut_beyond(int hits) {
        __syncthreads();
        const bool cut = count > min(hits, LIST_CAPACITY - LIST_ROUND);
        if (cut) sort_and_cut();
        __syncthreads();
        return cut;
    }

    // All threads: sorts what is there, best first, and keeps the best k. A bitonic sort of the next
    // power of two, filled up with hits that rank behind all others.
    __device__ void sort_and_cut() {
        __syncthreads();
        const int filled = count;
        int size = 1;
        while (size < filled) size *= 2;
        for (int i = filled + threadIdx.x; i < size; i += blockDim.x) {
            score[i] = -3.0;
            row[i] = 0xffffffffu;
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

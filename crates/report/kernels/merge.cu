// Finds the best k of all scores as the 2020 report did (README.md): pieces of k elements are
// sorted, then merged in pairs. Of each pair only the best k elements are kept, until one piece is
// left.
//
// Piece p has the elements from p * k to p * k + k, or to `rows`: only the last piece can be
// shorter. The best come first; equal scores keep their order, so the lower position stays first.
// Scores are never NaN.
//
// Version 1 of the report works in global memory, the later versions in private arrays of the
// thread.
#include "abi/versions.cuh"

constexpr int BLOCK = 256;  // threads a block

__device__ __forceinline__ size_t thread_number() {
    return static_cast<size_t>(blockIdx.x) * BLOCK + threadIdx.x;
}

// The number of elements of the piece that starts at `begin`, which is less than `rows`.
__device__ __forceinline__ int piece_length(size_t begin, uint32_t rows, int k) {
    const size_t rest = rows - begin;
    return rest < static_cast<size_t>(k) ? static_cast<int>(rest) : k;
}

__device__ __forceinline__ void insertion_sort(float* scores, uint32_t* positions, int length) {
    for (int i = 1; i < length; ++i) {
        const float score = scores[i];
        const uint32_t position = positions[i];
        int j = i;
        for (; j > 0 && scores[j - 1] < score; --j) {
            scores[j] = scores[j - 1];
            positions[j] = positions[j - 1];
        }
        scores[j] = score;
        positions[j] = position;
    }
}

__device__ __forceinline__ void copy(const float* from_scores, const uint32_t* from_positions, int length,
                                     float* to_scores, uint32_t* to_positions) {
    for (int i = 0; i < length; ++i) {
        to_scores[i] = from_scores[i];
        to_positions[i] = from_positions[i];
    }
}

// Sorts each piece in place, one thread per piece. Grid: ceil(ceil(rows / k) / 256) blocks. No
// shared memory.
extern "C" __global__ void first_merge_v1(const SortPiecesParams params) {
    const auto [scores, positions, rows, k] = params;
    const size_t begin = thread_number() * k;
    if (begin >= rows) return;
    insertion_sort(scores + begin, positions + begin, piece_length(begin, rows, k));
}

// As first_merge_v1, but the piece is sorted in private memory and written back once. Grid:
// ceil(ceil(rows / k) / 256) blocks. No shared memory.
extern "C" __global__ void first_merge(const SortPiecesParams params) {
    const auto [scores, positions, rows, k] = params;
    float own_scores[REPORT_MAX_K];
    uint32_t own_positions[REPORT_MAX_K];
    const size_t begin = thread_number() * k;
    if (begin >= rows) return;
    const int length = piece_length(begin, rows, k);
    copy(scores + begin, positions + begin, length, own_scores, own_positions);
    insertion_sort(own_scores, own_positions, length);
    copy(own_scores, own_positions, length, scores + begin, positions + begin);
}

// Merges the best k elements of two sorted pieces into `best_*`. The left piece has k elements,
// because another piece follows it, so only the right one can run out.
__device__ __forceinline__ void merge(const float* scores, const uint32_t* positions, size_t left, size_t right,
                                      int right_length, int k, float* best_scores, uint32_t* best_positions) {
    int taken = 0;  // from the right piece
    for (int i = 0; i < k; ++i) {
        const size_t a = left + (i - taken), b = right + taken;
        const bool from_right = taken < right_length && scores[b] > scores[a];
        best_scores[i] = scores[from_right ? b : a];
        best_positions[i] = positions[from_right ? b : a];
        taken += from_right;
    }
}

// One round: each thread merges two neighbours among the pieces 0, stride, 2 * stride, ... into the
// left one. A last piece without a neighbour stays as it is. No thread touches another thread's
// pieces, so a round needs no second copy of the scores. The rounds run one after another in one
// stream, with stride 1, 2, 4, ... while stride < ceil(rows / k). Then piece 0 is the answer.
//
// Grid: ceil(pairs / 256) blocks, where
//   pairs = ceil(ceil(rows / k) / stride) / 2, rounded down.
// No shared memory.
//
// Version 1: the merged piece is built in global memory, in scratch_scores and scratch_positions,
// at the left piece's index.
extern "C" __global__ void botched_merge_sort_v1(const MergePiecesParams params) {
    const auto [scores, positions, scratch_scores, scratch_positions, rows, k, stride] = params;
    const size_t step = static_cast<size_t>(stride) * k;
    const size_t left = thread_number() * 2 * step, right = left + step;
    if (right >= rows) return;
    merge(scores, positions, left, right, piece_length(right, rows, k), k, scratch_scores + left,
          scratch_positions + left);
    copy(scratch_scores + left, scratch_positions + left, k, scores + left, positions + left);
}

// The same round with the merged piece in private memory. Grid as above.
extern "C" __global__ void botched_merge_sort(const MergePiecesParams params) {
    const auto [scores, positions, scratch_scores, scratch_positions, rows, k, stride] = params;
    float best_scores[REPORT_MAX_K];
    uint32_t best_positions[REPORT_MAX_K];
    const size_t step = static_cast<size_t>(stride) * k;
    const size_t left = thread_number() * 2 * step, right = left + step;
    if (right >= rows) return;
    merge(scores, positions, left, right, piece_length(right, rows, k), k, best_scores, best_positions);
    copy(best_scores, best_positions, k, scores + left, positions + left);
}

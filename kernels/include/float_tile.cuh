// Products of a tile in float32, without tensor cores.
#pragma once

// Adds a step of STEP inputs to a thread's EACH x EACH products of a tile: those of its rows, which
// are the EACH from `row` on, with its columns from `column` on.
template <int STEP, int WIDTH, int EACH>
__device__ __forceinline__ void multiply_step(float (&sums)[EACH][EACH], const float (&rows)[STEP][WIDTH],
                                              const float (&columns)[STEP][WIDTH], int row, int column) {
#pragma unroll
    for (int k = 0; k < STEP; k++) {
        float x[EACH], w[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) x[i] = rows[k][row + i], w[i] = columns[k][column + i];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
#pragma unroll
            for (int j = 0; j < EACH; j++) sums[i][j] = fmaf(x[i], w[j], sums[i][j]);
        }
    }
}

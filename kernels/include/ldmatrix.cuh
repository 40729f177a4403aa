// Loads of operands of mma.sync from shared memory: see "ldmatrix" in the PTX ISA.
#pragma once
#include "shared_address.cuh"

// Four matrices of 8 x 8 values of 16 bits, one for each register. Lane i passes the address of the
// 8 values in row i % 8 of matrix i / 8, a multiple of 16 bytes.
__device__ __forceinline__ void load_matrices(uint32_t (&m)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(shared_address(row)));
}

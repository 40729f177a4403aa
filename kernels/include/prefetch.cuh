// Has device memory read ahead, so that later loads find the bytes in the second-level cache.
#pragma once
#include <cstdint>

// The line at this address.
__device__ __forceinline__ void prefetch_line(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// A multiple of 16 bytes. Only for compute capability 9.0 and later.
__device__ __forceinline__ void prefetch_bytes(const void* from, uint32_t bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes));
}

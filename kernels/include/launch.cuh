// Programmatic dependent launch: a kernel may start while the one before it still runs, and then
// waits for its results. Devices before compute capability 9.0 do not support this. There, a kernel
// starts when the one before it has ended, and these functions do nothing.
#pragma once
#include <cstdint>

// Call this before reading or writing anything that an earlier kernel reads or writes. Every kernel
// of a pass calls it, so when the previous kernel has ended, all earlier ones have too.
//
// Data that earlier kernels of a pass write must not be read by __ldg or through a __restrict__
// pointer. Both let the compiler treat the data as constant and move the load before this wait.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel's blocks start as soon as multiprocessors have room. A small kernel calls
// this before its own wait. Then the scan after it fills its ring while the scan before it ends.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Tells the host that the last kernel of a pass has started. Called by all threads of all blocks,
// before they wait.
__device__ __forceinline__ void tell_host(uint32_t* almost_over) {
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *static_cast<volatile uint32_t*>(almost_over) = 1;
}

// Programmatic dependent launch: a kernel may be launched while the one before it still runs, and
// waits here for its results. Devices before compute capability 9.0 lack it; there a kernel starts when
// the one before it has ended, and these do nothing.
#pragma once

// Call this before anything is read or written that an earlier kernel touches. Every kernel of a
// pass calls it, so "the kernel before has ended" covers all earlier ones too.
//
// What earlier kernels of a pass write must not be read by __ldg, nor through a __restrict__ pointer: both
// let the compiler take the load for constant and move it before this wait.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel's blocks start as soon as multiprocessors have room. A small kernel does
// so before it waits itself: then the scan behind it fills its ring while the scan before it ends.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

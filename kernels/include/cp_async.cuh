// Copies to shared memory that continue while their thread does something else: see "cp.async" in
// the PTX ISA. Devices before compute capability 8.0 have none. There, a copy is over when
// `copy_16` returns, and there is nothing to wait for.
#pragma once
#include "shared_address.cuh"

// Starts copying 16 bytes.
__device__ __forceinline__ void copy_16(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
#else
    *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
#endif
}

// Starts writing 16 bytes to an address in shared memory: the first `bytes` are copied, the others
// become zero. Only for compute capability 8.0 and later, as the two that follow.
__device__ __forceinline__ void copy_16_or_zeros(uint32_t to, const void* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// The same for 4 bytes.
__device__ __forceinline__ void copy_4_or_zeros(uint32_t to, const void* from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// Arrives at a barrier once this thread's copies so far are over.
__device__ __forceinline__ void copies_arrive(uint64_t* barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Makes a group of this thread's copies since the last group.
__device__ __forceinline__ void copies_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until only the last PENDING groups are under way.
template <int PENDING>
__device__ __forceinline__ void copies_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// Waits for all copies of this thread.
__device__ __forceinline__ void copies_wait_all() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Instructions of compute capability 9.0a as small functions: bulk copies that complete on a
// barrier in shared memory, and the warpgroup's matrix products. See "mbarrier", "cp.async.bulk"
// and "wgmma" in the PTX ISA.
#pragma once
#include "shared_address.cuh"

// Of the registers that the multiprocessor has for a block: the warps of a warpgroup that needs few
// lower their number to COUNT, so that others can raise theirs. A multiple of 8.
template <int COUNT>
__device__ __forceinline__ void registers_lower() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
__device__ __forceinline__ void registers_raise() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

// Makes what this thread wrote to shared memory visible to bulk copies and matrix products.
__device__ __forceinline__ void publish_writes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void barrier_init(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}

// Call this once, after all barriers are initialised and before `__syncthreads`.
__device__ __forceinline__ void publish_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    publish_writes();
}

__device__ __forceinline__ void barrier_wait(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// For each place of a ring: whether it was filled, and whether it was emptied.
template <int PLACES>
struct Barriers {
    uint64_t filled[PLACES], emptied[PLACES];
};

// A place in turn.
template <int PLACES>
struct Turn {
    int place = 0;
    uint32_t parity = 0;
    __device__ void next() {
        if (++place == PLACES) place = 0, parity ^= 1;
    }
    __device__ void wait_filled(Barriers<PLACES>& barriers) const { barrier_wait(barriers.filled + place, parity); }
    // All places are empty before the first turn.
    __device__ void wait_emptied(Barriers<PLACES>& barriers) const { barrier_wait(barriers.emptied + place, parity ^ 1); }
};

// Copies `bytes` (a multiple of 16) into shared memory; the barrier's phase completes when they are
// there.
__device__ __forceinline__ void bulk_copy(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// An operand in shared memory: vectors K-major without swizzle, as 8 x 16-byte core matrices.
// Chunks of 16 components (the leading dimension) are `chunk_bytes` apart, groups of 8 vectors 128
// bytes.
__device__ __forceinline__ uint64_t descriptor(const void* vectors, uint32_t chunk_bytes) {
    return static_cast<uint64_t>((shared_address(vectors) & 0x3ffff) >> 4) | static_cast<uint64_t>(chunk_bytes >> 4) << 16 |
           static_cast<uint64_t>(128 >> 4) << 32;
}

// Operand B: the 128 rows of a tile.
__device__ __forceinline__ uint64_t tile_descriptor(const void* tile) { return descriptor(tile, 2048); }
constexpr uint64_t DESCRIPTOR_STEP = 2 * 2048 >> 4;  // 32 components further

// Operand A: 64 queries.
__device__ __forceinline__ uint64_t queries_descriptor(const void* queries) { return descriptor(queries, 1024); }
constexpr uint64_t QUERIES_STEP = 2 * 1024 >> 4;  // 32 components further

__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING>
__device__ __forceinline__ void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
// Keeps the compiler from reading the accumulators before this point.
__device__ __forceinline__ void products_done(int (&d)[64]) {
#pragma unroll
    for (int i = 0; i < 64; i++) asm volatile("" : "+r"(d[i])::"memory");
}
__device__ __forceinline__ void products_done(float (&d)[64]) {
#pragma unroll
    for (int i = 0; i < 64; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// The instruction of this SHAPE up to its operands: d, in 64 registers, comes first. PREDICATE is
// the number of the operand that says whether to add to d.
#define PRODUCT(SHAPE, PREDICATE)                                                  \
    "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, " PREDICATE ", 0;\n"        \
    "wgmma.mma_async.sync.aligned." SHAPE " {"                                     \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,"   \
    "%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39," \
    "%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58," \
    "%59,%60,%61,%62,%63}, "
#define ACCUMULATORS_8(KIND, D, I) \
    KIND(D[I]), KIND(D[I + 1]), KIND(D[I + 2]), KIND(D[I + 3]), KIND(D[I + 4]), KIND(D[I + 5]), KIND(D[I + 6]), KIND(D[I + 7])
#define ACCUMULATORS_64(KIND, D)                                                                                          \
    ACCUMULATORS_8(KIND, D, 0), ACCUMULATORS_8(KIND, D, 8), ACCUMULATORS_8(KIND, D, 16), ACCUMULATORS_8(KIND, D, 24),     \
        ACCUMULATORS_8(KIND, D, 32), ACCUMULATORS_8(KIND, D, 40), ACCUMULATORS_8(KIND, D, 48), ACCUMULATORS_8(KIND, D, 56)

// d (64 queries x 128 rows) = or += a (64 queries x 32 components, in registers) * b (32 x 128
// rows).
__device__ __forceinline__ void product_64x128x32(int (&d)[64], const uint4& a, uint64_t b, bool accumulate) {
    asm volatile(PRODUCT("m64n128k32.s32.s8.s8", "%69") "{%64,%65,%66,%67}, %68, accumulate;\n}"
                 : ACCUMULATORS_64("+r", d)
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b), "r"(static_cast<int>(accumulate)));
}

// The same with a in shared memory.
__device__ __forceinline__ void product_64x128x32(int (&d)[64], uint64_t a, uint64_t b, bool accumulate) {
    asm volatile(PRODUCT("m64n128k32.s32.s8.s8", "%66") "%64, %65, accumulate;\n}"
                 : ACCUMULATORS_64("+r", d)
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

// The same for 16 components in float16. Descriptors and their steps are those of 32 components of
// one byte.
__device__ __forceinline__ void product_64x128x16(float (&d)[64], uint64_t a, uint64_t b, bool accumulate) {
    asm volatile(PRODUCT("m64n128k16.f32.f16.f16", "%66") "%64, %65, accumulate, 1, 1, 0, 0;\n}"
                 : ACCUMULATORS_64("+f", d)
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

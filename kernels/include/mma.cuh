// Matrix products of one warp on the tensor cores of every supported device: see "mma" in the PTX
// ISA.
#pragma once
#include <cstdint>

// d += a * b in float16, with sums in float32: a has 16 x 16 values, b 16 x 8.
__device__ __forceinline__ void multiply(float (&d)[4], const uint4& a, uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
    // Compute capability 7.5 has only m16n8k8; two of them give the same sum, up to roundings.
    const auto half = [&](uint32_t a0, uint32_t a1, uint32_t b) {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b));
    };
    half(a.x, a.y, b0);
    half(a.z, a.w, b1);
#endif
}

// d += a * b in 8 bits: a has 16 x 32 values, b 32 x 8.
__device__ __forceinline__ void multiply(int (&d)[4], const uint4& a, uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
    // Compute capability 7.5 has only m8n8k16; four of them give the same result.
    const auto quarter = [](int& x, int& y, uint32_t a, uint32_t b) {
        asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                     : "+r"(x), "+r"(y) : "r"(a), "r"(b));
    };
    quarter(d[0], d[1], a.x, b0);
    quarter(d[2], d[3], a.y, b0);
    quarter(d[0], d[1], a.z, b1);
    quarter(d[2], d[3], a.w, b1);
#endif
}

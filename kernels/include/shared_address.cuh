// Addresses in shared memory, as PTX instructions take them.
#pragma once
#include <cstdint>

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Sets of rows on the device: see crates/gpu-core/src/sets/abi.rs for their two forms.
#pragma once
#include "abi/sets.cuh"

// Whether a row is in the set at this address, by rows; all rows are in no set.
__device__ __forceinline__ bool is_member(uint64_t set, uint32_t row) {
    if (set == 0) return true;
    const uint32_t* const words = reinterpret_cast<const uint32_t*>(set);
    return words[row / 32] >> row % 32 & 1;
}

// Word `quad_lane` of a tile of the set at this address, by slots: bit 2j + i stands for slot 8j +
// 2 * quad_lane + i of the tile. These are the rows that a lane of a quad has of a product.
__device__ __forceinline__ uint32_t members_of_lane(uint64_t set, uint32_t tile, uint32_t quad_lane) {
    return reinterpret_cast<const uint32_t*>(set)[tile * SET_WORDS + quad_lane];
}

// The bit of a slot of a tile in the word of its lane.
__device__ __forceinline__ uint32_t bit_of_slot(uint32_t slot_in_tile) { return slot_in_tile / 8 * 2 + slot_in_tile % 2; }

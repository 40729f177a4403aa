// Makes the second form of a set of rows: by the slots of the derived tables.
#include "contract.cuh"
#include "row_set.cuh"

// A warp makes a word of a tile: word % SET_WORDS is the lane of a quad that reads it. Grid: enough
// warps for SET_WORDS words of each tile.
extern "C" __global__ void set_by_slots(const SetBySlotsParams params) {
    const uint32_t word = (blockIdx.x * blockDim.x + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
    if (word >= params.tiles * SET_WORDS) return;
    const uint32_t slot_in_tile = lane / 2 * 8 + word % SET_WORDS * 2 + lane % 2;
    const uint32_t row = params.slot_rows[word / SET_WORDS * TILE_ROWS + slot_in_tile];
    const uint32_t members = __ballot_sync(ALL_LANES, row != NOT_A_ROW && is_member(params.of_rows, row));
    if (lane == 0) params.of_slots[word] = members;
}

// Builds the derived tables, which certified passes scan: the rotated rows in 8 and in 4 bits, as
// unit vectors, or lifted under the metric `dot` (docs/certificate.md, theorem 7). Below, `dim` is
// that of lifted rows.
//
// The rows of a tile have similar largest rotated components, so that a tile can share one step
// with little loss. A tile of the 8-bit table is [chunks][TILE_ROWS][CHUNK_BYTES] with chunks =
// ceil(dim / CHUNK8); a tile of the 4-bit table is the same with ceil(dim / CHUNK4). In both, the
// rows of a chunk are adjacent, so a warp reads contiguous bytes. This is also the layout that
// wgmma needs in shared memory.
#include "abi/resident.cuh"
#include "rotation.cuh"
#include "tile_scale.cuh"

// Reads a row as a vector that is at most 1 long into shared memory and rotates it. Called by all
// threads.
__device__ void lifted_row(const TableView& table, const LiftView& lift, uint32_t row, double* values) {
    __syncthreads();
    const double divisor = table.metric == Metric::Cosine ? table.norms[row] : lift.longest;
    const float* const components = table.components + static_cast<size_t>(row) * table.dim;
    for (int i = threadIdx.x; i < table.dim; i += blockDim.x) values[i] = static_cast<double>(components[i]) / divisor;
    if (threadIdx.x == 0 && lift.dim > table.dim) values[table.dim] = static_cast<double>(table.biases[row]) / lift.beta / divisor;
    __syncthreads();
    rotate(values, lift.dim);
}

// Writes the largest absolute component of each rotated row; -1 for rows that have no scores.
// Writes the largest square of all rows, too. Any grid: blocks take rows in turn. Dynamic shared
// memory: [lift.dim] float64.
extern "C" __global__ void row_peaks(const RowPeaksParams params) {
    const TableView& table = params.table;
    float* const peaks = params.peaks;
    extern __shared__ double values[];
    __shared__ float space[32];
    __shared__ double square_space[32];
    double longest_square = 0.0;
    for (uint32_t row = blockIdx.x; row < table.rows; row += gridDim.x) {
        if (table.metric == Metric::Cosine && table.norms[row] == 0.0) {
            if (threadIdx.x == 0) peaks[row] = -1.0f;
            continue;
        }
        lifted_row(table, params.lift, row, values);
        float peak = 0.0f;
        for (int i = threadIdx.x; i < params.lift.dim; i += blockDim.x) peak = fmaxf(peak, __double2float_ru(fabs(values[i])));
        peak = block_combine(peak, space, [](float a, float b) { return fmaxf(a, b); });
        if (threadIdx.x == 0) peaks[row] = peak;
        if (params.longest_square == nullptr) continue;
        double square = 0.0;
        for (int i = threadIdx.x; i < params.lift.dim; i += blockDim.x) square += values[i] * values[i];
        square = block_combine(square, square_space, [](double a, double b) { return a + b; });
        // Nothing is above NaN, so it stays.
        if (square > longest_square || isnan(square)) longest_square = square;
    }
    // The bits of numbers that are not negative have the order of the numbers, and those of NaN
    // come last.
    if (params.longest_square != nullptr && threadIdx.x == 0) {
        const auto bits = static_cast<unsigned long long>(__double_as_longlong(fabs(longest_square)));
        atomicMax(reinterpret_cast<unsigned long long*>(params.longest_square), bits);
    }
}

// The lengths of what rounding a row left, in 8 and in 4 bits.
struct Residuals {
    double of8, of4;
};

// Rounds a row, or an empty slot, into its place in a tile. Called by all threads of a block.
struct Rounder {
    const QuantiseRowsParams& params;
    double* values;  // [dim], shared
    unsigned char* levels;  // [CHUNK4 * chunks4], shared
    double (&space)[32];  // shared
    int dim, chunks8, chunks4;

    __device__ Rounder(const QuantiseRowsParams& params, double* memory, double (&space)[32])
        : params(params), values(memory), levels(reinterpret_cast<unsigned char*>(memory + params.lift.dim)), space(space), dim(params.lift.dim),
          chunks8((dim + CHUNK8 - 1) / CHUNK8), chunks4((dim + CHUNK4 - 1) / CHUNK4) {}

    __device__ Residuals round(uint32_t tile, int place, uint32_t row, float step) {
        const auto sum = [](double a, double b) { return a + b; };
        const double step4 = STEP4 / sqrt(static_cast<double>(dim));
        uint8_t* const tile8 = params.tiles8 + static_cast<size_t>(tile) * chunks8 * TILE_ROWS * CHUNK_BYTES;
        uint8_t* const tile4 = params.tiles4 + static_cast<size_t>(tile) * chunks4 * TILE_ROWS * CHUNK_BYTES;
        const bool there = row != NOT_A_ROW;
        Residuals residuals = {0.0, 0.0};
        if (there) lifted_row(params.table, params.lift, row, values);
        double square8 = 0.0, square4 = 0.0;
        for (int i = threadIdx.x; i < chunks8 * CHUNK8; i += blockDim.x) {
            const double y = there && i < dim ? values[i] : 0.0;
            const int n = max(-127, min(127, __double2int_rn(y / step)));
            const double rest = y - static_cast<double>(n) * step;
            square8 += rest * rest;
            tile8[(i / CHUNK8) * (TILE_ROWS * CHUNK_BYTES) + place * CHUNK_BYTES + i % CHUNK8] = static_cast<uint8_t>(static_cast<int8_t>(n));
        }
        square8 = block_combine(square8, space, sum);
        if (there) residuals.of8 = sqrt(square8);
        if (params.tiles4 == nullptr) return residuals;
        for (int i = threadIdx.x; i < chunks4 * CHUNK4; i += blockDim.x) {
            int n = 0;
            if (there && i < dim) {
                n = max(0, min(15, __double2int_rd(values[i] / step4) + 8));
                const double rest = values[i] - (2 * n - 15) * 0.5 * step4;
                square4 += rest * rest;
            }
            levels[i] = static_cast<unsigned char>(n);
        }
        square4 = block_combine(square4, space, sum);
        if (there) residuals.of4 = sqrt(square4);
        // Word w of the 4-bit table has components 8w to 8w + 7. The low halves of its four bytes
        // are the first four components, so that a mask and a shift give two words of bytes.
        for (int b = threadIdx.x; b < chunks4 * CHUNK_BYTES; b += blockDim.x) {
            const int first = 8 * (b / 4) + b % 4;
            tile4[(b / CHUNK_BYTES) * (TILE_ROWS * CHUNK_BYTES) + place * CHUNK_BYTES + b % CHUNK_BYTES] =
                static_cast<uint8_t>(levels[first] | levels[first + 4] << 4);
        }
        return residuals;
    }
};

// The step of a tile, and whether it is full. Called by all threads of a block.
__device__ float tile_step(const QuantiseRowsParams& params, uint32_t tile, float (&space)[32], bool& full) {
    const uint32_t* const here = params.slot_rows + static_cast<size_t>(tile) * TILE_ROWS;
    float peak = 0.0f;
    full = true;
    for (int i = threadIdx.x; i < TILE_ROWS; i += blockDim.x) {
        const uint32_t row = here[i];
        if (row == NOT_A_ROW) full = false;
        else peak = fmaxf(peak, params.peaks[row]);
    }
    peak = block_combine(peak, space, [](float a, float b) { return fmaxf(a, b); });
    full = __syncthreads_and(full);
    return step_for(peak);
}

// 1e-9 more than covers the float64 roundings of rotation, quotient and sum (docs/certificate.md).
__device__ float rounded_up(double residual) { return __double2float_ru(residual * (1.0 + 1e-9) + 1e-9); }

__device__ void write_scale(const QuantiseRowsParams& params, uint32_t tile, float step, Residuals most, bool full) {
    params.scales[tile] = tile_scale(step, rounded_up(most.of8), full);
    if (params.tiles4 != nullptr) params.residuals4[tile] = full ? rounded_up(most.of4) : UNBOUNDED_RESIDUAL;
}

// Quantises one tile. Grid: (tiles). Dynamic shared memory: [lift.dim] float64 and [CHUNK4 *
// ceil(lift.dim / CHUNK4)] bytes.
extern "C" __global__ void quantise_rows(const QuantiseRowsParams params) {
    static_assert(CHUNK8 == CHUNK_BYTES && CHUNK4 == 2 * CHUNK_BYTES, "8 and 4 bits a component");
    extern __shared__ double memory[];
    __shared__ double space[32];
    __shared__ float peak_space[32];
    bool full;
    const float step = tile_step(params, blockIdx.x, peak_space, full);
    Rounder rounder(params, memory, space);
    Residuals most = {0.0, 0.0};
    for (int j = 0; j < TILE_ROWS; j++) {
        const uint32_t row = params.slot_rows[static_cast<size_t>(blockIdx.x) * TILE_ROWS + j];
        const Residuals own = rounder.round(blockIdx.x, j, row, step);
        most = {fmax(most.of8, own.of8), fmax(most.of4, own.of4)};
    }
    if (threadIdx.x == 0) write_scale(params, blockIdx.x, step, most, full);
}

// The same for few tiles, which a block for each would take long for: a block for each slot, and then
// `scale_tiles`. Empty slots stay as they are. Grid: (tiles * TILE_ROWS). Dynamic shared memory: as
// quantise_rows.
extern "C" __global__ void quantise_slots(const QuantiseSlotsParams params) {
    extern __shared__ double memory[];
    __shared__ double space[32];
    __shared__ float peak_space[32];
    const uint32_t tile = blockIdx.x / TILE_ROWS, row = params.rows.slot_rows[blockIdx.x];
    if (row == NOT_A_ROW) {
        if (threadIdx.x == 0) params.residuals[2 * blockIdx.x] = params.residuals[2 * blockIdx.x + 1] = 0.0;
        return;
    }
    bool full;
    const float step = tile_step(params.rows, tile, peak_space, full);
    Rounder rounder(params.rows, memory, space);
    const Residuals own = rounder.round(tile, blockIdx.x % TILE_ROWS, row, step);
    if (threadIdx.x != 0) return;
    params.residuals[2 * blockIdx.x] = own.of8;
    params.residuals[2 * blockIdx.x + 1] = own.of4;
}

// Grid: (tiles).
extern "C" __global__ void scale_tiles(const QuantiseSlotsParams params) {
    __shared__ double space[32];
    __shared__ float peak_space[32];
    const auto larger = [](double a, double b) { return fmax(a, b); };
    bool full;
    const float step = tile_step(params.rows, blockIdx.x, peak_space, full);
    const double* const residuals = params.residuals + static_cast<size_t>(blockIdx.x) * 2 * TILE_ROWS;
    Residuals most = {0.0, 0.0};
    for (int j = threadIdx.x; j < TILE_ROWS; j += blockDim.x) {
        most = {fmax(most.of8, residuals[2 * j]), fmax(most.of4, residuals[2 * j + 1])};
    }
    most.of8 = block_combine(most.of8, space, larger);
    most.of4 = block_combine(most.of4, space, larger);
    if (threadIdx.x == 0) write_scale(params.rows, blockIdx.x, step, most, full);
}

// Classifies texts: products of tokens with all filters, features of texts from these products, and
// class scores.
//
// Convolution is linear in the tokens' vectors. So a token's products are computed once, and the
// sum of a filter at a position is the sum of one product of each token that it covers.
#include <cuda_fp16.h>

#include "abi/heads.cuh"
#include "float_tile.cuh"

// The texts of a tile are side by side, piece by piece: dense layers copy them to shared memory as
// they are.
__device__ __forceinline__ size_t piece_index(uint32_t text, uint32_t piece, uint32_t pieces) {
    return (static_cast<size_t>(text / HEAD_TEXTS) * pieces + piece) * HEAD_TEXTS + text % HEAD_TEXTS;
}

// A tile of tokens times a tile of columns; each thread has 4 x 4 products. Grid: (tiles of
// columns, tiles of tokens).
extern "C" __global__ void multiply_tokens(const ProductsParams params) {
    constexpr int TILE = PRODUCT_TILE, STEP = 16, EACH = 4;
    __shared__ float vectors[STEP][TILE + 4], filters[STEP][TILE + 4];
    const int dim = params.table.dim, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const uint32_t first_token = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    float sums[EACH][EACH] = {};
    for (int from = 0; from < dim; from += STEP) {
#pragma unroll
        for (int i = threadIdx.x; i < STEP * TILE; i += 256) {
            const uint32_t token = first_token + i / STEP;
            const int component = from + i % STEP;
            float x = 0.0f;
            if (token < params.count && component < dim) {
                const NewToken own = params.tokens[token];
                x = own.row != NOT_A_ROW ? params.table.components[static_cast<size_t>(own.row) * dim + component]
                                         : params.vectors[static_cast<size_t>(own.uploaded) * dim + component];
                x = __fmul_rn(x, own.scale);
            }
            vectors[i % STEP][i / STEP] = x;
            const uint32_t column = first_column + i % TILE;
            const int row = from + i / TILE;
            filters[i / TILE][i % TILE] =
                column < params.columns && row < dim ? params.filters[static_cast<size_t>(row) * params.columns + column] : 0.0f;
        }
        __syncthreads();
        multiply_step(sums, vectors, filters, ty * EACH, tx * EACH);
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++) {
        const uint32_t token = first_token + ty * EACH + i;
        if (token >= params.count) return;
        const size_t row = static_cast<size_t>(params.tokens[token].slot) * params.columns;
        for (int j = 0; j < EACH; j++) {
            const uint32_t column = first_column + tx * EACH + j;
            if (column >= params.columns) break;
            if (params.is_half) reinterpret_cast<__half*>(params.products)[row + column] = __float2half_rn(sums[i][j]);
            else reinterpret_cast<float*>(params.products)[row + column] = sums[i][j];
        }
    }
}

// A group's products as they are in memory, and as numbers.
struct HalfProducts {
    static constexpr int BYTES = 2;
    uint4 bits;
    __device__ void load(const unsigned char* from) { bits = __ldg(reinterpret_cast<const uint4*>(from)); }
    __device__ void clear() { bits = make_uint4(0, 0, 0, 0); }
    __device__ float2 pair(int i) const { return __half22float2(reinterpret_cast<const __half2*>(&bits)[i]); }
};
struct FloatProducts {
    static constexpr int BYTES = 4;
    float4 low, high;
    __device__ void load(const unsigned char* from) {
        low = __ldg(reinterpret_cast<const float4*>(from)), high = __ldg(reinterpret_cast<const float4*>(from) + 1);
    }
    __device__ void clear() { low = high = make_float4(0.0f, 0.0f, 0.0f, 0.0f); }
    __device__ float2 pair(int i) const {
        const float4& part = i < 2 ? low : high;
        return i % 2 == 0 ? make_float2(part.x, part.y) : make_float2(part.z, part.w);
    }
};

// Features of a text, of one group of channels, after the ReLU.
struct Group {
    float values[HEAD_GROUP];
};

__device__ __forceinline__ void raise(float (&best)[HEAD_GROUP], const float (&sums)[HEAD_GROUP]) {
#pragma unroll
    for (int j = 0; j < HEAD_GROUP; j++) best[j] = fmaxf(best[j], sums[j]);
}

template <class Products>
__device__ __forceinline__ void add(float (&to)[HEAD_GROUP], const float (&sums)[HEAD_GROUP], const Products& products) {
#pragma unroll
    for (int j = 0; j < HEAD_GROUP; j += 2) {
        const float2 pair = products.pair(j / 2);
        to[j] = __fadd_rn(sums[j], pair.x), to[j + 1] = __fadd_rn(sums[j + 1], pair.y);
    }
}

// What a thread needs of a text's tokens: the products of its group, tap after tap.
template <class Products>
struct Text {
    const unsigned char* products;  // of the group, in slot 0
    const uint32_t* tokens;
    size_t slot_bytes;
    uint32_t tap_bytes;
    int count;
    __device__ const unsigned char* of_slot(uint32_t slot) const { return products + slot * slot_bytes; }
    __device__ const unsigned char* of(int token) const { return of_slot(__ldg(tokens + token)); }
};

// Window after window. Those narrower than WIDTH use the last taps only. All products of a window
// are on their way together.
template <class Products, int WIDTH>
__device__ __forceinline__ void window_maxima(const FeaturesParams& params, const Text<Products>& text, const float (&bias)[HEAD_GROUP],
                                              float (&best)[HEAD_GROUP]) {
    constexpr uint32_t OUTSIDE = ~0u;
    const int first = WIDTH - static_cast<int>(params.width), padding = params.padding, width = params.width;
    // Zero vectors follow a text that is shorter than the window.
    const int positions = max(text.count + 2 * padding - width + 1, 1);
    const auto slot_of = [&](int token) { return token >= 0 && token < text.count ? __ldg(text.tokens + token) : OUTSIDE; };
    uint32_t slots[WIDTH];
#pragma unroll
    for (int t = 0; t < WIDTH; t++) slots[t] = t > first ? slot_of(t - 1 - first - padding) : OUTSIDE;
    for (int position = 0; position < positions; position++) {
#pragma unroll
        for (int t = 0; t + 1 < WIDTH; t++) slots[t] = slots[t + 1];
        slots[WIDTH - 1] = slot_of(position - padding + width - 1);
        Products products[WIDTH];
#pragma unroll
        for (int t = 0; t < WIDTH; t++) {
            if (t >= first && slots[t] != OUTSIDE) products[t].load(text.of_slot(slots[t]) + (t - first) * text.tap_bytes);
            else products[t].clear();
        }
        float sums[HEAD_GROUP];
#pragma unroll
        for (int j = 0; j < HEAD_GROUP; j++) sums[j] = bias[j];
#pragma unroll
        for (int t = 0; t < WIDTH; t++) {
            if (t >= first) add(sums, sums, products[t]);
        }
        raise(best, sums);
    }
}

// Window after window, for those of any width.
template <class Products>
__device__ __forceinline__ void any_window_maxima(const FeaturesParams& params, const Text<Products>& text,
                                                  const float (&bias)[HEAD_GROUP], float (&best)[HEAD_GROUP]) {
    const int padding = params.padding, width = params.width;
    const int positions = max(text.count + 2 * padding - width + 1, 1);
    for (int position = 0; position < positions; position++) {
        float sums[HEAD_GROUP];
#pragma unroll
        for (int j = 0; j < HEAD_GROUP; j++) sums[j] = bias[j];
        for (int t = max(padding - position, 0); t < width && position + t - padding < text.count; t++) {
            Products products;
            products.load(text.of(position + t - padding) + t * text.tap_bytes);
            add(sums, sums, products);
        }
        raise(best, sums);
    }
}

// WIDTH 0 is any width. Grid: (blocks of texts, blocks of groups).
template <class Products, class Feature, int WIDTH>
__device__ __forceinline__ void features(const FeaturesParams& params) {
    const uint32_t groups = params.channels / HEAD_GROUP;
    const uint32_t group = blockIdx.y * params.block_groups + threadIdx.x % params.block_groups;
    const uint32_t in_block = threadIdx.x / params.block_groups, text = blockIdx.x * params.block_texts + in_block;
    if (in_block >= params.block_texts || text >= params.texts || group >= groups) return;
    const uint32_t begin = params.bounds[text], end = params.bounds[text + 1];
    const Text<Products> own = {
        params.products + (static_cast<size_t>(params.column) + group * HEAD_GROUP) * Products::BYTES,
        params.tokens + begin,
        static_cast<size_t>(params.columns) * Products::BYTES,
        params.channels * Products::BYTES,
        static_cast<int>(end - begin),
    };
    float bias[HEAD_GROUP], best[HEAD_GROUP];
#pragma unroll
    for (int j = 0; j < HEAD_GROUP; j++) bias[j] = params.bias[group * HEAD_GROUP + j], best[j] = 0.0f;
    if constexpr (WIDTH > 0) window_maxima<Products, WIDTH>(params, own, bias, best);
    else any_window_maxima<Products>(params, own, bias, best);
    constexpr int PER_PIECE = HEAD_PIECE / sizeof(Feature);
    const uint32_t piece = (params.first_feature + group * HEAD_GROUP) / PER_PIECE;
#pragma unroll
    for (int i = 0; i < HEAD_GROUP / PER_PIECE; i++) {
        const size_t index = piece_index(text, piece + i, params.pieces);
        if constexpr (sizeof(Feature) == sizeof(float)) {
            const float* const four = best + 4 * i;
            reinterpret_cast<float4*>(params.features)[index] = make_float4(four[0], four[1], four[2], four[3]);
        } else {
            __half2 halves[4];
#pragma unroll
            for (int j = 0; j < 4; j++) halves[j] = __floats2half2_rn(best[2 * j], best[2 * j + 1]);
            reinterpret_cast<uint4*>(params.features)[index] = *reinterpret_cast<const uint4*>(halves);
        }
    }
}

// Float16 products, float16 features for dense layers on tensor cores.
extern "C" __global__ void features_half_3(const FeaturesParams params) { features<HalfProducts, __half, 3>(params); }
extern "C" __global__ void features_half_5(const FeaturesParams params) { features<HalfProducts, __half, 5>(params); }
extern "C" __global__ void features_half_9(const FeaturesParams params) { features<HalfProducts, __half, 9>(params); }
extern "C" __global__ void features_half_any(const FeaturesParams params) { features<HalfProducts, __half, 0>(params); }

// Float16 products, float32 features.
extern "C" __global__ void features_mixed_3(const FeaturesParams params) { features<HalfProducts, float, 3>(params); }
extern "C" __global__ void features_mixed_5(const FeaturesParams params) { features<HalfProducts, float, 5>(params); }
extern "C" __global__ void features_mixed_9(const FeaturesParams params) { features<HalfProducts, float, 9>(params); }
extern "C" __global__ void features_mixed_any(const FeaturesParams params) { features<HalfProducts, float, 0>(params); }

// Float32 products and features.
extern "C" __global__ void features_float_3(const FeaturesParams params) { features<FloatProducts, float, 3>(params); }
extern "C" __global__ void features_float_5(const FeaturesParams params) { features<FloatProducts, float, 5>(params); }
extern "C" __global__ void features_float_9(const FeaturesParams params) { features<FloatProducts, float, 9>(params); }
extern "C" __global__ void features_float_any(const FeaturesParams params) { features<FloatProducts, float, 0>(params); }

__device__ __forceinline__ void unpack(const uint4& piece, float (&values)[8]) {
    const __half2* const halves = reinterpret_cast<const __half2*>(&piece);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const float2 pair = __half22float2(halves[j]);
        values[2 * j] = pair.x, values[2 * j + 1] = pair.y;
    }
}
__device__ __forceinline__ void unpack(const float4& piece, float (&values)[4]) {
    values[0] = piece.x, values[1] = piece.y, values[2] = piece.z, values[3] = piece.w;
}

// The last dense layer. A warp has SCORE_TEXTS texts and every n-th piece of their inputs. Grid:
// (blocks of texts, classes).
template <class Piece, int VALUES>
__device__ __forceinline__ void scores(const ScoresParams& params) {
    constexpr int WARPS = 8;
    __shared__ float sums_of_warps[WARPS][SCORE_TEXTS];
    const uint32_t warp = threadIdx.x / SCORE_TEXTS, lane = threadIdx.x % SCORE_TEXTS, label = blockIdx.y;
    const uint32_t text = blockIdx.x * SCORE_TEXTS + lane, pieces = params.input_count / VALUES;
    const Piece* const inputs = reinterpret_cast<const Piece*>(params.inputs) + piece_index(text, 0, pieces);
    const float* const weights = params.weights + static_cast<size_t>(label) * params.input_count;
    float sums[VALUES] = {};
#pragma unroll 4
    for (uint32_t piece = warp; piece < pieces; piece += WARPS) {
        float values[VALUES];
        unpack(inputs[static_cast<size_t>(piece) * HEAD_TEXTS], values);
#pragma unroll
        for (int j = 0; j < VALUES; j++) sums[j] = fmaf(values[j], __ldg(weights + piece * VALUES + j), sums[j]);
    }
#pragma unroll
    for (int half = VALUES / 2; half > 0; half /= 2) {
#pragma unroll
        for (int j = 0; j < half; j++) sums[j] += sums[j + half];
    }
    sums_of_warps[warp][lane] = sums[0];
    __syncthreads();
    if (warp > 0 || text >= params.texts) return;
    float sum = params.bias[label];
#pragma unroll
    for (int i = 0; i < WARPS; i++) sum += sums_of_warps[i][lane];
    params.scores[static_cast<size_t>(text) * params.classes + label] = sum;
}

extern "C" __global__ void scores_half(const ScoresParams params) { scores<uint4, 8>(params); }
extern "C" __global__ void scores_float(const ScoresParams params) { scores<float4, 4>(params); }

//! Shared by classifiers and their kernels.

use crate::abi::{DevicePointer, DevicePointerMut};
use crate::resident::TableView;

abi! {
    name: "heads";
    uses: ["resident"];
    constants {
        /// Channels that a thread of the kernels for features takes. Those of each convolution are
        /// filled up with zeros to a multiple.
        HEAD_GROUP: usize = 8;
        /// Texts whose features and outputs of layers are kept together.
        HEAD_TEXTS: usize = 128;
        /// Bytes of a text's features that are kept together: 8 as float16, 4 as float32.
        HEAD_PIECE: usize = 16;
        /// Inputs of a dense layer that a block multiplies between two barriers; layers are filled
        /// up with zeros to a multiple.
        DENSE_INPUTS: usize = 64;
        /// Outputs of a hidden dense layer are filled up to a multiple: those that a block
        /// computes.
        DENSE_OUTPUTS: usize = 128;
        /// Those that a block of the kernel for compute capability 9.0 computes, if the layer has a
        /// multiple.
        DENSE_WIDE_OUTPUTS: usize = 256;
        /// What these kernels have on their way to shared memory, in steps of `DENSE_INPUTS`.
        DENSE_STAGES: usize = 3;
        HOPPER_DENSE_STAGES: usize = 4;
        /// Texts of a block that computes class scores.
        SCORE_TEXTS: usize = 32;
        /// Tokens and columns of products that a block computes.
        PRODUCT_TILE: usize = 64;
    }
    data {
        /// A token whose products are computed.
        struct NewToken {
            /// The table's row that it is, or `NOT_A_ROW`.
            row: u32,
            /// What its row is multiplied with.
            scale: f32,
            /// If it is no row: its index among the uploaded vectors.
            uploaded: u32,
            /// Where its products are put.
            slot: u32,
        }
    }
    params {
        struct ProductsParams {
            table: TableView,
            /// `[count]`.
            tokens: DevicePointer<NewToken>,
            /// `[uploaded, dim]`.
            vectors: DevicePointer<f32>,
            /// `[dim, columns]`.
            filters: DevicePointer<f32>,
            /// `[slots, columns]` as float16 or float32.
            products: DevicePointerMut<u8>,
            count: u32,
            columns: u32,
            /// Whether products are float16.
            is_half: u32,
        }
        struct FeaturesParams {
            /// `[slots, columns]` as float16 or float32.
            products: DevicePointer<u8>,
            /// The slots of all texts' tokens.
            tokens: DevicePointer<u32>,
            /// `[texts + 1]`: where in `tokens` each text begins, and where the last ends.
            bounds: DevicePointer<u32>,
            /// `[channels]`, those of this convolution.
            bias: DevicePointer<f32>,
            /// `[texts / HEAD_TEXTS, pieces, HEAD_TEXTS, HEAD_PIECE bytes]`.
            features: DevicePointerMut<u8>,
            texts: u32,
            columns: u32,
            /// Pieces of a text's features.
            pieces: u32,
            /// The first column of this convolution, `[width, channels]`, and its first feature.
            column: u32,
            first_feature: u32,
            channels: u32,
            width: u32,
            padding: u32,
            /// Groups of channels that a block takes, and texts.
            block_groups: u32,
            block_texts: u32,
        }
        struct DenseParams {
            /// `[texts / HEAD_TEXTS, inputs, HEAD_TEXTS]` in pieces.
            inputs: DevicePointer<u8>,
            /// As float16 `[outputs / DENSE_OUTPUTS, inputs / 8, DENSE_OUTPUTS, 8]`, as float32
            /// `[inputs, outputs]`.
            weights: DevicePointer<u8>,
            /// `[outputs]`.
            bias: DevicePointer<f32>,
            /// As the inputs.
            outputs: DevicePointerMut<u8>,
            input_count: u32,
            output_count: u32,
        }
        struct ScoresParams {
            /// `[texts / HEAD_TEXTS, inputs, HEAD_TEXTS]` in pieces.
            inputs: DevicePointer<u8>,
            /// `[classes, inputs]`.
            weights: DevicePointer<f32>,
            /// `[classes]`.
            bias: DevicePointer<f32>,
            /// `[texts, classes]`.
            scores: DevicePointerMut<f32>,
            input_count: u32,
            classes: u32,
            texts: u32,
        }
    }
    files {
        "" / heads for Every {
            (256) multiply_tokens: ProductsParams;
            (256) features_half_3, features_half_5, features_half_9, features_half_any: FeaturesParams;
            (256) features_mixed_3, features_mixed_5, features_mixed_9, features_mixed_any: FeaturesParams;
            (256) features_float_3, features_float_5, features_float_9, features_float_any: FeaturesParams;
            (256) scores_half, scores_float: ScoresParams;
        }
        "" / dense for Every {
            (256) dense_half: DenseParams;
            (256) dense_float: DenseParams;
        }
        "" / hopper_dense for Sm90a {
            (288) hopper_dense_128, hopper_dense_256: DenseParams;
        }
    }
}

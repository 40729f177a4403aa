//! Shared by the gradients of expanders and their kernels.

use crate::abi::{DevicePointer, DevicePointerMut};

abi! {
    name: "heads/expand";
    uses: [];
    constants {
        /// Components of a group that a lane of a warp sums together.
        SUMMED_TOGETHER: usize = 10;
    }
    params {
        /// Sums of rows with weights: a group of entries is one sum.
        struct SumRowsParams {
            /// `[any, dim]`.
            rows: DevicePointer<f32>,
            /// `[entries]`: which row each is, and its weight.
            indices: DevicePointer<u32>,
            weights: DevicePointer<f32>,
            /// `[groups + 1]`: where the entries of each group begin.
            begins: DevicePointer<u32>,
            /// `[groups]`: where each sum goes; null: in the groups' order.
            targets: DevicePointer<u32>,
            /// `[any, dim]`.
            sums: DevicePointerMut<f32>,
            /// `[groups]`: the sums of the weights; or null.
            totals: DevicePointerMut<f32>,
            dim: i32,
            groups: u32,
        }
    }
    files {
        "heads" / gradients for Every {
            (128) sum_by_group: SumRowsParams;
        }
    }
}

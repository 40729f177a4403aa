//! Shared by the baselines and their kernels: parameters.

use crate::abi::{DevicePointer, DevicePointerMut};

abi! {
    name: "baselines";
    uses: [];
    constants {}
    enums {}
    data {}
    unions {}
    params {
        struct ReadTableParams {
            /// `[count]`.
            data: DevicePointer<[u32; 4]>,
            /// Never written, but the compiler can't know that, so it keeps the loads.
            never: DevicePointerMut<[u32; 4]>,
            count: u64,
        }
    }
    files {
        "" / read_table for Every {
            (512) read_table: ReadTableParams;
        }
    }
}

//! Shared with the kernel that reads a table: its parameters.

use crate::abi::{DevicePointer, DevicePointerMut};

crate::abi! {
    name: "read_table";
    uses: [];
    params {
        struct ReadTableParams {
            /// `[count]`.
            data: DevicePointer<[u32; 4]>,
            /// `[1]`. Never written, but the compiler can't know that, so it keeps the loads.
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
